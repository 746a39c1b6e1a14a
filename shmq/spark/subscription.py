"""Entries that a streaming query has taken of one queue, and not yet acknowledged: the queue `orders.spark.etl`.

Only the planner of the query moves entries there, in the order of `orders`, and only it discards them. It holds the
queue's exclusive consumer, and never receives. A planner whose process dies loses it at that moment, so the next one
need not wait. A second one beside it is refused.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from shmq.core import clock
from shmq.engine.claims.claim import (
    Claimer,
    bounds_of,
    discard_below,
    entries_between,
    identity_of,
    queue_of_claims,
    settle_the_dead,
)
from shmq.errors import ConsumerRefused, Full, OutOfSpace
from shmq.names import check_queue_name
from shmq.spark.data_lost import DataLost
from shmq.spark.entry_range import EntryRange, split
from shmq.spark.named_queue import claims_of, named_queue
from shmq.spark.offset import Reached
from shmq.spark.plan_record import PLANNED, PlanRecord
from shmq.spark.publication import finish_decided

if TYPE_CHECKING:
    from shmq.engine.broker.broker import Broker
    from shmq.engine.consumer.consumer import Consumer

__all__ = ["Subscription", "claims_name"]

# A query that was stopped a moment ago has a planner that is just ending.
_OWNERSHIP_SECONDS: Final = 5.0
_NO_LIMIT: Final = 1 << 62


def claims_name(queue: str, subscription: str) -> str:
    """Returns the name of the queue of a subscription's claims. Raises ValueError."""
    if subscription.endswith(PLANNED):
        raise ValueError(f"option subscription={subscription!r}: names that end with {PLANNED!r} are taken by shmq")
    name = f"{queue}.spark.{subscription}"
    check_queue_name(name + PLANNED, noun="queue of claims")
    return name


