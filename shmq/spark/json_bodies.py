"""Bodies of JSON as columns of a schema: the column `body` is a struct, and what does not fit it is told."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from shmq.engine.arrow.row import FIELDS, ddl

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import DataType, StructType

__all__ = ["CORRUPT", "JsonBodies", "ddl_with_body"]

CORRUPT: Final = "_corrupt_record"  # as Spark's source of JSON calls it
_COMPLEX: Final = re.compile(r"\s*(struct|array|map)\s*<", re.IGNORECASE)
_EXCERPT: Final = 60  # bytes of a body that an error shows
_FLOATS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_UNFIT: Final = (ValueError, TypeError, OverflowError, RecursionError, ArithmeticError)

Convert = Callable[[Any], Any]


def ddl_with_body(body: str, names: Sequence[str] | None, fails: bool) -> str:
    """Returns the schema of a read as Spark's DDL.

    Arguments:
        body: of the JSON in bodies: fields with commas between, or one type.
        names: of the columns, in their order; None: all, and the bodies that do not fit, unless they are an error.
        fails: they are.

    Raises ValueError for a name that there is not.
    """
    kind = body if _COMPLEX.match(body) else f"struct<{body}>"
    wanted = [field.name for field in FIELDS] + ([] if fails else [CORRUPT]) if names is None else names
    known = {name: ddl([name]) for name in wanted if name not in ("body", CORRUPT)}
    known |= {"body": f"`body` {kind}", CORRUPT: f"`{CORRUPT}` binary"}
    return ", ".join(known[name] for name in wanted)


class JsonBodies:
    """Makes the column `body` of a schema from the bytes of bodies. Spark hands it to the tasks.

    Arguments:
        schema: of the read.
        fails: a body that does not fit is a ValueError. False: it is NULL, and its bytes are in a column of their own.

    Raises ValueError for a type that no JSON can have.
    """

    def __init__(self, schema: StructType, fails: bool) -> None:
        self._names = schema.names
        self._kind: DataType = schema["body"].dataType
        self._fails = fails
        _converter(self._kind, "body")

    def columns(self) -> tuple[str, ...]:
        """The columns that are read for the schema, in their order."""
        plain = [name for name in self._names if name != CORRUPT]
        return tuple(dict.fromkeys([*plain, *(("queue", "position") if self._fails else ())]))

    def parsed(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Yields the rows with the schema's columns. Raises ValueError, with queue and position, for an unfit body."""
        import pyarrow as pa

        convert, kind = _converter(self._kind, "body"), _arrow_type(self._kind)
        for batch in batches:
            bodies = batch.column("body").to_pylist()
            values, unfit = _values(bodies, convert, kind)
            if unfit and self._fails:
                row = min(unfit)
                raise ValueError(self._told(batch, row, bodies[row], unfit[row]))
            made = {
                "body": values,
                CORRUPT: pa.array([body if n in unfit else None for n, body in enumerate(bodies)], pa.binary()),
            }
            columns = [made[name] if name in made else batch.column(name) for name in self._names]
            yield pa.RecordBatch.from_arrays(columns, names=self._names)

    def _told(self, batch: pyarrow.RecordBatch, row: int, body: bytes, why: str) -> str:
        queue, position = batch.column("queue")[row].as_py(), batch.column("position")[row].as_py()
        return (
            f"the body at position {position} of queue {queue!r} does not fit the schema: {why}; it begins with "
            f"{body[:_EXCERPT]!r}; with the option mode=PERMISSIVE it is NULL, and its bytes are in {CORRUPT}"
        )


def _values(bodies: Sequence[bytes], convert: Convert, kind: pyarrow.DataType) -> tuple[pyarrow.Array, dict[int, str]]:
    """Returns the column, and for each row whose body does not fit why."""
    import pyarrow as pa

    values: list[Any] = []
    unfit: dict[int, str] = {}
    for number, body in enumerate(bodies):
        try:
            values.append(convert(json.loads(body, parse_float=Decimal)))
        except _UNFIT as error:
            values.append(None)
            unfit[number] = str(error)
    try:
        return pa.array(values, kind), unfit
    except (pa.ArrowException, *_UNFIT):
        pass
    for number, value in enumerate(values):  # which of them
        try:
            pa.array([value], kind)
        except (pa.ArrowException, *_UNFIT) as error:
            values[number] = None
            unfit[number] = str(error)
    return pa.array(values, kind), unfit


