"""Replaces multiprocessing.SimpleQueue."""

from __future__ import annotations

import multiprocessing.queues
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from shmq.mp.queue import Queue, is_closed, refusal_of, told_of, unborn

if TYPE_CHECKING:
    from typing import Self

__all__ = ["SimpleQueue"]

T = TypeVar("T")


class SimpleQueue(Generic[T]):
    """A queue without limit, timeouts and counts. Otherwise as Queue.

    Arguments:
        ctx: accepted, since multiprocessing's has it; nothing depends on it.

    Example:
        >>> from shmq.mp import SimpleQueue
        >>> results: SimpleQueue[str] = SimpleQueue()
        >>> results.put("done")
        >>> results.get()
        'done'
    """

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        # The standard library asks for its own class, as logging.config does of the queue of a QueueHandler.
        return multiprocessing.queues.SimpleQueue

    def __init__(self, *, ctx: Any = None) -> None:
        self._all: Queue[T] = Queue()

    def __reduce__(self) -> Any:
        return unborn, (type(self),), self.__dict__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {told_of(self._all)}>"

    def _check_open(self) -> None:
        if is_closed(self._all):
            raise OSError(str(refusal_of(self._all)))  # where Queue raises ValueError, as with multiprocessing

    def put(self, obj: T) -> None:
        """Put an object at the end.

        obj: whatever can be pickled.
        Raises OSError after close(), and what pickling raises: then nothing was put.

        Example:
            >>> from shmq.mp import SimpleQueue
            >>> results: SimpleQueue[str] = SimpleQueue()
            >>> results.put("done")
        """
        self._check_open()
        self._all.put(obj)

    def get(self) -> T:
        """Take the first object; waits for ever. Raises OSError after close(), and what unpickling raises.

        Example:
            >>> from shmq.mp import SimpleQueue
            >>> results: SimpleQueue[str] = SimpleQueue()
            >>> results.put("done")
            >>> results.get()
            'done'
        """
        self._check_open()
        return self._all.get()

    def empty(self) -> bool:
        """Whether there is nothing to get now. Raises OSError after close().

        Example:
            >>> from shmq.mp import SimpleQueue
            >>> results: SimpleQueue[str] = SimpleQueue()
            >>> results.empty()
            True
        """
        self._check_open()
        return self._all.empty()

    def fileno(self) -> int:
        """A descriptor, as that of Queue. Raises OSError after close().

        Example:
            >>> from multiprocessing.connection import wait
            >>> from shmq.mp import SimpleQueue
            >>> results: SimpleQueue[str] = SimpleQueue()
            >>> results.put("done")
            >>> wait([results]) == [results]
            True
        """
        self._check_open()
        return self._all.fileno()

    @property
    def _reader(self) -> Self:
        """Programs wait for this of multiprocessing's queues."""
        return self

    def close(self) -> None:
        """No put() and get() by this object any more. Raises nothing. Twice is fine.

        Example:
            >>> from shmq.mp import SimpleQueue
            >>> results: SimpleQueue[str] = SimpleQueue()
            >>> results.close()
        """
        self._all.close()
