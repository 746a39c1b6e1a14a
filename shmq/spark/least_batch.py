"""The least size of a stream's batch: few rows wait for more of them, but none for ever."""

from __future__ import annotations

from shmq.core import clock

__all__ = ["LeastBatch"]


class LeastBatch:
    """Says whether the next batch has to wait.

    Arguments:
        rows: so many begin a batch at once.
        delay: seconds; a row that waits so long begins one, whatever the number.

    This process alone knows since when rows wait: a query that is started again begins to count anew.
    """

    def __init__(self, rows: int, delay: float) -> None:
        self._rows = rows
        self._delay = delay
        self._since: float | None = None  # when the first row was seen that waits

    def holds(self, waiting: int) -> bool:
        """Says whether a batch of `waiting` rows has to wait for more."""
        now = clock.monotonic()
        if self._since is None and waiting:
            self._since = now
        held = waiting < self._rows and (self._since is None or now - self._since < self._delay)
        if not held:
            self._since = None
        return held
