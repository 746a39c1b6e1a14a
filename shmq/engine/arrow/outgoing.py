"""Converts rows of Arrow columns into what a put takes: a body and its options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from shmq.codec import OCTETS, TEXT
from shmq.engine.arrow.bodies import Bodies
from shmq.engine.arrow.option_columns import options_of

if TYPE_CHECKING:
    import pyarrow

__all__ = ["COLUMNS", "ROUTED", "Outgoing", "bodies_of", "check_columns", "checked", "outgoing"]

_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
# The columns that a frame may have, and the types of Spark that each may be.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "body": ("binary", "string"),
    "headers": ("map<string,string>",),
    "priority": _WHOLE,
    "group": ("string",),
    "ttl": (*_WHOLE, "float", "double"),
    "delay": (*_WHOLE, "float", "double"),
    "content_type": ("string",),
}
ROUTED: Final[Mapping[str, tuple[str, ...]]] = {**COLUMNS, "queue": ("string",)}  # of a write into several queues


class Outgoing(NamedTuple):
    """One row: its body and the options of its put(); times are in seconds."""

    body: bytes | str
    options: Mapping[str, Any]
    content_type: str | None
    queue: str | None = None  # the queue that takes the row; None: that of the write

    @property
    def timed(self) -> bool:
        """Says whether the row has a ttl or a delay."""
        return "ttl" in self.options or "delay" in self.options


def check_columns(types: Mapping[str, str]) -> None:
    """Checks that a frame with these columns can be written.

    Arguments:
        types: names of columns and their types, as Spark calls them.
    Raises ValueError naming the column and the remedy.
    """
    unknown = [name for name in types if name not in ROUTED]
    if unknown:
        fit = ", ".join(repr(name) for name in types if name in COLUMNS)
        selected = f"write .select({fit})" if "body" in types else "leave the others out with select()"
        raise ValueError(
            f"column {', '.join(map(repr, unknown))} cannot be written into a queue; there are: "
            f"{', '.join(ROUTED)}; {selected}, or make one body of all: to_json(struct('*')) AS body"
        )
    if "body" not in types:
        raise ValueError("the frame has no column 'body'; make one: to_json(struct('*')) AS body")
    for name, kind in types.items():
        if kind not in ROUTED[name]:
            cast = f"cast it: CAST(NULL AS {ROUTED[name][-1]})" if kind == "void" else "cast it"
            raise ValueError(f"column {name!r} is {kind}; {' or '.join(ROUTED[name])} is expected: {cast}")


def checked(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Yields the batches if their texts are UTF-8: Arrow and Spark keep any bytes in a string. Raises ValueError naming
    column and row, from 0 on."""
    import pyarrow as pa

    before = 0
    for batch in batches:
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                _check_texts(name, column, before)
            raise ValueError(f"an Arrow batch does not fit together: {error}") from None
        before += batch.num_rows
        yield batch


def _check_texts(name: str, column: pyarrow.Array, before: int) -> None:
    for number in range(len(column)):
        try:
            column[number].as_py()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"column {name!r} of row {before + number:,} is no text in UTF-8: {error}; make text of it first, in "
                "Spark by decode(body, 'ISO-8859-1') of the bytes as they were read, or leave a body binary"
            ) from None


def bodies_of(batch: pyarrow.RecordBatch) -> Bodies | None:
    """Returns the rows of an Arrow batch without a copy; None: they are put one by one, or one cannot be put."""
    import pyarrow as pa

    kinds = {pa.binary(): (OCTETS, False), pa.large_binary(): (OCTETS, True),
             pa.string(): (TEXT, False), pa.large_string(): (TEXT, True)}  # fmt: skip
    if "body" not in batch.schema.names:
        return None
    column = batch.column("body")
    if column.type not in kinds or column.null_count:
        return None
    content, wide = kinds[column.type]
    options = options_of(batch, content) if batch.num_columns > 1 else None
    if options is None and batch.num_columns > 1:
        return None
    _, ends, data = column.buffers()
    return Bodies(content, wide, ends, b"" if data is None else data, column.offset, len(column), options)


def outgoing(batch: pyarrow.RecordBatch, queue: str | None = None) -> Iterator[Outgoing]:
    """Yields the rows of an Arrow batch, all for one queue. Raises ValueError for a body that is NULL."""
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    bodies = columns.pop("body")
    kinds = columns.pop("content_type", None)
    for number, body in enumerate(bodies):
        if body is None:
            raise ValueError("a row's body is NULL; leave such rows out: where('body IS NOT NULL')")
        options = {
            name: dict(values[number]) if name == "headers" else values[number]  # Arrow has a map as pairs
            for name, values in columns.items()
            if values[number] is not None
        }
        yield Outgoing(body, options, None if kinds is None else kinds[number], queue)
