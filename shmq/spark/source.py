"""The classes that PySpark calls: the data source of the format "shmq". The modules beside it do all its work."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    Filter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from shmq.engine.arrow.outgoing import check_columns
from shmq.engine.arrow.row import check_schema, ddl
from shmq.errors import ShmqError
from shmq.spark.json_bodies import CORRUPT, JsonBodies, ddl_with_body
from shmq.spark.least_batch import LeastBatch
from shmq.spark.named_queue import check_target
from shmq.spark.options import FAILFAST, NO_QUEUE, SinkOptions, SourceOptions
from shmq.spark.placement import batch_sink, batch_source, stream_sink, stream_source
from shmq.spark.pushdown import Pushdown
from shmq.spark.stream_source import Limit

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType

    from shmq.spark.batch_source import BatchSource
    from shmq.spark.entry_range import EntryRange
    from shmq.spark.hosts import HostRange, HostsBatchSource, HostsStreamSource
    from shmq.spark.hosts_sink import HostsBatchSink, HostsStaged, HostsStreamSink
    from shmq.spark.sink import BatchSink, Staged, StreamSink
    from shmq.spark.stream_source import StreamSource

__all__ = ["ShmqDataSource"]


class _Partition(InputPartition):
    """A range of entries, as Spark hands it from the planner to a task."""

    def __init__(self, range: EntryRange | HostRange) -> None:
        super().__init__(range)


def _range_of(partition: InputPartition | None) -> Any:
    return None if partition is None else partition.value


class _BatchReader(DataSourceReader):
    def __init__(self, source: BatchSource | HostsBatchSource, bodies: JsonBodies | None) -> None:
        self._source = source
        self._bodies = bodies

    def partitions(self) -> list[InputPartition]:
        return [_Partition(range) for range in self._source.partitions()]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return _parsed(self._source.read(_range_of(partition)), self._bodies)


class _PushdownReader(_BatchReader):
    """A class of its own: Spark refuses a reader with pushFilters unless its setting for that is on."""

    def __init__(self, source: BatchSource | HostsBatchSource, bodies: JsonBodies | None) -> None:
        super().__init__(source, bodies)
        self._pushdown = Pushdown()

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        for filter in filters:
            attribute, value = getattr(filter, "attribute", ()), getattr(filter, "value", None)
            if not self._pushdown.take(type(filter).__name__, tuple(attribute), value):
                yield filter

    def partitions(self) -> list[InputPartition]:
        return [_Partition(range) for range in self._pushdown.of(self._source.partitions())]


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Where it could not be made, its first call raises why: PySpark puts an UnboundLocalError of its own behind an
    error of streamReader().

    Arguments:
        made: source and options, or the error of making them.
        bodies: makes columns of them; None: they are bytes.
    """

    def __init__(
        self,
        made: tuple[StreamSource | HostsStreamSource, SourceOptions] | Exception,
        bodies: JsonBodies | None = None,
    ) -> None:
        self._made = made
        self._bodies = bodies
        self._least: LeastBatch | None = None
        if not isinstance(made, Exception) and made[1].least_rows is not None:
            self._least = LeastBatch(made[1].least_rows, made[1].max_delay)

    def _need(self) -> tuple[StreamSource | HostsStreamSource, SourceOptions]:
        if isinstance(self._made, Exception):
            raise self._made
        return self._made

    @property
    def _source(self) -> StreamSource | HostsStreamSource:
        return self._need()[0]

    @property
    def _options(self) -> SourceOptions:
        return self._need()[1]

    def initialOffset(self) -> dict[str, Any]:
        return self._source.initialOffset()

    def getDefaultReadLimit(self) -> ReadLimit:
        rows, nbytes = self._options.max_rows, self._options.max_bytes
        if rows is not None:
            return ReadMaxRows(rows)
        return ReadAllAvailable() if nbytes is None else ReadMaxBytes(nbytes)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        if self._least is not None and self._least.holds(self._source.waiting(start)):
            time.sleep(self._options.poll)
            return start
        return self._source.latestOffset(start, self._limit(limit))

    def _limit(self, limit: ReadLimit) -> Limit:
        """Returns the limits of a batch: Spark's, and with its limit of rows the option for bytes, too."""
        if isinstance(limit, ReadMaxRows):
            return Limit(limit.max_rows, self._options.max_bytes)
        if isinstance(limit, ReadMaxBytes):
            return Limit(None, limit.max_bytes)
        return Limit()

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._source.reportLatestOffset()

    def prepareForTriggerAvailableNow(self) -> None:
        self._least = None  # all that is there now is read
        self._source.prepareForTriggerAvailableNow()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [_Partition(range) for range in self._source.partitions(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return _parsed(self._source.read(_range_of(partition)), self._bodies)

    def commit(self, end: dict[str, Any]) -> None:
        self._source.commit(end)

    def stop(self) -> None:
        if not isinstance(self._made, Exception):
            self._source.close()


class _Message(WriterCommitMessage):
    def __init__(self, staged: Staged | HostsStaged) -> None:
        self.staged = staged


def _staged(messages: list[WriterCommitMessage | None]) -> list[Any]:
    return [None if message is None else cast(_Message, message).staged for message in messages]


class _BatchWriter(DataSourceArrowWriter):
    def __init__(self, sink: BatchSink | HostsBatchSink) -> None:
        self._sink = sink

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        return _Message(self._sink.write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.commit(_staged(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.abort(_staged(messages))


class _StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, sink: StreamSink | HostsStreamSink) -> None:
        self._sink = sink

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        return _Message(self._sink.write(iterator, _query_id()))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._sink.commit(_staged(messages), batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._sink.abort(_staged(messages), batchId)


def _query_id() -> str:
    """Returns the query's id, which survives restarts from one checkpoint. Spark tells its tasks, not the writer."""
    from pyspark import TaskContext

    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty("sql.streaming.queryId")
    if not found:
        raise ShmqError(
            "this Spark does not tell its tasks the id of their query (sql.streaming.queryId)",
            remedy="write in foreachBatch with df.write and an idempotencyKey of query and batch",
        )
    return str(found)


class ShmqDataSource(DataSource):
    """Queues as a source and a sink of Spark: spark.read.format("shmq") and its three sisters.

    Options: see docs/spark.md. PySpark finds the class by itself, through the package pyspark_shmq.

    Raises ValueError that names the option, or the column, and what is expected.
    """

    @classmethod
    def name(cls) -> str:
        return "shmq"

    def schema(self) -> str:
        options = SourceOptions.parse(self.options)
        if options.body is None:
            return ddl(options.columns)
        return ddl_with_body(options.body, options.columns, options.mode == FAILFAST)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = SourceOptions.parse(self.options)
        columns, bodies = _read_as(schema, options)
        source = batch_source(self.options, columns)
        return _PushdownReader(source, bodies) if options.pushdown else _BatchReader(source, bodies)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        try:
            options = SourceOptions.parse(self.options)
            if options.pushdown:
                raise ValueError(
                    "option pushdown=true: Spark hands filters to batch reads only; give a stream a selector"
                )
            columns, bodies = _read_as(schema, options)
            return _StreamReader((stream_source(self.options, columns), options), bodies)
        except Exception as error:
            return _StreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        types = _types(schema)
        check_columns(types)
        _check_queues(types, SinkOptions.parse(self.options), overwrite)
        sink = batch_sink(self.options, overwrite)
        check_target(SinkOptions.parse(self.options), types)
        return _BatchWriter(sink)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        types = _types(schema)
        check_columns(types)
        if overwrite:
            raise ValueError(
                'outputMode("complete") cannot be written into a queue; use "append", or foreachBatch with an '
                "idempotencyKey"
            )
        _check_queues(types, SinkOptions.parse(self.options), overwrite)
        sink = stream_sink(self.options)
        check_target(SinkOptions.parse(self.options), types)
        return _StreamWriter(sink)


def _check_queues(types: Mapping[str, str], options: SinkOptions, overwrite: bool) -> None:
    """Checks that a write says into which queues its rows go. Raises ValueError."""
    if "queue" not in types and options.queue == NO_QUEUE:
        raise ValueError("the option queue is missing; give .option('queue', 'orders'), or the frame a column 'queue'")
    if "queue" in types and overwrite:
        raise ValueError(
            'mode("overwrite") purges one queue, and the column \'queue\' names several; use mode("append")'
        )


def _read_as(schema: StructType, options: SourceOptions) -> tuple[tuple[str, ...], JsonBodies | None]:
    """Returns the columns to read for a schema, and the parser of bodies; None: the bodies stay bytes."""
    types = _types(schema)
    if types.get("body", "binary") == "binary":
        if options.mode is not None:
            raise ValueError("the option mode is about bodies that do not fit the option schema, and none is given")
        return check_schema(types), None
    bodies = JsonBodies(schema, options.mode == FAILFAST)
    check_schema({name: kind for name, kind in types.items() if name not in ("body", CORRUPT)})
    return bodies.columns(), bodies


def _parsed(batches: Iterator[pyarrow.RecordBatch], bodies: JsonBodies | None) -> Iterator[pyarrow.RecordBatch]:
    return batches if bodies is None else bodies.parsed(batches)


def _types(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema.fields}
