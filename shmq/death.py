"""Why a message is dead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Death", "DeathReason"]

DeathReason = Literal["rejected", "max_deliveries", "max_deaths", "expired", "undecodable", "queue_deleted"]


@dataclass(frozen=True, slots=True)
class Death:
    """Why a message is dead: `Message.death` of what lies in a dead-letter queue.

    Attributes:
        queue: where it died.
        reason: "rejected", "max_deliveries", "max_deaths", "expired" or "queue_deleted"; "undecodable" belongs to a
            later stage.
        error: the text or traceback that reject() or the last retry() gave; None: none, as for a killed process.
        at: POSIX seconds.
        pids: of the processes that died with it, in order.
        signal: that ended the last of them, where it is known: a WorkerPool tells, also when the message was
            dead-lettered before it knew; nothing tells of processes without a pool. The broker remembers the
            last 128 such notes.

    Example:
        >>> queue.put("a")
        1
        >>> queue.receive().reject("not wanted")
        >>> (dead,) = broker.queue("jobs.dead").browse()
        >>> dead.death.reason, dead.death.error, dead.death.pids
        ('rejected', 'not wanted', ())
    """

    queue: str  # where it died
    reason: DeathReason
    error: str | None  # text or traceback
    at: float  # POSIX seconds
    pids: tuple[int, ...]  # processes that died with it
    signal: int | None  # that ended the last of them, where it is known
