"""Arrow batches of a range of entries, from columns that the core has filled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shmq.engine.arrow.column_batches import batches_between
from shmq.spark.entry_range import EntryRange, check_found, queue_of

if TYPE_CHECKING:
    import pyarrow

    from shmq.engine.broker.broker import Broker

__all__ = ["column_batches"]


def column_batches(
    broker: Broker, wanted: EntryRange, names: Sequence[str], fail_on_data_loss: bool = True
) -> Iterator[pyarrow.RecordBatch]:
    """Yields the same rows as batches(entries_of(...)), in the same order, without an object for each.

    Arguments:
        broker: of the queue that holds the range.
        wanted: the range.
        names: of the columns, in their order.

    Raises DataLost at the end if entries are missing, or the queue is gone or another.
    """
    queue = queue_of(broker, wanted, fail_on_data_loss)
    if queue is None:
        return
    found = 0
    for batch in batches_between(queue, wanted.begin, wanted.end, names, wanted.queue):
        found += batch.num_rows
        yield batch
    check_found(wanted, found, fail_on_data_loss)
