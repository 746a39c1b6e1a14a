"""The record of a subscription's batches: where they end, and up to where Spark has acknowledged them.

A query knows that from its checkpoint. But a checkpoint may be an old one, or a copy beside which another one goes on.
So the planner writes it down, too, in a queue beside the claims, `orders.spark.etl.planned`. Then a batch that begins
where one began before has the same rows, and a query that begins below what was acknowledged is told so.

    {"acknowledged": 4096, "ends": [6144], "id": "9f2c...-3-7"}

One message, of the claims with this id: the new one is put first, and the last one counts. Only the planner that has
the subscription writes.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final

from shmq.engine.claims.claim import bounds_of, discard_below, entries_between, identity_of

if TYPE_CHECKING:
    from shmq.engine.broker.broker import Broker
    from shmq.engine.queue.queue import Queue

__all__ = ["PLANNED", "PlanRecord"]

PLANNED: Final = ".planned"
_PLACES: Final = 4  # slots: one message, and its successor


class PlanRecord:
    """The record of one subscription.

    Arguments:
        broker: of the claims.
        claims: its queue of claims.

    Raises NotFound, Closed.
    """

    def __init__(self, broker: Broker, claims: Queue[Any]) -> None:
        self._queue = broker.queue(claims.name + PLANNED, maxsize=_PLACES, max_attempts=0, max_deaths=0)
        self._id = identity_of(claims)
        self.acknowledged = 0
        self._ends: list[int] = []  # of batches that are not acknowledged, in order
        for entry in entries_between(self._queue, *bounds_of(self._queue)):
            found = json.loads(entry[9])
            if found["id"] == self._id:
                self.acknowledged, self._ends = found["acknowledged"], found["ends"]

    def end_behind(self, position: int) -> int | None:
        """Returns where the batch ends that begins at `position`, if one was planned."""
        at = bisect_right(self._ends, position)
        return self._ends[at] if at < len(self._ends) else None

    def plan(self, end: int) -> None:
        """Writes down that a batch ends at `end`. Raises Full, OutOfSpace."""
        if end not in self._ends:
            self._write(self.acknowledged, sorted([*self._ends, end]))

    def acknowledge(self, position: int) -> None:
        """Writes down that the entries below `position` are done. Raises Full, OutOfSpace."""
        if position > self.acknowledged:
            self._write(position, [end for end in self._ends if end > position])

    def _write(self, acknowledged: int, ends: list[int]) -> None:
        record = {"acknowledged": acknowledged, "ends": ends, "id": self._id}
        self._queue.put(json.dumps(record, sort_keys=True), timeout=0)
        discard_below(self._queue, bounds_of(self._queue)[1] - 1)
        self.acknowledged, self._ends = acknowledged, ends
