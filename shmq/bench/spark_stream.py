"""The cost that a stream over queues adds to each batch of Spark's own, and its cost while nothing comes."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shmq.bench.processor_time import processor_seconds, processor_times
from shmq.runtime import open as open_broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["StreamRow", "measure_streams"]

_ROW_BYTES: Final = 1024  # of memory: slots of the queues, of their claims and stages
_BODY_BYTES: Final = 64
_WARM: Final = 15  # first batches, which start workers and compile


@dataclass(frozen=True, slots=True)
class StreamRow:
    """One contestant's result."""

    name: str
    batch_ms: float | None  # median of what Spark calls triggerExecution
    adds_ms: float | None  # to that of the rate source
    idle_percent: float | None  # of a core, by all processes, while nothing comes


def measure_streams(
    *, rows: int, batches: int, seconds: float, cores: int, progress: Callable[[str], None] = lambda text: None
) -> Iterator[StreamRow]:
    """Streams of small batches: Spark's rate source, a toy source and a queue into nothing, a toy into a toy, a queue
    into a queue. The toys, in Python, are the floor: Spark's own price of a source and a sink.

    Arguments:
        rows: of a batch.
        batches: of each stream that count.
        seconds: for which a stream without rows is watched.
        cores: how many tasks run at a time.

    Raises what shmq.spark.local_session() raises where PySpark or Java is missing.
    """
    from shmq.bench.toy_spark_source import ToySource
    from shmq.spark import local_session

    progress("starting Spark")
    with tempfile.TemporaryDirectory(prefix="shmq-bench-") as place:
        path = Path(place)
        memory = max(rows * (batches + _WARM) * _ROW_BYTES, 64 << 20)
        with open_broker(path / "broker", memory=memory) as broker, local_session(cores=cores) as spark:
            try:
                spark.dataSource.register(ToySource)
                orders = broker.queue("orders", codec="bytes", maxsize=rows * (batches + _WARM))
                broker.queue("results", maxsize=rows * (batches + _WARM))
                yield from _measured(_Streams(spark, path, rows, batches, progress), orders.put_many, seconds)
            finally:
                broker.delete(force=True)


def _measured(streams: _Streams, put_many: Callable[[list[bytes]], Any], seconds: float) -> Iterator[StreamRow]:
    alone = streams.idle(seconds, "Spark, no query")
    yield StreamRow("Spark, no query", None, None, alone)
    rate = streams.batch_ms("rate source", streams.rate(), "noop")
    yield StreamRow("rate source", rate, 0.0, None)
    for sink, name in (("noop", "toy source"), ("shmq-toy", "toy to toy")):
        found = streams.batch_ms(name, streams.toy(), sink)
        yield StreamRow(name, found, found - rate, None)
    for sink, name in (("noop", "queue"), ("shmq", "queue to queue")):
        put_many([b"x" * _BODY_BYTES] * streams.all_rows)
        found = streams.batch_ms(name, streams.queue(sink), sink)
        idle = streams.idle(seconds, name, streams.queue(sink), sink)
        yield StreamRow(name, found, found - rate, idle)


class _Streams:
    """Queries of one session, each with a checkpoint of its own."""

    def __init__(
        self, spark: SparkSession, place: Path, rows: int, batches: int, progress: Callable[[str], None]
    ) -> None:
        self._spark = spark
        self._place = place
        self._rows = rows
        self._batches = batches
        self._progress = progress
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
        spark.sparkContext.setLogLevel("OFF")  # the rate source is stopped in the midst of a batch, and Spark says so

    @property
    def all_rows(self) -> int:
        """Of a stream's batches, those that warm up among them."""
        return self._rows * (self._batches + _WARM)

    def rate(self) -> DataFrame:
        source = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", str(self._rows))
        return source.load().selectExpr("CAST(value AS string) AS body")

    def toy(self) -> DataFrame:
        source = self._spark.readStream.format("shmq-toy").option("rows", str(self._rows))
        return source.option("size", str(_BODY_BYTES)).load()

    def queue(self, subscription: str) -> DataFrame:
        source = self._spark.readStream.format("shmq").option("path", str(self._place / "broker"))
        limited = source.option("queue", "orders").option("maxRowsPerBatch", str(self._rows))
        return limited.option("subscription", subscription).option("columns", "body").load()

    def _start(self, frame: DataFrame, sink: str, name: str) -> Any:
        stream = frame.writeStream.format(sink).option("checkpointLocation", str(self._place / name))
        if sink == "shmq":
            stream = stream.option("path", str(self._place / "broker")).option("queue", "results")
        return stream.start()

    def batch_ms(self, name: str, frame: DataFrame, sink: str) -> float:
        """Median milliseconds of a batch, from its planning to its commit."""
        self._progress(f"{name}, {self._batches} batches")
        query = self._start(frame, sink, name)
        try:
            while True:
                full = [seen for seen in query.recentProgress if seen["numInputRows"]]
                found = [seen["durationMs"]["triggerExecution"] for seen in full]
                if len(found) >= _WARM + self._batches:
                    return float(statistics.median(found[_WARM : _WARM + self._batches]))
                if query.exception() is not None:
                    raise query.exception()
                time.sleep(0.1)
        finally:
            query.stop()

    def idle(self, seconds: float, name: str, frame: DataFrame | None = None, sink: str = "") -> float:
        """Percent of a core that all processes take, with no query, or one that goes on with nothing to do."""
        self._progress(f"{name}, with nothing to do")
        query = self._start(frame, sink, name) if frame is not None else None
        try:
            time.sleep(seconds / 2)  # it starts its workers
            before, begin = processor_times(), time.monotonic()
            time.sleep(seconds)
            return 100.0 * processor_seconds(before) / (time.monotonic() - begin)
        finally:
            if query is not None:
                query.stop()
