"""Sums the outcomes of the messages of all workers of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shmq.core import clock
from shmq.engine.handle.open_queue import membership_of
from shmq.engine.membership.death_record import came_back
from shmq.pool.tally import Outcome, Tally, counts_of
from shmq.wait_time import NOTED_WITHIN

if TYPE_CHECKING:
    from shmq.engine.handle.taking_pool import FailureReason
    from shmq.engine.queue.queue import Queue
    from shmq.statistics import PoolCounts

__all__ = ["Total"]


@dataclass(frozen=True, slots=True)
class _Doubt:
    """A worker has died with a message begun and not counted. Did it come back, or was it settled just before?"""

    pid: int
    message_id: int
    intent: Outcome
    until: float


class Total:
    """Adds up the tallies of workers that have ended.

    A reaper notes each message that comes back from a dead process. The reaper may be another worker, which is a moment
    behind: a doubt is looked at again at later deaths, and at the end.

    Arguments:
        queue: whose messages.
    """

    def __init__(self, queue: Queue[object]) -> None:
        self._queue = queue
        self._sum = Tally([0] * Tally.WORDS)
        self._doubts: list[_Doubt] = []

    def add(self, pid: int, tally: Tally, *, taken: bool = False) -> None:
        """Adds the tally of a worker that has ended, after the broker has reaped it.

        taken: another consumer has the message that the worker had in hand.
        """
        self._sum.add(tally)
        still_open = tally.still_open()
        if still_open is not None and not taken:
            self._doubts.append(_Doubt(pid, *still_open, clock.monotonic() + NOTED_WITHIN))
        self._look(clock.monotonic())

    def found_dead(self, reason: FailureReason) -> None:
        """Counts a death that the supervisor itself has found, and that is in no tally."""
        self._sum.end(reason)

    def counts(self) -> PoolCounts:
        """Returns the counts at the end of the run."""
        self._look(float("inf"))
        return counts_of(self._sum.ended())

    def _look(self, now: float) -> None:
        for doubt in list(self._doubts):
            if self._came_back(doubt):
                self._doubts.remove(doubt)
            elif now >= doubt.until:
                self._doubts.remove(doubt)
                self._sum.end(doubt.intent)

    def _came_back(self, doubt: _Doubt) -> bool:
        membership = membership_of(self._queue)
        return not membership.closed and came_back(membership.live(), doubt.message_id, doubt.pid)
