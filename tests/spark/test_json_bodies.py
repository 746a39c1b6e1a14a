"""The option schema makes columns of bodies of JSON; what does not fit is NULL and kept beside, or an error."""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import shmq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECONDS = 300  # of one query, on a busy machine
ALL = """text STRING, yes BOOLEAN, tiny TINYINT, small SMALLINT, whole INT, long BIGINT, single FLOAT, real DOUBLE,
    money DECIMAL(10,2), day DATE, moment TIMESTAMP, local TIMESTAMP_NTZ, raw BINARY, list ARRAY<INT>,
    words MAP<STRING, INT>, inner STRUCT<a: INT, b: ARRAY<STRUCT<c: STRING>>>"""
FITS: dict[str, Any] = {
    "text": "ü", "yes": True, "tiny": 127, "small": -32768, "whole": 2**31 - 1, "long": -(2**63), "single": 0.5,
    "real": 1e300, "money": 12.34, "day": "2026-11-28", "moment": "2026-11-28T04:00:00+01:00",
    "local": "2026-11-28T04:00:00", "raw": base64.b64encode(b"\0\xff").decode(), "list": [1, None],
    "words": {"a": 1}, "inner": {"a": 7, "b": [{"c": "d"}, None]}, "unknown": [1],
}  # fmt: skip
UNFIT: dict[str, Any] = {
    "yes": 1, "tiny": 128, "small": "1", "whole": 1.5, "long": 2**63, "single": "a", "real": True,
    "money": 1.005, "day": "28.11.2026", "moment": "now", "local": 5, "raw": "?", "list": {"a": 1}, "words": [1],
    "inner": {"b": [{"c": "d"}, 5]},
}  # fmt: skip


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="64MiB") as opened:
        yield opened


def entries(spark: SparkSession, broker: shmq.Broker, **options: str) -> DataFrame:
    reader = spark.read.format("shmq").option("path", broker.path or "").option("queue", "orders")
    return reader.options(**options).load()


def test_values_of_all_types_are_as_spark_has_them(spark: SparkSession, broker: shmq.Broker) -> None:
    orders = broker.queue("orders")
    orders.put_many([FITS, {}, None, *({name: value} for name, value in UNFIT.items())])
    orders.put('["no object"]')
    orders.put(b"{caf\xe9}")
    orders.put("[" * 100_000)
    frame = entries(spark, broker, schema=ALL)
    assert frame.schema["body"].dataType.simpleString().startswith("struct<text:string,yes:boolean,tiny:tinyint")
    assert frame.columns[-1] == "_corrupt_record"
    rows = frame.orderBy("position").select("body", "_corrupt_record").collect()
    body = rows[0].body.asDict(recursive=True)
    moment = body.pop("moment")
    assert moment.astimezone(datetime.UTC) == datetime.datetime(2026, 11, 28, 3, tzinfo=datetime.UTC)
    assert body == {
        **{name: value for name, value in FITS.items() if name not in ("unknown", "moment")},
        "money": Decimal("12.34"),
        "day": datetime.date(2026, 11, 28),
        "local": datetime.datetime(2026, 11, 28, 4),
        "raw": b"\0\xff",
    }
    assert set(rows[1].body.asDict().values()) == {None}
    assert [row._corrupt_record for row in rows[:3]] == [None] * 3  # a body that is null fits
    assert [row.body for row in rows[2:]] == [None] * (len(rows) - 2)
    kept = [bytes(row._corrupt_record) for row in rows[3:]]
    assert [json.loads(each) for each in kept[: len(UNFIT)]] == [{name: value} for name, value in UNFIT.items()]
    assert kept[len(UNFIT) :] == [b'["no object"]', b"{caf\xe9}", b"[" * 100_000]


def test_spark_reads_the_same_by_from_json(spark: SparkSession, broker: shmq.Broker) -> None:
    """Where both have a value: numbers, texts, lists, and what text makes of other values."""
    fields = "a INT, b STRING, c DOUBLE, d ARRAY<STRING>, e STRUCT<f: BIGINT>, g DECIMAL(8,3)"
    orders = broker.queue("orders")
    orders.put_many(
        [
            {"a": 1, "b": "x", "c": 2.5, "d": ["y", None], "e": {"f": 3}, "g": 1.125},
            {"a": None, "b": 5, "c": 3, "d": [1, True, {"z": 1}], "e": {}, "g": 7},
            {"b": {"k": [1, "2"]}, "c": "NaN", "e": None},
            {"b": True},
        ]
    )
    own = entries(spark, broker, schema=fields).orderBy("position").selectExpr("to_json(body) AS j").collect()
    plain = entries(spark, broker).orderBy("position")
    theirs = plain.selectExpr(f"to_json(from_json(string(body), '{fields}')) AS j").collect()
    assert [json.loads(row.j) for row in own] == [json.loads(row.j) for row in theirs]


