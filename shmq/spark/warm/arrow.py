"""Arrow batches as bytes, and whether a result has the schema that was promised."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

__all__ = ["SchemaMismatch", "batches_of", "bytes_of", "fitted", "read_schema"]


class SchemaMismatch(TypeError):
    """A result has not the columns that were promised; the text names the column."""


def bytes_of(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> bytes:
    """Writes batches as one Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def batches_of(data: bytes) -> list[pa.RecordBatch]:
    """Reads the batches from the stream that bytes_of() has written."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return list(reader)


def read_schema(data: bytes) -> pa.Schema:
    """Reads the schema that Schema.serialize() has written."""
    return pa.ipc.read_schema(pa.py_buffer(data))


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the batch with the columns of the schema in their order. Raises SchemaMismatch."""
    found = batch.schema.names
    for text, names in (
        ("is missing", set(schema.names) - set(found)),
        ("is too many", set(found) - set(schema.names)),
    ):
        if names:
            raise SchemaMismatch(
                f"column {min(names)!r} {text}: the handler returned {', '.join(found) or 'none'}, "
                f"the schema has {', '.join(schema.names)}"
            )
    if len(found) != len(schema.names):
        raise SchemaMismatch(f"a column comes twice: the handler returned {', '.join(found)}")
    columns = [_column(batch.column(field.name), field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batch


def _column(values: pa.Array, field: pa.Field) -> pa.Array:
    if values.type == field.type:
        return values
    # The same moments in another zone, or a list whose element has another name.
    times = pa.types.is_timestamp(values.type) and pa.types.is_timestamp(field.type)
    if (times and (values.type.tz is None) == (field.type.tz is None)) or (
        pa.types.is_nested(field.type) and values.type.id == field.type.id
    ):
        try:
            return values.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    raise SchemaMismatch(
        f"column {field.name!r}: the handler returned {values.type}, the schema has {field.type}; "
        "cast it in the handler, or name its type in the schema"
    )
