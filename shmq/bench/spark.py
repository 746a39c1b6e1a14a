"""The cost of a row between Spark and queues, beside a source and a sink that only make and drop Arrow batches.

In processor time of all processes, Spark's JVM and its Python workers among them. The queues are those that a reader of
the pages has: none has options, so from 65,536 messages on they have the rest on disk.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shmq.bench.processor_time import processor_seconds, processor_times
from shmq.engine.claims.claim import Claimer, queue_of_claims
from shmq.runtime import open as open_broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from shmq.engine.broker.broker import Broker

__all__ = ["SparkRow", "measure_claims", "measure_spark"]

_MEMORY: Final = 512 << 20
_PUT: Final = 10_000  # messages a call
_WARM: Final = 6  # first batches of a stream, which start workers and compile
_FEWEST: Final = 5  # batches that count, and
_MOST: Final = 40


@dataclass(frozen=True, slots=True)
class SparkRow:
    """One contestant's result; microseconds of processor time."""

    name: str
    row_us: float  # median of the rounds, a row
    lowest: float
    highest: float
    ratio: float  # this one's cost by that of the first of its kind, in the same rounds


def measure_claims(*, rows: int, size: int, rounds: int) -> Iterator[SparkRow]:
    """The work of a stream's planner before Spark sees a row, beside get_many() of the same entries."""
    costs: dict[str, list[float]] = {"get_many, no Spark": [], "claim, no Spark": []}
    with open_broker(None, memory=_MEMORY) as broker:
        orders = broker.queue("orders", codec="bytes")
        claims = queue_of_claims(broker, "orders.claims")
        claimer = Claimer(orders, claims)

        def got() -> int:
            taken = 0
            while taken < rows:
                taken += len(orders.get_many(1000, timeout=0))
            return taken

        def claimed() -> int:
            return claimer.claim(rows, 1 << 62).entries

        takes: dict[str, Callable[[], int]] = dict(zip(costs, (got, claimed), strict=True))
        for _ in range(rounds):
            for name, take in takes.items():
                _put(orders, rows, size)
                begin = time.thread_time()
                taken = take()
                costs[name].append((time.thread_time() - begin) / rows)
                assert taken == rows, f"{name}: {taken} of {rows}"
                claims.purge()
    for name, found in costs.items():
        yield _row(name, found, costs["get_many, no Spark"])