def test_failfast_names_the_body_that_does_not_fit(spark: SparkSession, broker: shmq.Broker) -> None:
    broker.queue("orders").put_many([{"id": 1}, {"id": "two"}])
    frame = entries(spark, broker, schema="id INT", mode="failfast", columns="body")
    assert frame.columns == ["body"]
    with pytest.raises(
        Exception, match=r"position 1 of queue 'orders' does not fit .*str instead of int; it begins with"
    ):
        frame.collect()
    assert broker.queue("orders").qsize() == 2
    whole = entries(spark, broker, schema="id INT", mode="FAILFAST")
    assert "_corrupt_record" not in whole.columns


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"schema": "id INT", "mode": "DROPMALFORMED"}, "option mode='DROPMALFORMED': PERMISSIVE or FAILFAST"),
        ({"mode": "FAILFAST"}, "about bodies that do not fit the option schema, and none is given"),
        ({"schema": "id INTERVAL"}, "type interval.* of body.id cannot be read from JSON|INTERVAL"),
        ({"schema": "id INT, x MAP<INT, INT>"}, r"the type map<int,int> of body.x cannot be read from JSON"),
        ({"schema": "id NONSENSE"}, "NONSENSE"),
        ({"schema": "id INT", "columns": "body,bodi"}, "there is no column 'bodi'"),
    ],
)
def test_a_schema_that_does_not_fit_is_named(
    spark: SparkSession, broker: shmq.Broker, options: dict[str, str], text: str
) -> None:
    broker.queue("orders").put_many([{"id": 1}])
    with pytest.raises(Exception, match=text):
        entries(spark, broker, **options).collect()


def test_a_stream_has_the_columns_and_a_schema_may_be_given_as_spark_does(
    spark: SparkSession, broker: shmq.Broker, tmp_path: Path
) -> None:
    broker.queue("orders").put_many([{"id": n, "euros": n * 10} for n in range(5)])
    broker.queue("orders").put("broken")
    reader = spark.readStream.format("shmq").option("path", broker.path or "").option("queue", "orders")
    reader = reader.option("subscription", "etl").schema("body STRUCT<id: INT, euros: DOUBLE>, _corrupt_record BINARY")
    rows = reader.load().selectExpr("coalesce(to_json(body), string(_corrupt_record)) AS body")
    writer = rows.writeStream.format("shmq").option("path", broker.path or "").option("queue", "results")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    assert writer.start().awaitTermination(SECONDS)
    found = broker.queue("results").get_many(9, timeout=0)
    assert [json.loads(body) for body in found[:-1]] == [{"id": n, "euros": n * 10.0} for n in range(5)]
    assert found[-1] == "broken"


def test_progress_has_the_lag_few_rows_wait_and_queues_come_by_a_pattern(
    spark: SparkSession, broker: shmq.Broker, tmp_path: Path
) -> None:
    reader = spark.readStream.format("shmq").option("path", broker.path or "").option("subscribePattern", "orders.*")
    options = {"subscription": "etl", "minRowsPerBatch": "10", "maxBatchDelay": "3600", "maxRowsPerBatch": "12"}
    frame = reader.options(**options, pollMs="10").load().selectExpr("queue", "string(body) AS body")
    broker.queue("orders1").put_many(map(str, range(4)))
    batches: list[list[str]] = []
    query = (
        frame.writeStream.foreachBatch(lambda rows, batch: batches.append([row.body for row in rows.collect()]))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
        assert batches == [[]]  # Spark's first, which is empty
        broker.queue("orders2").put_many(map(str, range(100, 120)))
        query.processAllAvailable()
        assert [len(batch) for batch in batches] == [0, 12, 12]
        (source,) = next(found for found in query.recentProgress if found["numInputRows"])["sources"]
        end, latest = (json.loads(source[name])["queues"] for name in ("endOffset", "latestOffset"))
        behind = {name: reached["rows"] - end[name]["rows"] for name, reached in latest.items()}
        assert sum(behind.values()) == 12
    finally:
        query.stop()


def test_bounds_are_options_of_a_read(spark: SparkSession, broker: shmq.Broker) -> None:
    broker.queue("orders").put_many(map(str, range(10)))
    frame = entries(
        spark, broker, startingPosition="4", endingPosition="8", startingTimestamp="2020-01-01", columns="body"
    )
    assert [bytes(row.body) for row in frame.collect()] == [b"4", b"5", b"6", b"7"]
    assert entries(spark, broker, endingTimestamp="1577836800000").count() == 0
