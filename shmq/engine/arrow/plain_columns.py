"""Columns as other libraries make them, in the types that a queue takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from shmq.engine.arrow.outgoing import COLUMNS

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ArrowStream", "batches_in", "plain"]


class _Stream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class _Array(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...


ArrowStream = _Stream | _Array | Iterable[_Stream | _Array]

_WANTED: Final = {
    "body": "binary or text",
    "headers": "a map of texts to texts",
    "priority": "whole numbers",
    "group": "text",
    "ttl": "numbers (seconds)",
    "delay": "numbers (seconds)",
    "content_type": "text",
}


def batches_in(given: Any) -> Iterator[pyarrow.RecordBatch]:
    """Yields the batches of an Arrow stream, of an array of structs, or of an iterable of such. Raises TypeError."""
    import pyarrow as pa

    if hasattr(given, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(given)
    elif hasattr(given, "__arrow_c_array__"):
        yield pa.record_batch(given)
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        for each in given:
            if not hasattr(each, "__arrow_c_stream__") and not hasattr(each, "__arrow_c_array__"):
                raise _no_stream(each)
            yield from batches_in(each)
    else:
        raise _no_stream(given)


def _no_stream(given: object) -> TypeError:
    return TypeError(
        f"put_arrow(): an Arrow stream is expected, not {type(given).__name__}; give a table of pyarrow, a frame of "
        "pandas or polars, a relation of DuckDB, or several of them in a list; put_many() takes bodies"
    )


def plain(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Converts rows into the types that outgoing() and bodies_of() know.

    Raises ValueError naming the column and the remedy.
    """
    import pyarrow as pa

    names = batch.schema.names
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        raise ValueError(
            f"column {unknown[0]!r} cannot be put into a queue; there are: {', '.join(COLUMNS)}; leave the others "
            "out, or make one body of them, such as a text of JSON"
        )
    if "body" not in names or len(set(names)) != len(names):
        raise ValueError(
            f"one column 'body' is expected, and each other one once; there are: {', '.join(names) or 'none'}"
        )
    columns = []
    for name, column in zip(names, batch.columns, strict=True):
        made = _PLAIN[name](_unwrapped(column))
        if made is None:
            raise ValueError(f"column {name!r} is of the type {column.type}; {_WANTED[name]} is expected: cast it")
        columns.append(made)
    return pa.RecordBatch.from_arrays(columns, names=names)


def _unwrapped(column: pyarrow.Array) -> pyarrow.Array:
    import pyarrow as pa

    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def _is_text(kind: pyarrow.DataType) -> bool:
    import pyarrow as pa

    return bool(kind in (pa.string(), pa.large_string(), pa.string_view()))


def _body(column: pyarrow.Array) -> pyarrow.Array | None:
    import pyarrow as pa

    wide = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary(), pa.null(): pa.binary()}
    if column.type in wide:
        return column.cast(wide[column.type])
    if pa.types.is_fixed_size_binary(column.type):
        return column.cast(pa.binary())
    return column if column.type in (pa.binary(), pa.large_binary(), pa.string(), pa.large_string()) else None


def _text(column: pyarrow.Array) -> pyarrow.Array | None:
    import pyarrow as pa

    return column.cast(pa.string()) if _is_text(column.type) or column.type == pa.null() else None


def _whole(column: pyarrow.Array) -> pyarrow.Array | None:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_unsigned_integer(kind) or kind == pa.null():
        return column.cast(pa.int64())
    return column if pa.types.is_integer(kind) else None


def _number(column: pyarrow.Array) -> pyarrow.Array | None:
    import pyarrow as pa

    return column if column.type in (pa.float32(), pa.float64()) else _whole(column)


def _headers(column: pyarrow.Array) -> pyarrow.Array | None:
    """A map, or a list of pairs, which is what a map becomes where there is no such type."""
    import pyarrow as pa

    kind, texts = column.type, pa.map_(pa.string(), pa.string())
    if kind == pa.null():
        return column.cast(texts)
    if pa.types.is_map(kind):
        return column.cast(texts) if _is_text(kind.key_type) and _is_text(kind.item_type) else None
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return None
    pairs = column.values
    if not pa.types.is_struct(pairs.type) or [_is_text(field.type) for field in pairs.type] != [True, True]:
        return None
    ends = column.offsets.cast(pa.int32())
    names, values = (pairs.field(number).cast(pa.string()) for number in range(2))
    return pa.MapArray.from_arrays(ends, names, values, mask=column.is_null())


_PLAIN: Final[Mapping[str, Callable[[Any], Any]]] = {
    "body": _body,
    "headers": _headers,
    "priority": _whole,
    "group": _text,
    "ttl": _number,
    "delay": _number,
    "content_type": _text,
}
