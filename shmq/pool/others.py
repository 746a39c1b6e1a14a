"""Consumers outside of the pool, for whose messages in hand a run until_empty waits."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from shmq.core.clock import monotonic_ns
from shmq.quantity import quantity
from shmq.wait_time import LONG_CALL

if TYPE_CHECKING:
    from shmq.pool.job import Job

__all__ = ["Others"]

_LOG: Final = logging.getLogger("shmq.pool")


class Others:
    """Logs once that a run has waited long for messages that other consumers have in hand."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._told = False

    def look(self, job: Job, *, busy: bool) -> None:
        """Looks whether the wait is long. The pool calls this while there is no message to take.

        job: with the queue.
        busy: the pool has something in hand itself.
        """
        if self._told or job.selector is not None:  # no count says how many of them are selected
            return
        statistics, now = job.queue.statistics(), monotonic_ns() / 1e9
        if busy or statistics.ready or statistics.delayed or not statistics.unsettled:
            self._since = None
        elif self._since is None:
            self._since = now
        elif now - self._since >= LONG_CALL:
            self._told = True
            name, held = job.queue.name, quantity(statistics.unsettled, "message")
            text = "the pool of queue %r waits for %s that other consumers have in hand; shmq ps shows these processes"
            _LOG.warning(text, name, held, extra={"queue": name})
