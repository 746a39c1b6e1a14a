"""Arrow batches from columns that the core has filled: no object is made for a row.

Headers, groups and named content types lie in one block before the body, the head, which is read only where these
columns are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shmq.codec import CONTENT_TYPES, NAMED
from shmq.core.handles import browse_columns
from shmq.engine.arrow.head_columns import Heads, heads_as_columns
from shmq.engine.arrow.row import BATCH_BYTES, BATCH_ROWS, arrow_schema, deaths_of
from shmq.engine.handle.open_queue import OpenQueue

if TYPE_CHECKING:
    import pyarrow

__all__ = ["batch_of", "batches_between"]


def batch_of(queue: str, rows: int, columns: tuple[bytes, ...], names: Sequence[str]) -> pyarrow.RecordBatch:
    """Makes an Arrow batch of the core's copy of some entries.

    Arguments:
        queue: for the column of that name.
        rows: how many entries.
        columns: of them, as _native.Columns says.
        names: of the batch's columns, in their order.
    """
    import pyarrow as pa

    schema, made = arrow_schema(names), _Columns(queue, rows, columns)
    return pa.RecordBatch.from_arrays([made.array(field.name, field.type) for field in schema], schema=schema)


def batches_between(
    queue: OpenQueue, begin: int, end: int, names: Sequence[str], shown_as: str
) -> Iterator[pyarrow.RecordBatch]:
    """Yields batches of the entries from position `begin` on and before `end`, in order. It takes no entry.

    Arguments:
        queue: whose entries they are.
        begin, end: positions, of one level.
        names: of the columns, in their order.
        shown_as: for the column `queue`.
    """
    ended = begin >= end
    while not ended:
        begin, ended, rows, columns = browse_columns(queue, begin, end, BATCH_ROWS, BATCH_BYTES)
        if rows:
            yield batch_of(shown_as, rows, columns, names)


class _Columns:
    """Arrow columns of some entries, made when they are asked for."""

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
        if name == "death":
            return pa.array(deaths_of(self._head_ends, self._head_bytes), kind)
        return self._heads.groups if name == "group" else self._heads.headers

    @cached_property
    def _heads(self) -> Heads:
        """The heads of the entries, read once for all columns that need them."""
        return heads_as_columns(self._head_ends, self._head_bytes)

    def _content_types(self, kind: pyarrow.DataType) -> pyarrow.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        codes = np.frombuffer(self._content, np.uint8)
        known = pa.array([*CONTENT_TYPES, ""], kind).take(pa.array(np.minimum(codes, len(CONTENT_TYPES))))
        named = codes == NAMED
        return pc.if_else(pa.array(named), pc.fill_null(self._heads.content_types, ""), known) if named.any() else known
