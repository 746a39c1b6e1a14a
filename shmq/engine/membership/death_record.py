"""How processes ended that had a message in hand: the last 128 notes, for people who ask why it is dead.

The reaper of a process writes down its pid; a process that waited for that one, such as a pool, the signal. Either
may come first, and the message may be dead-lettered in between. So a signal is looked for twice: when the message is
dead-lettered, and when a process reads the death of one that was dead-lettered without.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from shmq.core.queue import DEATH_RECORD_MOVER, DEATH_RECORD_PROCESS, death_records
from shmq.death import died_with_it

if TYPE_CHECKING:
    from shmq.core.segment import Member
    from shmq.death import Death

__all__ = ["came_back", "completed", "endings"]

_NEAR: Final = 60.0  # seconds between two notes on one death, at most: later on, the pid may be another process's
_SLACK: Final = 1.0  # seconds by which the clock of the wall may have been set back in between


def endings(member: Member, message_id: int) -> tuple[tuple[int, ...], int | None]:
    """Returns the processes that died with a message, in order, and the signal of the last death; None: not known."""
    notes = death_records(member, message_id)
    pids = tuple(pid for pid, _, _ in notes)
    if not notes:
        return pids, None
    pid, number, at_ns = notes[-1]
    return pids, _sound(number) or _told(member, pid, at_ns / 1e9 - _NEAR, at_ns / 1e9 + _NEAR)


def came_back(member: Member, message_id: int, pid: int) -> bool:
    """Says whether a message came back to its queue because that process died with it, or while it dead-lettered it."""
    notes = death_records(member, message_id) + death_records(member, message_id | DEATH_RECORD_MOVER)
    return any(dead == pid for dead, _, _ in notes)


def completed(member: Member, death: Death) -> Death:
    """Returns the death with its signal, if that was noted after the message was dead-lettered."""
    if death.signal is not None or not death.pids:
        return death
    # Signals that were told before were looked at when the message was dead-lettered.
    number = _told(member, death.pids[-1], death.at - _SLACK, death.at + _NEAR)
    if number is None:
        return death
    error = died_with_it(death.pids, number) if death.reason == "max_deaths" else death.error
    return replace(death, signal=number, error=error)


def _told(member: Member, pid: int, since: float, until: float) -> int | None:
    for dead, number, at_ns in death_records(member, DEATH_RECORD_PROCESS):
        if dead == pid and since <= at_ns / 1e9 <= until and _sound(number):
            return number
    return None


def _sound(number: int) -> int | None:
    return number if 0 < number <= 64 else None  # a damaged segment may hold any number
