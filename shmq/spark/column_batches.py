"""Arrow batches of a range of entries, from columns that the core has filled: no object is made for a row.

Headers, groups and named content types lie in one block before the body, the head, which is read only where these
columns are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from shmq.codec import CONTENT_TYPES, NAMED
from shmq.engine.claims.claim import clock_offset_of, columns_between
from shmq.spark.entry_range import EntryRange, check_found, queue_of
from shmq.spark.head_columns import Heads, heads_as_columns
from shmq.spark.row import BATCH_BYTES, BATCH_ROWS, arrow_schema

if TYPE_CHECKING:
    import pyarrow

    from shmq.engine.broker.broker import Broker

__all__ = ["column_batches", "has_columns"]

_COLUMNS: Final = ("queue", "position", "message_id", "enqueued_at", "priority", "group", "delivery_count",
                   "content_type", "headers", "body")  # fmt: skip


def has_columns(names: Sequence[str]) -> bool:
    """Can column_batches() make all of these?"""
    return all(name in _COLUMNS for name in names)


def column_batches(
    broker: Broker, wanted: EntryRange, names: Sequence[str], fail_on_data_loss: bool = True
) -> Iterator[pyarrow.RecordBatch]:
    """The same rows as batches(entries_of(...)), in the same order.

    Arguments:
        broker: of the queue that holds the range.
        wanted: the range.
        names: of the columns, in their order; see has_columns().

    Raises DataLost at the end if entries are missing, or the queue is gone or another.
    """
    import pyarrow as pa

    queue = queue_of(broker, wanted, fail_on_data_loss)
    if queue is None:
        return
    schema = arrow_schema(names)
    offset_ns = clock_offset_of(broker)
    place, ended, found = wanted.begin, wanted.begin >= wanted.end, 0
    while not ended:
        place, ended, rows, columns = columns_between(queue, place, wanted.end, BATCH_ROWS, BATCH_BYTES, offset_ns)
        found += rows
        if rows:
            batch = _Batch(wanted.queue, rows, columns)
            yield pa.RecordBatch.from_arrays(
                [batch.array(name, schema.field(name).type) for name in names], schema=schema
            )
    check_found(wanted, found, fail_on_data_loss)


class _Batch:
    """What the core has copied of some entries.

    Arguments:
        queue: for the column of that name.
        rows: how many entries.
        columns: of them.
    """

    def __init__(self, queue: str, rows: int, columns: tuple[bytes, ...]) -> None:
        self._queue = queue
        self._rows = rows
        self._numbers = dict(
            zip(("position", "message_id", "enqueued_at", "priority", "delivery_count"), columns[:5], strict=True)
        )
        self._content, self._head_ends, self._head_bytes, self._body_ends, self._bodies = columns[5:]

    def array(self, name: str, kind: pyarrow.DataType) -> pyarrow.Array:
        import pyarrow as pa

        if name in self._numbers:
            return pa.Array.from_buffers(kind, self._rows, [None, pa.py_buffer(self._numbers[name])])
        if name == "queue":
            return pa.repeat(pa.scalar(self._queue, kind), self._rows)
        if name == "body":
            buffers = [None, pa.py_buffer(self._body_ends), pa.py_buffer(self._bodies)]
            return pa.Array.from_buffers(kind, self._rows, buffers)
        if name == "content_type":
            return self._content_types(kind)
        return self._heads.groups if name == "group" else self._heads.headers

    @cached_property
    def _heads(self) -> Heads:
        """Read once for all columns that need them."""
        return heads_as_columns(self._head_ends, self._head_bytes)

    def _content_types(self, kind: pyarrow.DataType) -> pyarrow.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        codes = np.frombuffer(self._content, np.uint8)
        known = pa.array([*CONTENT_TYPES, ""], kind).take(pa.array(np.minimum(codes, len(CONTENT_TYPES))))
        named = codes == NAMED
        return pc.if_else(pa.array(named), pc.fill_null(self._heads.content_types, ""), known) if named.any() else known