def measure_spark(
    *,
    rows: int,
    size: int,
    rounds: int,
    cores: int,
    batches: Sequence[int],
    progress: Callable[[str], None] = lambda text: None,
) -> Iterator[SparkRow]:
    """Batch reads, batch writes, and streams from queue to queue, of bodies of one size, through a local Spark.

    Arguments:
        rows: of each read, write and stream.
        size: of a body, in bytes.
        cores: how many tasks run at a time.
        batches: rows of a stream's batch; a stream for each.

    Raises what shmq.spark.local_session() raises where PySpark or Java is missing.
    """
    from shmq.bench.toy_spark_source import ToySource
    from shmq.spark import local_session

    progress("claims")
    yield from measure_claims(rows=rows, size=size, rounds=rounds)
    progress("starting Spark")
    with tempfile.TemporaryDirectory(prefix="shmq-bench-") as place:
        with open_broker(Path(place) / "broker", memory=_MEMORY) as broker, local_session(cores=cores) as spark:
            try:
                spark.dataSource.register(ToySource)
                yield from _measured(spark, broker, rows, size, rounds, cores, progress)
                streams = _Streams(spark, broker, Path(place), size, cores)
                for batch in batches:
                    yield from _streamed(streams, batch, max(rows // batch, _FEWEST), rounds, progress)
            finally:
                broker.delete(force=True)


def _put(queue: Any, rows: int, size: int) -> None:
    for begin in range(0, rows, _PUT):
        queue.put_many([bytes(size)] * min(_PUT, rows - begin))


def _measured(
    spark: SparkSession,
    broker: Broker,
    rows: int,
    size: int,
    rounds: int,
    cores: int,
    progress: Callable[[str], None],
) -> Iterator[SparkRow]:
    _put(broker.queue("orders", codec="bytes"), rows, size)
    results = broker.queue("results")
    generated = spark.range(rows, numPartitions=cores).selectExpr(f"repeat('x', {size}) AS body")
    shmq_options = {"path": broker.path or "", "queue": "orders", "columns": "body"}
    toy_options = {"rows": str(rows), "size": str(size), "parts": str(cores)}

    def read(source: str, options: dict[str, str]) -> None:
        spark.read.format(source).options(**options).load().write.format("noop").mode("overwrite").save()

    def write(frame: DataFrame, sink: str, options: dict[str, str]) -> None:
        frame.write.format(sink).options(**options).mode("append").save()

    contestants: dict[str, Callable[[], None]] = {
        "toy source": lambda: read("shmq-toy", toy_options),
        "read, bodies": lambda: read("shmq", shmq_options),
        "read, all columns": lambda: read("shmq", shmq_options | _all_columns()),
        "toy sink": lambda: write(generated, "shmq-toy", toy_options),
        "write": lambda: write(generated, "shmq", {"path": broker.path or "", "queue": "results"}),
    }
    costs: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):  # the first one warms up
        for name, run in contestants.items():
            progress(f"{name}, round {number} of {rounds}")
            begin = processor_times()
            run()
            seconds = processor_seconds(begin)
            if number:
                costs[name].append(seconds / rows)
            if name == "write":
                written = results.purge()
                assert written == rows, f"{written} of {rows} rows were written"
    for name, found in costs.items():
        toy = costs["toy sink" if name in ("toy sink", "write") else "toy source"]
        yield _row(name, found, toy)


def _all_columns() -> dict[str, str]:
    from shmq.engine.arrow.row import FIELDS

    return {"columns": ",".join(field.name for field in FIELDS)}


def _streamed(
    streams: _Streams, batch: int, count: int, rounds: int, progress: Callable[[str], None]
) -> Iterator[SparkRow]:
    count = min(count, _MOST)
    kinds = {"toy to toy": streams.toy, "queue to queue": streams.queue}
    costs: dict[str, list[float]] = {name: [] for name in kinds}
    for number in range(rounds):
        for name, start in kinds.items():
            progress(f"{name}, batches of {batch:,}, round {number + 1} of {rounds}")
            costs[name].append(streams.cost(start, batch, count))
    for name, found in costs.items():
        yield _row(f"{name}, {batch:,} a batch", found, costs["toy to toy"])


class _Streams:
    """Queries of one session, each with queues and a checkpoint of its own."""

    def __init__(self, spark: SparkSession, broker: Broker, place: Path, size: int, cores: int) -> None:
        self._spark = spark
        self._broker = broker
        self._place = place
        self._size = size
        self._cores = cores
        self._number = 0

    def toy(self, batch: int, rows: int) -> Any:
        """Starts one that never ends."""
        source = self._spark.readStream.format("shmq-toy").option("rows", str(batch)).option("size", str(self._size))
        return self._started(source.option("parts", str(self._cores)).load(), "shmq-toy", {})

    def queue(self, batch: int, rows: int) -> Any:
        """Starts one over so many rows, which are put before."""
        orders, path = f"orders-{self._number}", self._broker.path or ""
        _put(self._broker.queue(orders, codec="bytes"), rows, self._size)
        source = self._spark.readStream.format("shmq").option("path", path).option("queue", orders)
        limited = source.option("subscription", "bench").option("maxRowsPerBatch", str(batch)).option("columns", "body")
        return self._started(limited.load(), "shmq", {"path": path, "queue": f"results-{self._number}"})

    def _started(self, frame: DataFrame, sink: str, options: dict[str, str]) -> Any:
        place = str(self._place / f"checkpoint-{self._number}")
        return frame.writeStream.format(sink).options(**options).option("checkpointLocation", place).start()

    def cost(self, start: Callable[[int, int], Any], batch: int, count: int) -> float:
        """Seconds of processor time for a row, of so many batches or a few more."""
        self._number += 1
        query = start(batch, (_WARM + count + 3) * batch)
        try:
            first = self._wait(query, _WARM)
            begin = processor_times()
            last = self._wait(query, first + count)
            return processor_seconds(begin) / ((last - first) * batch)
        finally:
            query.stop()
            for queue in self._broker.queues():
                if queue.name.partition(".")[0] in (f"orders-{self._number}", f"results-{self._number}"):
                    queue.delete()

    def _wait(self, query: Any, batches: int) -> int:
        """How many are done, when so many are."""
        while True:
            done = int((query.lastProgress or {"batchId": -1})["batchId"]) + 1
            if done >= batches:
                return done
            if query.exception() is not None:
                raise query.exception()
            time.sleep(0.02)


def _row(name: str, found: Sequence[float], toy: Sequence[float]) -> SparkRow:
    ratios = [own / other if other else 0.0 for own, other in zip(found, toy, strict=True)]
    us = [1e6 * seconds for seconds in found]
    return SparkRow(name, statistics.median(us), min(us), max(us), statistics.median(ratios))
