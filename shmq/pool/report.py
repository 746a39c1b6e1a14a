"""What a worker tells its pool, over a pipe."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from multiprocessing.connection import Connection

__all__ = ["Dead", "Ended", "Failed", "Report", "Reports", "Sign", "Warned"]


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
        limit: the queue's max_deliveries; 0: none.
        text: the traceback.
        fate: what has become of the message if it is dead now; None: it is tried again, or was settled before.
    """

    message_id: int
    attempt: int
    limit: int
    text: str
    fate: str | None


@dataclass(frozen=True)
class Dead:
    """A message was found that is delivered to nobody any more.

    Attributes:
        message_id: whose.
        why: what was too often, for people.
        fate: what has become of it.
    """

    message_id: int
    why: str
    fate: str


@dataclass(frozen=True)
class Warned:
    """A sentence for the log."""

    text: str


@dataclass(frozen=True)
class Ended:
    """It ends by itself.

    Attributes:
        why: "start" (it could not begin), "stopped", "drained", "deleted" (the queue), "worn" (max_messages),
            "results" (they cannot be put), "error" (anything else).
        text: the error, if there was one.
    """

    why: str
    text: str = ""


Report = Sign | Failed | Dead | Warned | Ended


class Reports:
    """The worker's end of the pipe."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def send(self, report: Report) -> bool:
        """False: nobody listens any more."""
        try:
            self._pipe.send(report)
        except OSError:
            return False
        return True
