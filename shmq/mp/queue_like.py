"""Annotations for functions that take a queue of multiprocessing or of shmq.mp."""

from __future__ import annotations

from typing import Protocol, TypeVar

__all__ = ["JoinableQueueLike", "QueueLike"]

T = TypeVar("T")


class QueueLike(Protocol[T]):
    """A queue of shmq.mp, of multiprocessing or of queue, for annotations. Nothing is made of it.

    Methods and exceptions are those of multiprocessing.Queue: shmq.mp.Queue tells of each.

    Example:
        >>> from shmq.mp import Queue, QueueLike
        >>> def last(jobs: QueueLike[int]) -> int:
        ...     jobs.put(7)
        ...     return jobs.get()
        >>> last(Queue())  # or a multiprocessing.Queue()
        7
    """

    def put(self, obj: T, /, block: bool = True, timeout: float | None = None) -> None:
        """Put an object at the end."""

    def put_nowait(self, obj: T, /) -> None:
        """put(obj, block=False)"""

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Take the first object."""
        ...

    def get_nowait(self) -> T:
        """get(block=False). Raises as get()."""
        ...

    def qsize(self) -> int:
        """How many objects there are. Raises what the queue itself raises."""
        ...

    def empty(self) -> bool:
        """Whether there is nothing to get now. Raises what the queue itself raises."""
        ...

    def full(self) -> bool:
        """Whether there is no room now. Raises what the queue itself raises."""
        ...


class JoinableQueueLike(QueueLike[T], Protocol[T]):
    """A JoinableQueue of shmq.mp or of multiprocessing, or a queue.Queue, for annotations.

    Example:
        >>> from shmq.mp import JoinableQueue, JoinableQueueLike
        >>> def drain(jobs: JoinableQueueLike[int]) -> None:
        ...     while not jobs.empty():
        ...         jobs.get()
        ...         jobs.task_done()
        ...     jobs.join()
        >>> drain(JoinableQueue())
    """

    def task_done(self) -> None:
        """An object that was got is done. Raises ValueError if there is none."""

    def join(self) -> None:
        """Wait until everything that was put was got and done. Raises nothing of its own."""
