"""Rows a second between Spark and queues, beside a source and a sink that only make and drop Arrow batches."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shmq.engine.claims.claim import Claimer
from shmq.runtime import open as open_broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from shmq.engine.broker.broker import Broker

__all__ = ["SparkRow", "measure_claims", "measure_spark"]

_ENTRY_BYTES: Final = 1024  # of memory: slots of the queue, of its stages and of what was read; bodies of 64 bytes


@dataclass(frozen=True, slots=True)
class SparkRow:
    """One contestant's result."""

    name: str
    rows_per_second: float  # median of the rounds
    lowest: float
    highest: float
    ratio: float  # this one's rate by that of the first of its kind, in the same rounds


def measure_claims(*, rows: int, size: int, rounds: int) -> Iterator[SparkRow]:
    """What a stream's planner does before Spark sees a row, beside get_many() of the same entries: in CPU time."""
    rates: dict[str, list[float]] = {"get_many, no Spark": [], "claim, no Spark": []}
    with open_broker(None, memory=max(rows * _ENTRY_BYTES, 64 << 20)) as broker:
        orders = broker.queue("orders", codec="bytes", maxsize=rows)
        claims = broker.queue("orders.claims", maxsize=rows, max_deliveries=0, max_deaths=0)
        claimer = Claimer(orders, claims)

        def got() -> int:
            return sum(len(orders.get_many(1000, timeout=0)) for _ in range(0, rows, 1000))

        def claimed() -> int:
            return claimer.claim(rows, 1 << 62).entries

        takes: dict[str, Callable[[], int]] = dict(zip(rates, (got, claimed), strict=True))
        for _ in range(rounds):
            for name, take in takes.items():
                orders.put_many([bytes(size)] * rows)
                begin = time.thread_time()
                taken = take()
                rates[name].append(taken / max(time.thread_time() - begin, 1e-9))
                assert taken == rows, f"{name}: {taken} of {rows}"
                claims.purge()
    for name, found in rates.items():
        yield _row(name, found, rates["get_many, no Spark"])


def measure_spark(
    *, rows: int, size: int, rounds: int, cores: int, progress: Callable[[str], None] = lambda text: None
) -> Iterator[SparkRow]:
    """Batch reads and batch writes of bodies of one size, through a local Spark.

    Arguments:
        rows: of each read and write.
        size: of a body, in bytes.
        cores: how many tasks run at a time.

    Raises what shmq.spark.local_session() raises where PySpark or Java is missing.
    """
    from shmq.spark import local_session

    progress("claims")
    yield from measure_claims(rows=rows, size=size, rounds=rounds)
    progress("starting Spark")
    with tempfile.TemporaryDirectory(prefix="shmq-bench-") as place:
        memory = max(rows * _ENTRY_BYTES, 64 << 20)
        with open_broker(place, memory=memory) as broker, local_session(cores=cores) as spark:
            try:
                yield from _measured(spark, broker, rows, size, rounds, cores, progress)
            finally:
                broker.delete(force=True)


def _measured(
    spark: SparkSession,
    broker: Broker,
    rows: int,
    size: int,
    rounds: int,
    cores: int,
    progress: Callable[[str], None],
) -> Iterator[SparkRow]:
    from shmq.bench.toy_spark_source import ToySource

    spark.dataSource.register(ToySource)
    broker.queue("orders", codec="bytes", maxsize=rows).put_many([bytes(size)] * rows)
    results = broker.queue("results", maxsize=rows)
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
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):  # the first one warms up
        for name, run in contestants.items():
            progress(f"{name}, round {number} of {rounds}")
            begin = time.monotonic()
            run()
            seconds = time.monotonic() - begin
            if number:
                rates[name].append(rows / seconds)
            if name == "write":
                written = results.purge()
                assert written == rows, f"{written} of {rows} rows were written"
    for name, found in rates.items():
        toy = rates["toy sink" if name in ("toy sink", "write") else "toy source"]
        yield _row(name, found, toy)


def _all_columns() -> dict[str, str]:
    from shmq.engine.arrow.row import FIELDS

    return {"columns": ",".join(field.name for field in FIELDS)}


def _row(name: str, found: Sequence[float], toy: Sequence[float]) -> SparkRow:
    ratios: list[Any] = [own / other for own, other in zip(found, toy, strict=True)]
    return SparkRow(name, statistics.median(found), min(found), max(found), statistics.median(ratios))
