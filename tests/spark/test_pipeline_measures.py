"""The functions behind `shmq pipeline`, with a real Spark over a few rows whose answers are known."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import pytest

import shmq
from shmq.spark.pipelines.measures import by_minute, narrowed, poison, quantiles, redelivered, summary, waits
from shmq.spark.pipelines.statistics import collected, entries_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
DEATH = "struct<queue:string,reason:string,error:string,at:timestamp,pids:array<bigint>,signal:int>"
SCHEMA = (
    "queue string, enqueued_at timestamp, left_at timestamp, delivery_count int, group string, content_type string, "
    f"headers map<string,string>, body binary, death {DEATH}"
)


def at(seconds: float) -> datetime.datetime:
    return NOON + datetime.timedelta(seconds=seconds)


def entry(put: float, left: float | None = None, *, queue: str = "orders", **more: Any) -> tuple[Any, ...]:
    return (
        queue,
        at(put),
        None if left is None else at(left),
        more.get("deliveries", 0),
        more.get("group"),
        "text/plain; charset=utf-8",
        more.get("headers", {}),
        more.get("body", b"%g" % put),
        more.get("death"),
    )


def dead(put: float, why: str = "boom", **more: Any) -> tuple[Any, ...]:
    death: tuple[Any, ...] = ("orders", "rejected", f"Traceback ...\nValueError: {why}", at(put + 1), [], None)
    return entry(put, queue="orders.dead", death=death, **more)


def frame(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return narrowed(spark.createDataFrame(list(rows), SCHEMA))


def found(rows: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in rows.select(*columns).collect()]


def test_each_queue_and_minute_is_counted_and_its_depth_told(spark: SparkSession) -> None:
    entries = frame(spark, entry(0, 70), entry(10, deliveries=2), entry(130), entry(10, queue="returns"))
    rows = by_minute(entries).selectExpr("queue", "timestampdiff(MINUTE, first_value(minute) OVER "
        "(ORDER BY minute), minute) AS minute", "put", "left", "redelivered", "depth")  # fmt: skip
    assert sorted(found(rows, "*")) == [
        ("orders", 0, 2, 0, 1, 2),
        ("orders", 1, 0, 1, 0, 1),
        ("orders", 2, 1, 0, 0, 2),
        ("returns", 0, 1, 0, 0, 1),
    ]
    assert found(by_minute(entries, "1 hour"), "queue", "put", "left", "depth") == [
        ("orders", 3, 1, 2),
        ("returns", 1, 0, 1),
    ]
    assert found(summary(entries), "queue", "waiting", "left", "dead", "redelivered", "bytes") == [
        ("orders", 2, 1, 0, 1, 6),
        ("returns", 1, 0, 0, 0, 2),
    ]
    assert found(redelivered(entries), "queue", "delivery_count", "entries") == [("orders", 2, 1)]


def test_sketches_of_minutes_make_the_quantiles_of_all_of_them(spark: SparkSession) -> None:
    """A hundred waits of 1 to 100 seconds, put in four minutes."""
    entries = frame(spark, *[entry(n * 2.4, n * 2.4 + n) for n in range(1, 101)], dead(0))
    sketches = waits(entries)
    assert found(quantiles(sketches, "queue"), "queue", "entries", "p50", "p90", "p99", "longest") == [
        ("orders", 100, 50.0, 90.0, 99.0, 100.0)
    ]
    assert [count for (count,) in found(quantiles(sketches, "queue", "minute"), "entries")] == [24, 25, 25, 25, 1]
    waiting = frame(spark, entry(0), entry(30), entry(60, 65))
    assert found(quantiles(waits(waiting, now=at(60))), "entries", "p50", "longest") == [(3, 30.0, 60.0)]


def test_what_the_dead_have_in_common_is_a_candidate_and_what_all_have_is_none(spark: SparkSession) -> None:
    web, eve = {"source": "web"}, {"source": "web", "customer": "eve"}
    entries = frame(
        spark,
        *[entry(n, headers=web) for n in range(8)],
        entry(9, headers=eve),
        *[dead(n, f"no {n}", headers=eve, group="eve", body=b"poison" if n < 22 else b"%d" % n) for n in range(20, 24)],
    )
    rows = poison(entries, least=2)
    assert found(rows, "queue", "by", "value", "dead", "others", "lift", "error", "preview")[:2] == [
        ("orders", "group", "eve", 4, 0, None, "ValueError: no 23", None),
        ("orders", "header", "customer=eve", 4, 1, 9.0, "ValueError: no 23", None),
    ]
    (content,) = found(rows.where("by = 'content'"), "dead", "others", "preview", "reasons")
    assert content == (2, 0, "poison", ["rejected"])
    assert rows.count() == 3


def test_queues_are_counted_with_their_dead_and_stay_as_they_are(spark: SparkSession, broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="64MiB") as broker:
        orders = broker.queue("orders")
        orders.put_many({"id": n} for n in range(5))
        for _ in range(2):
            orders.receive().reject("no customer")
        statistics = collected(entries_of(spark, broker.path or "", ["orders", "orders.dead"]), least=1)
        assert (orders.qsize(), broker.queue("orders.dead").qsize()) == (3, 2)
    assert [(row["queue"], row["waiting"], row["dead"]) for row in statistics.queues] == [
        ("orders", 3, 0),
        ("orders.dead", 0, 2),
    ]
    assert statistics.every == "minute"
    assert sum(row["put"] for row in statistics.minutes) == 5
    assert {(row["by"], row["error"], row["preview"]) for row in statistics.poison} == {
        ("content", "no customer", '{"id":0}'),
        ("content", "no customer", '{"id":1}'),
    }
    assert statistics.queues[0]["longest"] >= statistics.queues[0]["p50"] >= 0
    assert statistics.queues[1]["p50"] is None
    assert statistics.at == pytest.approx(statistics.queues[0]["first_at"], abs=600)
