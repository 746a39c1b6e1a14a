"""Arrow batches of a range of entries, from columns that the core has filled: no object is made for a row.

Headers, groups and named content types lie in one block before the body, the head; where a batch has heads, and these
columns are asked for, Python reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from shmq.codec import CONTENT_TYPES, content_type_of
from shmq.engine.claim import clock_offset_of, columns_between
from shmq.headers import HeaderBlock, decode_headers
from shmq.spark.entry_range import EntryRange, check_found, queue_of
from shmq.spark.row import BATCH_BYTES, BATCH_ROWS, arrow_schema, header_text

if TYPE_CHECKING:
    import pyarrow

    from shmq.engine.broker import Broker

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
        self._content, self._head_ends, self._heads, self._body_ends, self._bodies = columns[5:]
        self._read: list[HeaderBlock] | None = None
        self._made: Mapping[str, Callable[[Any], pyarrow.Array]] = {
            "queue": self._queues, "group": self._groups, "content_type": self._content_types,
            "headers": self._headers, "body": self._body,
        }  # fmt: skip

    def array(self, name: str, kind: pyarrow.DataType) -> pyarrow.Array:
        import pyarrow as pa

        if name in self._numbers:
            return pa.Array.from_buffers(kind, self._rows, [None, pa.py_buffer(self._numbers[name])])
        return self._made[name](kind)

    def _queues(self, kind: pyarrow.DataType) -> pyarrow.Array:
        import pyarrow as pa

        return pa.repeat(pa.scalar(self._queue, kind), self._rows)

    def _body(self, kind: pyarrow.DataType) -> pyarrow.Array:
        import pyarrow as pa

        return pa.Array.from_buffers(
            kind, self._rows, [None, pa.py_buffer(self._body_ends), pa.py_buffer(self._bodies)]
        )

    def _blocks(self) -> list[HeaderBlock]:
        """The heads, read once for all columns that need them."""
        if self._read is None:
            ends = memoryview(self._head_ends).cast("i")
            self._read = [decode_headers(self._heads[ends[n] : ends[n + 1]]) for n in range(self._rows)]
        return self._read

    def _groups(self, kind: pyarrow.DataType) -> pyarrow.Array:
        import pyarrow as pa

        return pa.array([block.group for block in self._blocks()], kind) if self._heads else pa.nulls(self._rows, kind)

    def _headers(self, kind: pyarrow.DataType) -> pyarrow.Array:
        import pyarrow as pa

        if self._heads:
            texts = [[(name, header_text(value)) for name, value in block.user.items()] for block in self._blocks()]
            return pa.array(texts, kind)
        nothing = pa.array([], pa.string())
        ends = pa.Array.from_buffers(pa.int32(), self._rows + 1, [None, pa.py_buffer(bytes(4 * (self._rows + 1)))])
        return pa.MapArray.from_arrays(ends, nothing, nothing)

    def _content_types(self, kind: pyarrow.DataType) -> pyarrow.Array:
        import pyarrow as pa

        if max(self._content) >= len(CONTENT_TYPES):  # some are named in the head
            blocks = self._blocks() if self._heads else [HeaderBlock({})] * self._rows
            named = zip(self._content, blocks, strict=True)
            return pa.array([content_type_of(code, block.content_type) for code, block in named], kind)
        codes = pa.Array.from_buffers(pa.uint8(), self._rows, [None, pa.py_buffer(self._content)])
        return pa.array(CONTENT_TYPES, kind).take(codes)