def _converter(kind: DataType, place: str) -> Convert:
    """Returns a function that converts a JSON value to a type of Spark. NULL belongs to each type."""
    from pyspark.sql import types as of

    convert: Convert
    if isinstance(kind, of.StructType):
        convert = _struct({field.name: _converter(field.dataType, f"{place}.{field.name}") for field in kind.fields})
    elif isinstance(kind, of.ArrayType):
        convert = _array(_converter(kind.elementType, f"{place}[]"))
    elif isinstance(kind, of.MapType) and isinstance(kind.keyType, of.StringType):
        convert = _map(_converter(kind.valueType, f"{place}{{}}"))
    else:
        plain = {
            of.StringType: _text, of.BooleanType: _of(bool), of.ByteType: _of(int), of.ShortType: _of(int),
            of.IntegerType: _of(int), of.LongType: _of(int), of.FloatType: _float, of.DoubleType: _float,
            of.DecimalType: _of(int, Decimal), of.DateType: _date, of.TimestampType: _timestamp,
            of.TimestampNTZType: _local_timestamp, of.BinaryType: _binary,
        }  # fmt: skip
        if type(kind) not in plain:
            raise ValueError(f"the type {kind.simpleString()} of {place} cannot be read from JSON")
        convert = plain[type(kind)]
    return lambda value: None if value is None else convert(value)


def _arrow_type(kind: DataType) -> pyarrow.DataType:
    """Returns the type that Spark expects of a column. (PySpark's function takes other arguments in each version.)"""
    import pyarrow as pa
    from pyspark.sql import types as of

    if isinstance(kind, of.StructType):
        return pa.struct([pa.field(field.name, _arrow_type(field.dataType)) for field in kind.fields])
    if isinstance(kind, of.ArrayType):
        return pa.list_(_arrow_type(kind.elementType))
    if isinstance(kind, of.MapType):
        return pa.map_(pa.string(), _arrow_type(kind.valueType))
    if isinstance(kind, of.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    return {
        of.StringType: pa.string(), of.BooleanType: pa.bool_(), of.ByteType: pa.int8(), of.ShortType: pa.int16(),
        of.IntegerType: pa.int32(), of.LongType: pa.int64(), of.FloatType: pa.float32(), of.DoubleType: pa.float64(),
        of.DateType: pa.date32(), of.TimestampType: pa.timestamp("us", tz="UTC"),
        of.TimestampNTZType: pa.timestamp("us"), of.BinaryType: pa.binary(),
    }[type(kind)]  # fmt: skip


def _struct(fields: dict[str, Convert]) -> Convert:
    def convert(value: Any) -> dict[str, Any]:
        return {name: made(_fit(value, dict).get(name)) for name, made in fields.items()}

    return convert


def _array(made: Convert) -> Convert:
    return lambda value: [made(each) for each in _fit(value, list)]


def _map(made: Convert) -> Convert:
    return lambda value: [(name, made(each)) for name, each in _fit(value, dict).items()]


def _of(*kinds: type) -> Convert:
    return lambda value: _fit(value, *kinds)


def _fit(value: Any, *kinds: type) -> Any:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise ValueError(f"{type(value).__name__} instead of {' or '.join(kind.__name__ for kind in kinds)}")
    return value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=float)


def _float(value: Any) -> float:
    return _FLOATS[value] if isinstance(value, str) and value in _FLOATS else float(_fit(value, int, float, Decimal))


def _date(value: Any) -> date:
    return date.fromisoformat(_fit(value, str))


def _timestamp(value: Any) -> datetime:
    found = datetime.fromisoformat(_fit(value, str))
    return found.replace(tzinfo=found.tzinfo or UTC)


def _local_timestamp(value: Any) -> datetime:
    return datetime.fromisoformat(_fit(value, str)).replace(tzinfo=None)


def _binary(value: Any) -> bytes:
    return base64.b64decode(_fit(value, str), validate=True)
