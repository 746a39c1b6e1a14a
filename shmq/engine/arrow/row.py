"""The rows of entries, schema v1: names and types stay as they are as long as the format's version does.

    queue string, position long, message_id long, enqueued_at timestamp, priority int, group string,
    delivery_count int, content_type string, headers map<string,string>, body binary

A reader that names it gets one more column: `death`, a struct with the fields of shmq.Death; NULL: it is not dead.
A body is the bytes as they lie in the queue; `content_type` says what they are. Headers are text: a number as Python
writes it, True as "true", bytes in base64.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from shmq.codec import content_type_of
from shmq.headers import Header, HeaderBlock, decode_headers

if TYPE_CHECKING:
    import pyarrow

    from shmq.core.queue import Browsed
    from shmq.engine.message.selection import WallOf

__all__ = [
    "BATCH_BYTES",
    "BATCH_ROWS",
    "BY_NAME",
    "FIELDS",
    "Field",
    "arrow_schema",
    "batches",
    "check_schema",
    "ddl",
    "deaths_of",
    "header_text",
]

_OWN_CONTENT: Final = 255  # the content type stands in the head
# An Arrow batch ends here: Spark is fastest with some tens of thousands of rows, and a batch lies whole in memory.
BATCH_ROWS: Final = 16_384
BATCH_BYTES: Final = 16 << 20


def header_text(value: Header) -> str:
    """Returns the text of a header's value for the column `headers`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


class _Entry(NamedTuple):
    """The source of one row's columns."""

    queue: str
    seen: Browsed
    head: HeaderBlock
    wall_of: WallOf


class Field(NamedTuple):
    """One column: its type for Spark and its value of an entry."""

    name: str
    type: str
    value: Callable[[_Entry], object]


def _content_type(entry: _Entry) -> str:
    content = entry.seen[3]
    return content_type_of(content, entry.head.content_type if content == _OWN_CONTENT else None)


def _headers(entry: _Entry) -> list[tuple[str, str]]:
    return [(name, header_text(value)) for name, value in entry.head.user.items()]


def _death_of(head: HeaderBlock) -> dict[str, object] | None:
    found = head.death
    return None if found is None else {**asdict(found), "at": int(found.at * 1e6)}


def deaths_of(ends: bytes, heads: bytes) -> list[dict[str, object] | None]:
    """Makes the column `death` of heads that lie one behind the other; see heads_as_columns()."""
    return [_death_of(decode_headers(heads[begin:end])) for begin, end in pairwise(memoryview(ends).cast("i"))]


FIELDS: Final = (
    Field("queue", "string", lambda e: e.queue),
    Field("position", "bigint", lambda e: e.seen[0]),
    Field("message_id", "bigint", lambda e: e.seen[1]),
    Field("enqueued_at", "timestamp", lambda e: e.wall_of(e.seen[2]) // 1000),
    Field("priority", "int", lambda e: e.seen[7]),
    Field("group", "string", lambda e: e.head.group),
    Field("delivery_count", "int", lambda e: e.seen[4] + e.seen[5]),
    Field("content_type", "string", _content_type),
    Field("headers", "map<string,string>", _headers),
    Field("body", "binary", lambda e: e.seen[9]),
)
_DEATH: Final = "struct<queue:string,reason:string,error:string,at:timestamp,pids:array<bigint>,signal:int>"
BY_NAME: Final = (Field("death", _DEATH, lambda e: _death_of(e.head)),)  # read only if they are named


def fields_of(names: Sequence[str]) -> list[Field]:
    """Returns the fields of these names, in this order. Raises ValueError for an unknown name, or one given twice."""
    known = {field.name: field for field in (*FIELDS, *BY_NAME)}
    wrong = [name for name in names if name not in known]
    if wrong:
        raise ValueError(f"there is no column {wrong[0]!r} in an entry; there are: {', '.join(known)}")
    if len(set(names)) != len(names):
        raise ValueError(f"a column is named twice: {', '.join(names)}")
    return [known[name] for name in names]


def ddl(names: Sequence[str] | None = None) -> str:
    """Returns the schema as Spark's DDL; names: of some columns, in their order."""
    fields: Sequence[Field] = FIELDS if names is None else fields_of(names)
    return ", ".join(f"`{field.name}` {field.type}" for field in fields)


def check_schema(types: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of a schema that a user has given, or of that which ddl() says.

    Arguments:
        types: names of columns and their types, as Spark calls them.
    Raises ValueError naming the column and what it is.
    """
    for field in fields_of(tuple(types)):
        if types[field.name] != field.type:
            raise ValueError(
                f"column {field.name!r} of an entry is {field.type}, not {types[field.name]}; "
                "read it so, and cast it with select()"
            )
    return tuple(types)


def _arrow_types() -> dict[str, pyarrow.DataType]:
    import pyarrow as pa

    time = pa.timestamp("us", tz="UTC")
    death = {"queue": pa.string(), "reason": pa.string(), "error": pa.string(), "at": time}
    return {
        "string": pa.string(),
        "bigint": pa.int64(),
        "timestamp": time,
        "int": pa.int32(),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
        "binary": pa.binary(),
        _DEATH: pa.struct(list({**death, "pids": pa.list_(pa.int64()), "signal": pa.int32()}.items())),
    }


def arrow_schema(names: Sequence[str]) -> pyarrow.Schema:
    """Returns the Arrow schema of batches with these columns."""
    import pyarrow as pa

    types = _arrow_types()
    return pa.schema([pa.field(field.name, types[field.type]) for field in fields_of(names)])


def batches(
    entries: Iterable[Browsed], queue: str, names: Sequence[str], wall_of: WallOf
) -> Iterator[pyarrow.RecordBatch]:
    """Arrow batches of the entries, in their order.

    Arguments:
        entries: as the core shows them.
        queue: for the column of that name.
        names: of the columns, in their order.
        wall_of: from the clock of the broker to the time of day.
    """
    import pyarrow as pa

    fields = fields_of(names)
    types = _arrow_types()
    schema = arrow_schema(names)

    def made(rows: list[_Entry]) -> pyarrow.RecordBatch:
        columns = [pa.array([field.value(row) for row in rows], types[field.type]) for field in fields]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    rows: list[_Entry] = []
    size = 0
    for seen in entries:
        rows.append(_Entry(queue, seen, decode_headers(seen[8]), wall_of))
        size += len(seen[9])
        if len(rows) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield made(rows)
            rows, size = [], 0
    if rows:
        yield made(rows)
