"""Contexts of multiprocessing whose queues are shmq's."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from multiprocessing import context
from typing import TYPE_CHECKING, Any, Final

from shmq.mp.joinable_queue import JoinableQueue
from shmq.mp.queue import Queue
from shmq.mp.simple_queue import SimpleQueue

if TYPE_CHECKING:
    from multiprocessing.pool import Pool

__all__ = ["ForkContext", "ForkServerContext", "SpawnContext", "get_context"]


class _Queues(context.BaseContext):
    """What differs; all else is multiprocessing's."""

    def Queue(self, maxsize: int = 0) -> Queue[Any]:  # type: ignore[override]
        """A shmq.mp.Queue."""
        return Queue(maxsize, ctx=self)

    def JoinableQueue(self, maxsize: int = 0) -> JoinableQueue[Any]:  # type: ignore[override]
        """A shmq.mp.JoinableQueue."""
        return JoinableQueue(maxsize, ctx=self)

    def SimpleQueue(self) -> SimpleQueue[Any]:  # type: ignore[override]
        """A shmq.mp.SimpleQueue."""
        return SimpleQueue(ctx=self)

    def Pool(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        maxtasksperchild: int | None = None,
    ) -> Pool:
        """multiprocessing's Pool on its own queues: it works on the pipes inside them."""
        own: Any = multiprocessing.get_context(self.get_start_method())
        return own.Pool(processes, initializer, initargs, maxtasksperchild)  # type: ignore[no-any-return]

    def get_context(self, method: str | None = None) -> Any:
        """This one, or that of another start method. Raises ValueError for an unknown one."""
        return self if method is None else get_context(method)


class ForkContext(_Queues, context.ForkContext):
    """Children are forked."""


class SpawnContext(_Queues, context.SpawnContext):
    """Children are fresh interpreters."""


class ForkServerContext(_Queues, context.ForkServerContext):
    """Children are forked from a server process."""


_CONTEXTS: Final[dict[str, _Queues]] = {
    "fork": ForkContext(),
    "spawn": SpawnContext(),
    "forkserver": ForkServerContext(),
}


def get_context(method: str | None = None) -> context.BaseContext:
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
