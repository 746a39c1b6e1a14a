"""Takes, browses and puts a queue's messages as Arrow streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

from shmq.core import clock
from shmq.core.handles import browse_entry, ends_of, get_columns
from shmq.engine.arrow.bodies import Bodies
from shmq.engine.arrow.column_batches import batch_of, batches_between
from shmq.engine.arrow.outgoing import Outgoing, bodies_of, checked, outgoing
from shmq.engine.arrow.plain_columns import batches_in, plain
from shmq.engine.arrow.put_rows import Rules, put_bodies, put_row
from shmq.engine.arrow.row import BATCH_BYTES, BATCH_ROWS, FIELDS, arrow_schema, batches
from shmq.engine.handle.open_queue import OpenQueue, membership_of
from shmq.engine.handle.places import first_of
from shmq.engine.message.selection import entry_selection

if TYPE_CHECKING:
    import pyarrow

__all__ = ["looked_at", "put_stream", "taken"]


def _arrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        text = f"{error}; pip install 'shmq[arrow]' brings it"
        raise ModuleNotFoundError(text, name=error.name, path=error.path) from error
    return pyarrow


def _names(columns: Sequence[str] | None) -> tuple[str, ...]:
    """Raises TypeError, and ValueError with the columns that there are."""
    if columns is None:
        return tuple(field.name for field in FIELDS)
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r}: a list of names is expected; give [{columns!r}]")
    arrow_schema(columns)
    return tuple(columns)


def taken(
    queue: OpenQueue, limit: int, timeout: float | None, columns: Sequence[str] | None
) -> pyarrow.RecordBatchReader:
    """Implements Queue.get_arrow()."""
    pa = _arrow()
    names = _names(columns)
    found = get_columns(queue, limit, BATCH_ROWS, BATCH_BYTES, timeout)
    made = [batch_of(queue.name, rows, each, names) for rows, each in found]
    return pa.RecordBatchReader.from_batches(arrow_schema(names), made)


def looked_at(queue: OpenQueue, selector: str | None, columns: Sequence[str] | None) -> pyarrow.RecordBatchReader:
    """Implements Queue.browse_arrow()."""
    pa = _arrow()
    names = _names(columns)
    ends = ends_of(queue)
    levels = list(zip(first_of(ends), ends, strict=True))
    wall_of = membership_of(queue).member.wall_of
    selects = entry_selection(selector, wall_of)
    if selects is None:
        found: Iterator[Any] = chain.from_iterable(
            batches_between(queue, *level, names, queue.name) for level in levels
        )
    else:
        entries = chain.from_iterable(_entries(queue, *level) for level in levels)
        found = batches(filter(selects, entries), queue.name, names, wall_of)
    return pa.RecordBatchReader.from_batches(arrow_schema(names), found)


def _entries(queue: OpenQueue, begin: int, end: int) -> Iterator[Any]:
    while begin < end:
        begin, seen = browse_entry(queue, begin)
        if seen is None or seen[0] >= end:
            return
        yield seen


def put_stream(queue: OpenQueue, rules: Rules, given: Any, timeout: float | None) -> int:
    """Implements Queue.put_arrow().

    rules: of the queue.
    """
    _arrow()
    deadline = None if timeout is None else clock.monotonic() + timeout
    accepted = 0
    try:
        for rows in chain.from_iterable(map(_rows_of, checked(map(plain, batches_in(given))))):
            left = None if deadline is None else max(deadline - clock.monotonic(), 0)
            if isinstance(rows, Bodies):
                put_bodies(queue, queue.name, rules, rows, left)
                accepted += rows.count
            else:
                put_row(queue, queue.name, rules, rows, left)
                accepted += 1
    except BaseException as error:
        with suppress(AttributeError):  # an exception of the stream that takes no attributes is raised as it is
            error.accepted = accepted + getattr(error, "accepted", 0)  # type: ignore[attr-defined]
        raise
    return accepted


def _rows_of(batch: pyarrow.RecordBatch) -> Iterable[Outgoing | Bodies]:
    bodies = bodies_of(batch)
    return outgoing(batch) if bodies is None else (bodies,)
