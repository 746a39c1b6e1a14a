"""The job of a pool's workers, and the parcel in which it is sent to them."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shmq.errors import Timeout
from shmq.pool.back_off import BackOff
from shmq.pool.importable import WorkerPickler
from shmq.pool.signature import unfinished

if TYPE_CHECKING:
    from shmq.engine.message.message import Message
    from shmq.engine.queue.queue import Queue

__all__ = ["Job", "Parcel"]


@dataclass(frozen=True)
class Job:
    """The job as WorkerPool got it.

    Attributes:
        queue, handler, results, initializer, initargs, max_messages, selector, time_limit, log_tracebacks: see
            WorkerPool.
        until_empty: workers say when they find nothing.
        back_off: how long what fails rests, where the queue does not say.
    """

    queue: Queue[Any]
    handler: Callable[[Message[Any]], Any]
    results: Queue[Any] | None = None
    initializer: Callable[..., object] | None = None
    initargs: tuple[Any, ...] = ()
    max_messages: int | None = None
    until_empty: bool = False
    selector: str | None = None
    time_limit: float | None = None
    log_tracebacks: bool = False
    back_off: BackOff = field(default_factory=BackOff)

    def initialize(self) -> None:
        """Calls the initializer. Raises what it raises, and TypeError for one that has not done its work."""
        if self.initializer is not None:
            result = self.initializer(*self.initargs)
            if (text := unfinished(result, "initializer", self.initializer)) is not None:
                raise TypeError(text)

    def is_done(self) -> bool:
        """Says whether none of the pool's messages is ready, delayed or unsettled, with any consumer."""
        if self.selector is not None:
            return next(self.queue.browse(selector=self.selector), None) is None
        try:
            self.queue.join(timeout=0)
        except Timeout:
            return False
        return True


class Parcel:
    """A job on its way to a worker: pickled with it, but unpickled only when the worker asks.

    A job that cannot be unpickled, for its handler's module fails, would otherwise end the process before any code of
    ours runs in it. Its traceback would be on the terminal, and nothing with the pool. After a fork nothing is pickled.

    Attributes:
        queue: its name.
    """

    def __init__(self, job: Job) -> None:
        self.queue = job.queue.name
        self._job: Job | None = job
        self._pickled = b""

    def __getstate__(self) -> tuple[str, bytes]:
        pickled = io.BytesIO()
        WorkerPickler(pickled, pickle.HIGHEST_PROTOCOL).dump(self._job)
        return self.queue, pickled.getvalue()

    def __setstate__(self, state: tuple[str, bytes]) -> None:
        self._job = None
        self.queue, self._pickled = state

    def open(self) -> Job:
        """Unpickles the job. Raises whatever the import of its handler raises."""
        if self._job is None:
            opened: Job = pickle.loads(self._pickled)
            self._job = opened
        return self._job
