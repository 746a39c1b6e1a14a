"""Reports of a worker to its pool, over a pipe."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import Enum
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shmq.engine.handle.taking_pool import FailureReason

__all__ = ["Dead", "Ended", "Failed", "Logged", "Report", "Reports", "Sign", "Stalled"]


class Sign(Enum):
    """A report without details."""

    READY = "ready"  # its handler is there, it takes messages now
    WORKING = "working"  # it has its first message
    IDLE = "idle"  # it found nothing; only told to pools that run until_empty
    STOPPING = "stopping"  # it was asked to stop, and will


@dataclass(frozen=True)
class Failed:
    """An attempt failed.

    Attributes:
        message_id: whose.
        attempt: which of its failed ones this is, from 1.
        limit: the queue's max_attempts; 0: none.
        line: the error.
        text: the traceback.
        fate: what has become of the message if it is dead now.
        final: no other attempt follows: it is dead, or the handler had acked it.
    """

    message_id: int
    attempt: int
    limit: int
    line: str
    text: str
    fate: str | None
    final: bool


@dataclass(frozen=True)
class Dead:
    """A message is delivered to nobody any more, and no attempt that failed by an exception says so.

    Attributes:
        message_id: whose.
        reason: as in Death.
        why: the same for people, with the error if there was one.
        fate: what has become of it.
    """

    message_id: int
    reason: FailureReason
    why: str
    fate: str


@dataclass(frozen=True)
class Stalled:
    """Results have no room. A sentence for the log."""

    text: str


@dataclass(frozen=True)
class Logged:
    """A log record of the library itself in the worker.

    Attributes:
        name: of the logger.
        level: as in logging.
        text: formatted.
        extra: further fields of the record.
    """

    name: str
    level: int
    text: str
    extra: dict[str, Any]


@dataclass(frozen=True)
class Ended:
    """The worker ends by itself.

    Attributes:
        why: "start" (it could not begin), "stopped", "drained", "deleted" (the queue), "worn" (max_messages),
            "results" (they cannot be put), "error" (anything else).
        text: the error, if there was one.
        left: what keeps its process, as far as Python knows: threads and children of handlers.
    """

    why: str
    text: str = ""
    left: str = ""


Report = Sign | Failed | Dead | Stalled | Logged | Ended


class Reports:
    """The worker's end of the pipe."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.RLock()  # threads of the handler may log; reentrant for a signal handler

    def send(self, report: Report) -> bool:
        """Sends a report. False: the pool does not listen any more."""
        try:
            with self._lock:
                self._pipe.send(report)
        except OSError:
            return False
        return True
