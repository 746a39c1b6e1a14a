"""A streaming read, as Spark's engine calls it; of PySpark it needs nothing.

One instance lives in the planner process of a query and is asked initialOffset, latestOffset, partitions and commit
there, in one thread. Another one is pickled to the workers, for read(): of the first one it knows only the options and
the partition. After a crash the first call may be partitions(), with the offsets of the batch that was planned.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from shmq.engine.arrow.row import FIELDS
from shmq.spark.bounds import is_bounded
from shmq.spark.column_batches import column_batches
from shmq.spark.entry_range import EntryRange, entries_of
from shmq.spark.named_queue import named_broker, queues_like
from shmq.spark.offset import Offset, Reached
from shmq.spark.options import SourceOptions
from shmq.spark.subscription import Subscription, claims_name

if TYPE_CHECKING:
    import pyarrow

    from shmq.core.queue import Browsed
    from shmq.engine.broker.broker import Broker

__all__ = ["Limit", "StreamSource"]

_FEW_ROWS: Final = 1000  # fewer are not worth a task of their own


class Limit(NamedTuple):
    """The limits of a batch; None: no limit of this kind."""

    rows: int | None = None
    nbytes: int | None = None


class StreamSource:
    """The stream reader's logic.

    Arguments:
        options: as SourceOptions has them.
        columns: of the rows, in their order.

    Guarantee: the rows of two offsets are the same whenever they are read, until an offset behind them was committed.
    An entry is in the queue or in that of the claims, whoever is killed when.
    """

    def __init__(self, options: SourceOptions, columns: tuple[str, ...] | None = None) -> None:
        if not options.subscription:
            raise ValueError(
                "the option subscription is missing: a stream needs a name under which its entries are kept; "
                "give .option('subscription', 'etl')"
            )
        for queue in options.queues:
            claims_name(queue, options.subscription)
        if is_bounded(options):
            raise ValueError(
                "the options startingPosition, endingPosition, startingTimestamp and endingTimestamp are of a batch "
                "read; a stream begins with all that waits, and goes on from its checkpoint"
            )
        self._options = options
        self._columns = columns or options.columns or tuple(field.name for field in FIELDS)
        self._forget()

    def _forget(self) -> None:
        self._broker: Broker | None = None
        self._subscriptions: list[Subscription] = []
        self._target: int | None = None  # rows that an AvailableNow run may still have
        self._target_has_unread = False
        self._turn = 0
        self._reached: dict[str, Reached] = {}  # by the last batch that was planned

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_columns": self._columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    # ---- in the planner ----------------------------------------------------------------------------------------

    def _planned(self) -> list[Subscription]:
        if self._broker is None:
            self._broker = named_broker(self._options.path, self._options.key_file)
            try:
                for queue in self._options.queues:
                    self._subscribe(queue)
                self._look_for_queues()
            except BaseException:
                self.close()
                raise
        return self._subscriptions

    def _subscribe(self, queue: str) -> None:
        options = self._options
        assert self._broker is not None
        assert options.subscription is not None
        self._subscriptions.append(
            Subscription(
                self._broker,
                queue,
                options.subscription,
                selector=options.selector,
                fail_on_data_loss=options.fail_on_data_loss,
            )
        )

    def _look_for_queues(self) -> None:
        """Looks for queues that match the pattern and were not there before."""
        if self._options.pattern is None or self._broker is None:
            return
        known = {one.queue for one in self._subscriptions}
        for queue in queues_like(self._broker, self._options.pattern):
            if queue.name not in known:
                self._subscribe(queue.name)

    def close(self) -> None:
        """Gives the subscriptions up, for another query. Claimed entries stay."""
        broker = self._broker
        self._forget()
        if broker is not None:
            broker.close()

    def initialOffset(self) -> dict[str, Any]:
        """Returns where a query without a checkpoint begins. It moves no entry."""
        return Offset({one.queue: one.begin() for one in self._planned()}).plain()

    def _start(self, given: Mapping[str, Any]) -> dict[str, Reached]:
        """Returns the offset's places, and the beginnings of queues that were added. Raises ValueError, DataLost."""
        found = Offset.parse(given).queues
        missing = set(found) - {one.queue for one in self._planned()}
        if missing:
            raise ValueError(
                f"the checkpoint is of the queues {', '.join(found)}, and {', '.join(sorted(missing))} is not "
                "among those that are read now; begin a new checkpoint, or read that queue, too"
            )
        return {
            one.queue: one.checked(found[one.queue]) if one.queue in found else one.begin() for one in self._planned()
        }

    def latestOffset(self, start: Mapping[str, Any], limit: Limit) -> dict[str, Any]:
        """Claims the next batch; the start itself if nothing comes within the poll time."""
        self._planned()
        self._look_for_queues()
        reached, empty = self._start(start), Offset.parse(start).empty
        self._reached = reached
        subscriptions = self._planned()
        rows, nbytes = limit.rows, limit.nbytes
        if self._target is not None:
            if not self._target_has_unread:
                self._target += sum(one.unread(reached[one.queue]) for one in subscriptions)
                self._target_has_unread = True
            rows = self._target if rows is None else min(rows, self._target)
            if rows == 0:
                return self._finished(start, reached)
        if not subscriptions and self._target is None:
            time.sleep(self._options.poll)
        poll = 0.0 if self._target is not None else self._options.poll / max(len(subscriptions), 1)
        began = {name: one.rows for name, one in reached.items()}
        order = subscriptions[self._turn :] + subscriptions[: self._turn]
        self._turn = (self._turn + 1) % max(
            len(subscriptions), 1
        )  # a queue that has always enough does not starve the others
        for one in order:
            taken = sum(reached[name].rows - began[name] for name in reached)
            if rows is not None and taken >= rows:
                break
            wait = poll if not taken else 0.0
            reached[one.queue] = one.reach(
                reached[one.queue], None if rows is None else rows - taken, _share(nbytes, len(order)), wait
            )
        taken = sum(reached[name].rows - began[name] for name in reached)
        if not taken and any(one.is_blocked(reached[one.queue]) for one in subscriptions):
            return Offset(reached, empty + 1).plain()  # so that Spark acknowledges what takes the room
        if self._target is not None:
            self._target = max(self._target - taken, 0) if taken else 0  # others may have consumed what was there
            if not taken:
                return self._finished(start, reached)
        return Offset(reached, empty).plain()

    def prepareForTriggerAvailableNow(self) -> None:
        """Limits this run to the entries that are there now; later entries are for another run."""
        self._target = sum(one.waiting() for one in self._planned())
        self._target_has_unread = False  # which is behind a start that nobody has named yet

    def _finished(self, start: Mapping[str, Any], reached: dict[str, Reached]) -> dict[str, Any]:
        """The end of an AvailableNow run, whose last batch Spark acknowledges in its next run only. It is in the commit
        log by now: with this trigger Spark refuses to run ahead of that log."""
        self.commit(start)
        return Offset(reached, Offset.parse(start).empty).plain()

    def reportLatestOffset(self) -> dict[str, Any]:
        """Returns the offset behind all waiting entries, for the progress of the query. Its rows less those of the
        last batch's end are the lag."""
        ends = {}
        for one in self._planned():
            last = self._reached.get(one.queue) or one.begin()
            end, behind = one.end(), one.waiting()
            ends[one.queue] = Reached(end.id, end.position + behind, last.rows + one.unread(last) + behind)
        return Offset(ends).plain()

    def waiting(self, start: Mapping[str, Any]) -> int:
        """Counts the rows behind an offset, claimed or not."""
        self._planned()
        self._look_for_queues()
        reached = self._start(start)
        return sum(one.unread(reached[one.queue]) + one.waiting() for one in self._planned())

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[EntryRange]:
        """Returns the ranges of a batch that tasks read; none for an empty batch."""
        stop = Offset.parse(end).queues
        begin = self._start(start)
        found: list[EntryRange] = []
        for one in self._planned():
            if one.queue not in stop:
                continue
            last = one.checked(stop[one.queue])
            first = begin[one.queue]
            if last.rows <= first.rows:
                continue
            found += one.ranges(first, last, self._parts(one, last.rows - first.rows))
        return found

    def _parts(self, one: Subscription, rows: int) -> int:
        by_size = math.ceil(one.size_of(rows) / self._options.max_partition_bytes)
        by_rows = min(self._options.min_partitions, rows // _FEW_ROWS)
        return max(by_size, by_rows, 1)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Acknowledges all entries below the offset. Repeatable; an older offset changes nothing."""
        done = Offset.parse(end).queues
        for one in self._planned():
            if one.queue in done:
                one.acknowledge(done[one.queue])

    # ---- in the workers ----------------------------------------------------------------------------------------

    def read(self, partition: EntryRange | None) -> Iterator[pyarrow.RecordBatch]:
        """Yields Arrow batches of one partition, without side effects. Raises DataLost."""
        if partition is None:
            return
        with named_broker(self._options.path, self._options.key_file) as broker:
            yield from column_batches(broker, partition, self._columns, self._options.fail_on_data_loss)

    def entries(self, broker: Broker, partition: EntryRange) -> Iterator[Browsed]:
        """Yields the rows of which read() makes batches, for callers without pyarrow. Raises DataLost as read()."""
        return entries_of(broker, partition, self._options.fail_on_data_loss)


def _share(nbytes: int | None, queues: int) -> int | None:
    return None if nbytes is None else max(nbytes // queues, 1)
