"""Contexts of multiprocessing whose queues are shmq's."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from multiprocessing import context
from typing import TYPE_CHECKING, Any, ClassVar, Final

from shmq.mp.joinable_queue import JoinableQueue
from shmq.mp.queue import Queue
from shmq.mp.simple_queue import SimpleQueue

if TYPE_CHECKING:
    from multiprocessing.pool import Pool
    from multiprocessing.process import BaseProcess

__all__ = ["Context", "ForkContext", "ForkServerContext", "SpawnContext", "get_context"]


class Context(context.BaseContext):
    """A context of multiprocessing whose queues are shmq's; all else is multiprocessing's. Made by get_context().

    Example:
        >>> from shmq.mp import get_context
        >>> context = get_context("spawn")
        >>> context.get_start_method(), context.Queue().qsize()
        ('spawn', 0)
    """

    Process: ClassVar[type[BaseProcess]]  # of each start method its own

    def Queue(self, maxsize: int = 0) -> Queue[Any]:  # type: ignore[override]
        """A shmq.mp.Queue.

        maxsize: as of that class. Raises as it does.

        Example:
            >>> from shmq.mp import get_context
            >>> get_context("fork").Queue(100).empty()
            True
        """
        return Queue(maxsize, ctx=self)

    def JoinableQueue(self, maxsize: int = 0) -> JoinableQueue[Any]:  # type: ignore[override]
        """A shmq.mp.JoinableQueue.

        maxsize: as of that class. Raises as it does.

        Example:
            >>> from shmq.mp import get_context
            >>> get_context("fork").JoinableQueue(100).empty()
            True
        """
        return JoinableQueue(maxsize, ctx=self)

    def SimpleQueue(self) -> SimpleQueue[Any]:  # type: ignore[override]
        """A shmq.mp.SimpleQueue. Raises as it does.

        Example:
            >>> from shmq.mp import get_context
            >>> get_context("fork").SimpleQueue().empty()
            True
        """
        return SimpleQueue(ctx=self)

    def Pool(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        maxtasksperchild: int | None = None,
    ) -> Pool:
        """multiprocessing's Pool on its own queues: it works on the pipes inside them.

        processes: how many; None: one for each CPU.
        initializer, initargs: each process calls initializer(*initargs) first.
        maxtasksperchild: after so many tasks a process is replaced; None: never.
        Raises as multiprocessing's.

        Example:
            >>> from shmq.mp import get_context
            >>> with get_context("fork").Pool(1) as pool:
            ...     pool.map(abs, [-1, 2])
            [1, 2]
        """
        own: Any = multiprocessing.get_context(self.get_start_method())
        return own.Pool(processes, initializer, initargs, maxtasksperchild)  # type: ignore[no-any-return]

    def get_context(self, method: str | None = None) -> Context:  # type: ignore[override]
        """This one, or that of another start method.

        method: "fork", "spawn" or "forkserver"; None: this one. Raises ValueError for an unknown one.

        Example:
            >>> from shmq.mp import get_context
            >>> get_context("fork").get_context("spawn").get_start_method()
            'spawn'
        """
        return self if method is None else get_context(method)


class ForkContext(Context, context.ForkContext):  # type: ignore[misc]  # Process is less there
    """Children are forked."""


class SpawnContext(Context, context.SpawnContext):  # type: ignore[misc]  # Process is less there
    """Children are fresh interpreters."""


class ForkServerContext(Context, context.ForkServerContext):  # type: ignore[misc]  # Process is less there
    """Children are forked from a server process."""


_CONTEXTS: Final[dict[str, Context]] = {
    "fork": ForkContext(),
    "spawn": SpawnContext(),
    "forkserver": ForkServerContext(),
}


def get_context(method: str | None = None) -> Context:
    """As multiprocessing.get_context, but Queue, JoinableQueue and SimpleQueue of what it returns are shmq's.

    method: "fork", "spawn" or "forkserver"; None: the start method in force.
    Raises ValueError for an unknown one.

    Example:
        >>> from shmq.mp import get_context
        >>> context = get_context("fork")
        >>> results = context.Queue()
        >>> worker = context.Process(target=results.put, args=("done",))
        >>> worker.start()
        >>> worker.join()
        >>> results.get()
        'done'
    """
    theirs = multiprocessing.get_context(method)
    return _CONTEXTS[theirs.get_start_method()]