class Subscription:
    """The planner's side of one queue: claims entries, says how far they reach, discards what is done.

    Arguments:
        broker: of both queues.
        queue: whose entries are claimed; it must be there.
        name: of the subscription; one query at a time.
        selector: only messages for which it is true; None: all.
        fail_on_data_loss: what has vanished is an error; False: it is left out.
        create: False: NotFound for a subscription that there is not.

    Raises NotFound for a queue that is not there, ConsumerRefused while another query reads the subscription,
    SelectorError.
    """

    def __init__(
        self,
        broker: Broker,
        queue: str,
        name: str,
        *,
        selector: str | None = None,
        fail_on_data_loss: bool = True,
        create: bool = True,
    ) -> None:
        self.queue = queue
        self._name = name
        self._source = named_queue(broker, queue)
        claims = claims_name(queue, name)
        self._claims = queue_of_claims(broker, claims) if create else claims_of(broker, queue, claims, name)
        self._owner = self._owned()
        self._claimer = Claimer(self._source, self._claims, selector)
        self._fails = fail_on_data_loss
        self._id = identity_of(self._claims)
        self._known: int | None = None  # up to here all claims have been offered to Spark
        self._full = False
        finish_decided(self._source)
        settle_the_dead(self._claims)  # a planner that was killed amid a move: its entry is here or there, and visible
        self._record = PlanRecord(broker, self._claims)
        discard_below(self._claims, self._record.acknowledged)  # what a planner left that was killed meanwhile

    def _owned(self) -> Consumer[Any]:
        deadline = clock.monotonic() + _OWNERSHIP_SECONDS
        while True:
            try:
                return self._claims.consumer(exclusive=True)
            except ConsumerRefused as refused:
                if clock.monotonic() < deadline:
                    time.sleep(0.05)
                    continue
                raise ConsumerRefused(
                    f"subscription {self._name!r} of queue {self.queue!r} is read by another query",
                    figures=refused.what if not refused.figures else f"{refused.what}: {refused.figures}",
                    remedy="stop that query, or give this one a subscription of its own: the two share the queue then",
                ) from None

    def close(self) -> None:
        self._owner.close()

    def is_of(self, reached: Reached) -> bool:
        """Says whether this is a place in the queue as it is now."""
        return reached.id == self._id

    def begin(self) -> Reached:
        """Returns where a new query begins: with the entries that are claimed already, if there are any."""
        return Reached(self._id, bounds_of(self._claims)[0], 0)

    def checked(self, reached: Reached) -> Reached:
        """Returns the place if its queue is still the same. Else raises DataLost, or returns the queue's beginning."""
        if reached.id == self._id:
            return reached
        if self._fails:
            raise DataLost(
                f"the queue {self._claims.name!r} was made anew since the checkpoint was written",
                figures=f"then {reached.id}, now {self._id}; claimed were {reached.rows:,} entries",
                remedy="the host was restarted, or the queue or its broker was deleted: claimed entries outside of "
                "finished batches are gone; failOnDataLoss=false goes on with the entries that are there",
            )
        return self.begin()

    def reach(self, start: Reached, entries: int | None, nbytes: int | None, timeout: float) -> Reached:
        """How far the next batch goes: where it ended before, if it was planned before; else what was claimed before,
        then new claims.

        Arguments:
            start: where it begins, of this queue (see checked()).
            entries, nbytes: the most that it may have; None: no limit. One entry is always allowed.
            timeout: seconds, how long to wait for the first entry; the start itself if none comes.

        Raises NotFound, Closed; DataLost if what lies behind the start was acknowledged, unless it shall not fail.
        """
        if self._fails and start.position < self._record.acknowledged:
            raise DataLost(
                f"the checkpoint is older than the last acknowledgement of subscription {self._name!r} of queue "
                f"{self.queue!r}",
                figures=f"it goes on at position {start.position:,} of {self._claims.name!r}, and all below "
                f"{self._record.acknowledged:,} was acknowledged",
                remedy="it is a copy or a backup, or its last batches were removed, or another query has read this "
                "subscription. A new checkpoint begins with the entries that are not acknowledged; "
                "failOnDataLoss=false goes on with them in this one, where a sink may take new rows for those of an "
                "old batch",
            )
        reached = self._reached(start, entries, nbytes, timeout)
        if reached.position > start.position:
            try:
                self._record.plan(reached.position)
            except (Full, OutOfSpace):  # it stays claimed, for the next time
                self._full, self._known = True, None
                return start
        return reached

    def _reached(self, start: Reached, entries: int | None, nbytes: int | None, timeout: float) -> Reached:
        planned = self._record.end_behind(start.position)
        if planned is not None:
            rows = sum(1 for _ in entries_between(self._claims, start.position, planned))
            if rows:
                return Reached(self._id, planned, start.rows + rows)
        entries = _NO_LIMIT if entries is None else entries
        nbytes = _NO_LIMIT if nbytes is None else nbytes
        if self._known is None or self._known > start.position:
            found = self._claimed_before(start, entries, nbytes)
            if found is not None:
                return found
            self._known = start.position
        claimed = self._claimer.claim(entries, nbytes, timeout=timeout)
        self._full = claimed.full and not claimed.entries
        if not claimed.entries:
            if self._full and not self.is_blocked(start):
                time.sleep(timeout)  # others have the memory
            return start
        end = bounds_of(self._claims)[1]
        self._known = end
        return Reached(self._id, end, start.rows + claimed.entries)

    def is_blocked(self, start: Reached) -> bool:
        """Says whether the last reach() found no room for a claim, and acknowledging its start will make room."""
        return self._full and bounds_of(self._claims)[0] < start.position

    def _claimed_before(self, start: Reached, entries: int, nbytes: int) -> Reached | None:
        """Returns the claims of a run of the query that ended before Spark knew of them. None: there are none."""
        end, rows, size = start.position, 0, 0
        for position, *_, head, body, _expires, _own in entries_between(
            self._claims, start.position, bounds_of(self._claims)[1]
        ):
            size += len(head) + len(body)
            if rows and (rows >= entries or size > nbytes):
                self._known = bounds_of(self._claims)[1]  # there is more, for the next batch
                return Reached(self._id, end, start.rows + rows)
            end, rows = position + 1, rows + 1
        if not rows:
            return None
        self._known = end
        return Reached(self._id, end, start.rows + rows)

    def unread(self, start: Reached) -> int:
        """Counts the entries that are claimed behind a place."""
        if bounds_of(self._claims)[1] <= start.position:
            return 0
        return sum(1 for _ in entries_between(self._claims, start.position, bounds_of(self._claims)[1]))

    def end(self) -> Reached:
        """Returns the place behind all claimed entries; their rows are not counted."""
        return Reached(self._id, bounds_of(self._claims)[1], 0)

    def size_of(self, rows: int) -> int:
        """Estimates the size of so many claimed entries in bytes, from the average."""
        statistics = self._claims.statistics()
        return rows * statistics.bytes // max(statistics.ready, 1)

    def ranges(self, first: Reached, last: Reached, parts: int) -> list[EntryRange]:
        """Returns the entries between two places as ranges for so many tasks. Raises DataLost."""
        whole = EntryRange(
            self.queue, self._claims.name, self._id, first.position, last.position, last.rows - first.rows
        )
        return split(whole, parts, self._claims if self._fails else None)

    def waiting(self) -> int:
        """Counts the entries that could be claimed now, and are not."""
        return self._source.qsize()

    def acknowledge(self, end: Reached) -> int:
        """Discards the entries below; how many. The entries of another queue, of an earlier time, are no more.

        Raises Full, OutOfSpace: there is no memory for a message of 200 bytes.
        """
        if end.id != self._id:
            return 0
        try:
            self._record.acknowledge(end.position)
        except (Full, OutOfSpace):  # what is discarded makes room
            discarded = discard_below(self._claims, end.position)
            self._record.acknowledge(end.position)
            return discarded
        return discard_below(self._claims, end.position)
