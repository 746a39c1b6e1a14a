"""A batch read, as Spark's engine calls it: the entries that are in queues now, browsed and left there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shmq.engine.arrow.row import FIELDS, batches
from shmq.engine.claims.claim import bounds_of, identity_of, levels_of, wall_clock_of
from shmq.engine.message.selection import entry_selection
from shmq.spark.bounds import ALL_TIMES, put_between, within
from shmq.spark.column_batches import column_batches
from shmq.spark.entry_range import EntryRange, entries_of, split
from shmq.spark.named_queue import named_broker, named_queue, queues_like
from shmq.spark.options import SourceOptions
from shmq.spark.publication import finish_decided

if TYPE_CHECKING:
    from typing import Any

    import pyarrow

    from shmq.engine.broker.broker import Broker
    from shmq.engine.queue.queue import Queue

__all__ = ["BatchSource"]


class BatchSource:
    """The batch reader's logic.

    Arguments:
        options: as SourceOptions has them.
        columns: of the rows, in their order; None: as the options say.

    Guarantee: a look, not a snapshot. Entries that are taken meanwhile may be missing, those that are put after the
    planning are not read, and none is read twice. Nothing is taken or changed. A batch that a killed driver had decided
    to put there is put there first.
    """

    def __init__(self, options: SourceOptions, columns: tuple[str, ...] | None = None) -> None:
        self._options = options
        self._columns = columns or options.columns or tuple(field.name for field in FIELDS)

    def partitions(self) -> list[EntryRange]:
        """Raises BrokerNotFound, NotFound."""
        with named_broker(self._options.path, self._options.key_file) as broker:
            pattern = self._options.pattern
            named = (named_queue(broker, name) for name in self._options.queues)
            queues = named if pattern is None else queues_like(broker, pattern)
            parts = (part for queue in queues for part in self._parts_of(queue))
            return list(within(parts, self._options.positions))

    def _parts_of(self, queue: Queue[Any]) -> list[EntryRange]:
        finish_decided(queue)
        name, id = queue.name, identity_of(queue)
        levels = levels_of(queue)
        if len(levels) > 1:  # a task for each: positions are of one level
            return [EntryRange(name, name, id, begin, end, None) for begin, end in levels if begin < end]
        begin, end = bounds_of(queue)
        statistics = queue.statistics()
        by_size = -(-statistics.bytes // self._options.max_partition_bytes)
        by_rows = min(self._options.min_partitions, (end - begin) // 1000)
        return split(EntryRange(name, name, id, begin, end, None), max(by_size, by_rows, 1))

    def read(self, partition: EntryRange | None) -> Iterator[pyarrow.RecordBatch]:
        """Yields Arrow batches of one partition."""
        if partition is None:
            return
        with named_broker(self._options.path, self._options.key_file) as broker:
            if self._options.times == ALL_TIMES:
                yield from self._batches(broker, partition, self._columns)
                return
            more = () if "enqueued_at" in self._columns else ("enqueued_at",)
            found = self._batches(broker, partition, (*self._columns, *more))
            yield from put_between(found, self._options.times, self._columns)

    def _batches(self, broker: Broker, partition: EntryRange, names: tuple[str, ...]) -> Iterator[pyarrow.RecordBatch]:
        fails = self._options.fail_on_data_loss
        if self._options.selector is None:
            yield from column_batches(broker, partition, names, fails)
            return
        wall_of = wall_clock_of(broker)
        selects = entry_selection(self._options.selector, wall_of)
        entries = entries_of(broker, partition, fails)
        yield from batches(filter(selects, entries), partition.queue, names, wall_of)
