"""Options of the rows of an Arrow batch, as columns that the core puts: no object for a row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from shmq.codec import CONTENT_TYPES, NAMED
from shmq.core.queue import column_heads
from shmq.engine.arrow.bodies import RowOptions
from shmq.headers import MAX_USER_BYTES
from shmq.options.message import DEFAULT_PRIORITY
from shmq.options.value import FOREVER

if TYPE_CHECKING:
    import pyarrow

__all__ = ["options_of"]

_NEVER_NS: Final = (1 << 64) - 1
_TEXTS: Final = ("group", "content_type")
_Texts = tuple[Any, Any, Any]  # is there one (bool each), ends (int32, one more), bytes


def options_of(batch: pyarrow.RecordBatch, content: int) -> RowOptions | None:
    """Returns the options of all rows; None: some are not plain, or unfit, and the rows are put one by one.

    Arguments:
        batch: its columns besides `body` are looked at.
        content: code of a body whose row names no content type.
    """
    columns = {name: batch.column(name) for name in batch.schema.names if name != "body"}
    if not _is_plain(batch, columns):
        return None
    rows = batch.num_rows
    priorities, ttls = _priorities(columns.get("priority"), rows), _ttls(columns.get("ttl"), rows)
    contents, content_types = _contents(columns.get("content_type"), rows, content)
    heads = _heads(columns, content_types, rows)
    if priorities is None or ttls is None or heads is None:
        return None
    asked = {name: columns[name] for name in ("priority", "group") if name in columns}
    firsts = sorted({int(_there(column).argmax()) for column in asked.values() if column.null_count < rows})
    return RowOptions(
        contents,
        priorities,
        ttls,
        np.frombuffer(heads[0], np.int32),
        heads[1],
        tuple({name: column[n].as_py() for name, column in asked.items() if column[n].is_valid} for n in firsts),
        "ttl" in columns and columns["ttl"].null_count < rows,
    )


def _is_plain(batch: pyarrow.RecordBatch, columns: dict[str, Any]) -> bool:
    import pyarrow as pa

    whole = pa.types.is_signed_integer
    fits = {
        **{name: lambda kind: bool(kind == pa.string()) for name in _TEXTS},
        "headers": lambda kind: pa.types.is_map(kind) and kind.key_type == kind.item_type == pa.string(),
        "priority": whole,
        "ttl": lambda kind: whole(kind) or kind in (pa.float32(), pa.float64()),
        "delay": lambda kind: True,
    }
    if not all(name in fits and fits[name](column.type) for name, column in columns.items()):
        return False
    if "delay" in columns and columns["delay"].null_count < batch.num_rows:
        return False  # seldom; the target checks each row that is put alone
    try:
        batch.validate(full=True)  # the read row by row raises the error for text that is not UTF-8
    except pa.ArrowInvalid:
        return False
    return True


def _there(column: pyarrow.Array) -> Any:
    return column.is_valid().to_numpy(zero_copy_only=False)


def _priorities(column: pyarrow.Array | None, rows: int) -> Any:
    if column is None:
        return np.full(rows, DEFAULT_PRIORITY, np.uint8)
    values = column.fill_null(DEFAULT_PRIORITY).to_numpy(zero_copy_only=False)
    return values.astype(np.uint8) if ((values >= 0) & (values <= 9)).all() else None


def _ttls(column: pyarrow.Array | None, rows: int) -> Any:
    """Returns the times to live in nanoseconds, each converted from seconds as shmq.core.queue does it."""
    import pyarrow as pa

    if column is None:
        return np.full(rows, _NEVER_NS, np.uint64)
    seconds = column.cast(pa.float64(), safe=False).fill_null(math.inf).to_numpy(zero_copy_only=False)
    if not (seconds >= 0).all():  # so also for NaN
        return None
    endless = seconds >= FOREVER
    short = np.where(endless, 0.0, seconds)
    ns = np.maximum(np.rint(short * 1e9), short > 0).astype(np.uint64)
    return np.where(endless, np.uint64(_NEVER_NS), ns)


def _contents(column: pyarrow.Array | None, rows: int, content: int) -> tuple[Any, _Texts]:
    """Returns the code of each body, and the content types that heads have to name."""
    import pyarrow as pa
    import pyarrow.compute as pc

    there, ends, names = _texts(column, rows)
    contents = np.where(there, NAMED, content).astype(np.uint8)
    if column is not None:
        codes = pc.index_in(column, value_set=pa.array(CONTENT_TYPES, pa.string()))
        known = _there(codes)
        contents[known] = codes.drop_null().to_numpy(zero_copy_only=False)
        there = there & ~known
    return contents, (there, ends, names)


def _texts(column: pyarrow.Array | None, rows: int) -> _Texts:
    if column is None or not rows:
        return np.zeros(rows, bool), np.zeros(rows + 1, np.int32), b""
    _, ends, data = column.buffers()
    ends = np.frombuffer(ends, np.int32, rows + 1, 4 * column.offset)
    return _there(column), ends, b"" if data is None else data


def _heads(columns: dict[str, Any], content_types: _Texts, rows: int) -> tuple[bytes, bytes] | None:
    maps = columns.get("headers")
    there: Any = np.zeros(rows, bool)
    ends: Any = np.zeros(rows + 1, np.int32)
    names = values = _texts(None, 0)
    if maps is not None:
        there, ends = _there(maps), maps.offsets.to_numpy()
        names, values = _texts(maps.keys, len(maps.keys)), _texts(maps.items, len(maps.items))
    return column_heads(MAX_USER_BYTES, _texts(columns.get("group"), rows), content_types, names, values, there, ends)
