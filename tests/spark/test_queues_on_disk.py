"""With a real Spark: queues whose messages do not fit into memory are read, streamed and written as any others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import shmq
from shmq.spark.settle import settle
from shmq.spark.subscription import claims_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = 300  # of one query, on a busy machine
COUNT = 30_000
SIZE = 1000  # bytes: all of them are twice the broker's memory


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="16MiB", disk="8GiB") as opened:
        yield opened


def body(number: int) -> bytes:
    return b"%08d" % number + bytes(SIZE - 8)


@pytest.fixture
def orders(broker: shmq.Broker) -> shmq.Queue[Any]:
    queue = broker.queue("orders", codec="bytes")
    queue.put_many(body(number) for number in range(COUNT))
    assert queue.statistics().flowed
    return queue


def numbers(queue: shmq.Queue[Any]) -> list[int]:
    return [int(m.body[:8]) for m in queue.browse()]


def test_a_batch_reads_what_is_on_disk(spark: SparkSession, broker: shmq.Broker, orders: shmq.Queue[Any]) -> None:
    frame = spark.read.format("shmq").option("path", broker.path or "").option("queue", "orders").load()
    rows = frame.selectExpr(
        "position", "int(string(substring(body, 1, 8))) as number", "length(body) as size"
    ).collect()
    assert sorted(row["number"] for row in rows) == list(range(COUNT))
    assert {row["size"] for row in rows} == {SIZE}
    assert [row["number"] for row in sorted(rows, key=lambda row: row["position"])] == list(range(COUNT))
    assert orders.qsize() == COUNT


def test_a_stream_takes_what_is_on_disk_once_and_in_order(
    spark: SparkSession, broker: shmq.Broker, orders: shmq.Queue[Any], tmp_path: Path
) -> None:
    """Shows G5."""
    frame = spark.readStream.format("shmq").option("path", broker.path or "").option("queue", "orders")
    frame = frame.option("subscription", "etl").option("maxRowsPerBatch", "10000").load().select("body")
    writer = frame.writeStream.format("shmq").option("path", broker.path or "").option("queue", "results")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(SECONDS), "the query does not end"
    results = broker.queue("results", codec="bytes")
    assert orders.qsize() == 0
    assert sorted(numbers(results)) == list(range(COUNT))
    assert settle(str(tmp_path / "checkpoint"), broker.path or "", "etl") == 2
    assert broker.queue(claims_name("orders", "etl")).qsize() == 0


def test_what_spark_writes_goes_to_disk(spark: SparkSession, broker: shmq.Broker) -> None:
    queue = broker.queue("written", max_memory="1MiB", codec="bytes")
    frame = spark.range(COUNT).selectExpr(
        f"cast(lpad(string(id), 8, '0') || repeat('x', {SIZE - 8}) as binary) as body"
    )
    frame.write.format("shmq").option("path", broker.path or "").option("queue", "written").mode("append").save()
    assert queue.statistics().flowed
    assert sorted(numbers(queue)) == list(range(COUNT))
    assert sorted(int(queue.get(timeout=0)[:8]) for _ in range(COUNT)) == list(range(COUNT))
