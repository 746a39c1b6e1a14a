"""Why a message is dead."""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals
from typing import Literal

from shmq.quantity import quantity

__all__ = ["Death", "DeathReason", "died_with_it", "killed_by"]

DeathReason = Literal["rejected", "max_attempts", "max_deaths", "expired", "undecodable", "queue_deleted"]


@dataclass(frozen=True, slots=True)
class Death:
    """Why a message is dead: `Message.death` of what lies in a dead-letter queue.

    Attributes:
        queue: where it died.
        reason: "rejected", "max_attempts", "max_deaths", "expired" or "queue_deleted"; "undecodable" belongs to a
            later stage.
        error: the text or traceback that reject() or the last retry() gave. Of a message that took processes along:
            their ids, and the signal where it is known. None: none, as for one whose last attempt ended by its lease.
        at: POSIX seconds.
        pids: of the processes that died with it, in order.
        signal: that ended the last of them, where it is known. A WorkerPool tells, also when the message was
            dead-lettered before it knew; nothing tells of processes without a pool. The broker remembers the last 128
            such notes.

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


def killed_by(number: int) -> str:
    """How a process ended, for people.

    Arguments:
        number: of the signal.
    """
    try:
        return f"killed by {Signals(number).name}"
    except ValueError:
        return f"killed by signal {number}"


def died_with_it(pids: tuple[int, ...], number: int | None) -> str | None:
    """The error of a death by max_deaths; None: nobody knows who died.

    Arguments:
        pids: of the processes, in order.
        number: of the signal that ended the last of them, where it is known.
    """
    if not pids:
        return None
    who = f"pid {pids[0]}" if len(pids) == 1 else f"pids {', '.join(map(str, pids))}"
    last = "" if len(pids) == 1 else "the last one "
    how = "" if number is None else f"; {last}{killed_by(number)}"
    return f"{quantity(len(pids), 'process')} died with it, {who}{how}"
