"""With a real Spark: source and sink, in batches and streams; what a user sees when something does not fit."""

from __future__ import annotations

import datetime
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import shmq
from shmq.spark.settle import settle
from shmq.spark.subscription import claims_name
from tests.spark.gateways import GatewayProcess
from tests.spark.gateways import drained as drained_queue
from tests.spark.warm_driver import WarmDriver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECONDS = 300  # of one query, on a busy machine


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="64MiB") as opened:
        yield opened


def taken(queue: shmq.Queue[Any]) -> list[Any]:
    found = []
    try:
        while True:
            found.append(queue.get(timeout=0))
    except shmq.Empty:
        return found


def entries(spark: SparkSession, broker: shmq.Broker, **options: str) -> DataFrame:
    reader = spark.read.format("shmq").option("path", broker.path or "").option("queue", "orders")
    return reader.options(**options).load()


def stream(spark: SparkSession, broker: shmq.Broker, **options: str) -> DataFrame:
    reader = spark.readStream.format("shmq").option("path", broker.path or "").option("queue", "orders")
    return reader.options(**({"subscription": "etl"} | options)).load()


def drained(frame: DataFrame, broker: shmq.Broker, checkpoint: Path) -> int:
    """One AvailableNow run into the queue `results`; how many batches it had."""
    writer = frame.writeStream.format("shmq").option("path", broker.path or "").option("queue", "results")
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(SECONDS), "the query does not end"
    return sum(1 for progress in query.recentProgress if progress["numInputRows"])


def test_entries_are_rows_and_stay_where_they_are(spark: SparkSession, broker: shmq.Broker) -> None:
    orders = broker.queue("orders", priorities=3, groups="shared")
    begin = datetime.datetime.now(datetime.UTC)
    orders.put("text", headers={"colour": "red", "width": 7, "raw": b"\0", "sure": True}, priority=9, group="ann")
    orders.put({"n": 1})
    first, second = entries(spark, broker).collect()
    assert (first["queue"], first["body"], first["content_type"]) == ("orders", b"text", "text/plain; charset=utf-8")
    assert first["headers"] == {"colour": "red", "width": "7", "raw": "AA==", "sure": "true"}
    assert (first["priority"], first["group"], first["delivery_count"]) == (9, "ann", 0)
    assert abs(first["enqueued_at"].astimezone(datetime.UTC) - begin) < datetime.timedelta(seconds=60)
    assert (second["body"], second["content_type"], second["group"]) == (b'{"n":1}', "application/json", None)
    assert first["message_id"] != second["message_id"]
    assert orders.qsize() == 2


def test_columns_and_selector_are_chosen_at_the_source(spark: SparkSession, broker: shmq.Broker) -> None:
    orders = broker.queue("orders")
    for n in range(3000):
        orders.put(b"%d" % n, headers={"n": n})
    frame = entries(spark, broker, columns="body, position", selector="n >= 2990")
    assert frame.columns == ["body", "position"]
    assert [int(row["body"]) for row in frame.collect()] == list(range(2990, 3000))
    projected = spark.read.format("shmq").schema("body binary").option("path", broker.path or "")
    assert projected.option("queue", "orders").load().count() == 3000


def test_filters_of_queue_and_position_are_applied_at_the_source(spark: SparkSession, broker: shmq.Broker) -> None:
    for name in ("orders", "returns"):
        broker.queue(name).put_many(b"%d" % n for n in range(5000))
    for where in (
        "position >= 4990",
        "position > 4989 and position < 6000 and queue = 'orders'",
        "queue in ('orders', 'others') and position <= 3 and string(body) <> '2'",
        "queue = 'orders' or position = 7",
        "position = 5 and position = 6",
        "queue is null",
    ):
        pushed = entries(spark, broker, queue="orders,returns", pushdown="true").where(where)
        usual = entries(spark, broker, queue="orders,returns").where(where)
        assert sorted(pushed.collect()) == sorted(usual.collect()), where
    few = entries(spark, broker, queue="orders,returns", minPartitions="4", pushdown="true")
    assert few.rdd.getNumPartitions() == 8
    assert few.where("queue = 'orders' and position >= 4990").rdd.getNumPartitions() == 1


def test_a_stream_goes_through_once_and_in_order(spark: SparkSession, broker: shmq.Broker, tmp_path: Path) -> None:
    orders, checkpoint = broker.queue("orders"), tmp_path / "checkpoint"
    orders.put_many(b"%d" % n for n in range(5000))
    frame = stream(spark, broker, maxRowsPerBatch="2000").select("body")
    assert drained(frame, broker, checkpoint) == 3
    orders.put_many(b"%d" % n for n in range(5000, 5100))
    assert drained(frame, broker, checkpoint) == 1
    assert [int(body) for body in taken(broker.queue("results"))] == list(range(5100))
    assert broker.queue(claims_name("orders", "etl")).qsize() == 0
    assert settle(str(checkpoint), broker.path or "", "etl") == 3


def test_a_batch_is_appended_with_what_its_columns_say(spark: SparkSession, broker: shmq.Broker) -> None:
    broker.queue("results", priorities=2)
    frame = spark.createDataFrame(
        [("a", {"k": "v"}, 9, "text/x-one"), ("b", None, None, None)],
        "body string, headers map<string,string>, priority int, content_type string",
    )
    frame.coalesce(1).write.format("shmq").mode("append").option("path", broker.path or "").option(
        "queue", "results"
    ).save()
    first, second = list(broker.queue("results").browse())
    assert (dict(first.headers), first.priority, first.content_type) == ({"k": "v"}, 9, "text/x-one")
    assert (second.body, dict(second.headers)) == ("b", {})


@pytest.mark.parametrize("kind", ["byte", "short", "int", "long"])
def test_a_priority_is_of_any_whole_type(spark: SparkSession, broker: shmq.Broker, kind: str) -> None:
    broker.queue("results", priorities=10)
    frame = spark.range(10).selectExpr("string(id) AS body", f"CAST(id AS {kind}) AS priority")
    frame.write.format("shmq").mode("append").option("path", broker.path or "").option("queue", "results").save()
    assert [(message.body, message.priority) for message in broker.queue("results").browse()] == [
        (str(n), n) for n in reversed(range(10))
    ]


def test_a_key_makes_a_batch_write_once(spark: SparkSession, broker: shmq.Broker) -> None:
    frame = spark.range(3).selectExpr("string(id) AS body")
    for _ in range(2):
        writer = frame.write.format("shmq").mode("append").option("path", broker.path or "")
        writer.option("queue", "results").option("idempotencyKey", "today").save()
    assert sorted(taken(broker.queue("results"))) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"maxRowPerBatch": "5"}, "there is no option 'maxrowperbatch' of format shmq; did you mean maxRowsPerBatch"),
        ({"maxRowsPerBatch": "none"}, "option maxRowsPerBatch='none': a whole number from 1 on is expected"),
        ({"table": "log"}, "'entries' is the only table"),
        ({"columns": "bodi"}, "there is no column 'bodi'"),
        ({"queue": "odrers"}, "there is no queue 'odrers'"),
        ({"path": "/no/such/broker"}, "no broker"),
        ({"selector": "n >> 50 AND"}, "option selector: "),
    ],
)
def test_a_mistake_in_an_option_is_named(
    spark: SparkSession, broker: shmq.Broker, options: dict[str, str], text: str
) -> None:
    broker.queue("orders")
    with pytest.raises(Exception, match=text):
        entries(spark, broker, **options).count()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"subscription": ""}, r"the option subscription is missing.* give \.option\('subscription', 'etl'\)"),
        ({"pushdown": "true"}, "give a stream a selector"),
        ({"schema": "bodi binary"}, "there is no column 'bodi'"),
    ],
)
@pytest.mark.parametrize("trigger", [{"availableNow": True}, {"processingTime": "0 seconds"}])
def test_a_stream_ends_with_the_error_that_names_its_mistake(
    spark: SparkSession,
    broker: shmq.Broker,
    tmp_path: Path,
    options: dict[str, str],
    text: str,
    trigger: dict[str, Any],
) -> None:
    """And with no other one behind it."""
    broker.queue("orders")
    given = {"path": broker.path or "", "queue": "orders", "subscription": "etl"} | options
    reader = spark.readStream.format("shmq")
    if "schema" in given:
        reader = reader.schema(given.pop("schema"))
    writer = reader.options(**given).load().writeStream.format("noop").trigger(**trigger)
    with pytest.raises(Exception, match=text) as caught:
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination(SECONDS)
    assert "UnboundLocalError" not in str(caught.value)


def test_a_frame_that_does_not_fit_is_refused(spark: SparkSession, broker: shmq.Broker) -> None:
    frame = spark.range(3)
    for select, text in (("id", "column 'id' cannot be written"), ("id AS body", "column 'body' is bigint")):
        writer = frame.selectExpr(select).write.format("shmq").option("path", broker.path or "")
        with pytest.raises(Exception, match=text):
            writer.option("queue", "results").mode("append").save()
    ranked = frame.selectExpr("string(id) AS body", "int(id) AS priority").write.format("shmq").mode("append")
    with pytest.raises(Exception, match=r"make it first: .* declare results priorities=10"):
        ranked.option("path", broker.path or "").option("queue", "results").save()
    assert "results" not in [queue.name for queue in broker.queues()]
    overwriter = frame.selectExpr("string(id) AS body").write.format("shmq").option("path", broker.path or "")
    with pytest.raises(Exception, match="truncate"):
        overwriter.option("queue", "results").mode("overwrite").save()


def test_a_task_that_fails_and_is_tried_again_doubles_nothing(
    spark: SparkSession, broker: shmq.Broker, tmp_path: Path
) -> None:
    """The first attempt dies behind its first rows. The session gives each task a second one."""
    mark = tmp_path / "tried"

    def fail_once(numbers: Any) -> Iterator[tuple[str]]:
        for number in numbers:
            yield (str(number),)
            if number == 1500 and not mark.exists():
                mark.touch()
                raise RuntimeError("the first attempt")

    rows = spark.sparkContext.parallelize(range(2000), 1).mapPartitions(fail_once)
    writer = rows.toDF("body string").write.format("shmq").mode("append").option("path", broker.path or "")
    writer.option("queue", "results").save()
    assert mark.exists()
    assert [int(body) for body in taken(broker.queue("results"))] == list(range(2000))


DRIVER = """
    import sys, shmq
    from shmq.spark import local_session
    path, checkpoint, until = sys.argv[1:]
    with local_session() as spark:
        rows = spark.readStream.format("shmq").option("path", path).option("queue", "orders")
        rows = rows.option("subscription", "etl").option("maxRowsPerBatch", "500").load().select("body")
        writer = rows.writeStream.format("shmq").option("path", path).option("queue", "results")
        writer = writer.option("checkpointLocation", checkpoint)
        if until == "killed":
            writer.start().awaitTermination()
        writer.trigger(availableNow=True).start().awaitTermination()
"""


def test_a_driver_that_is_killed_goes_on_from_its_checkpoint(
    warm_driver: WarmDriver, broker: shmq.Broker, tmp_path: Path
) -> None:
    """kill -9 of the driver and all of its processes, while rows come out."""
    program, orders, results = tmp_path / "driver.py", broker.queue("orders"), broker.queue("results")
    program.write_text(textwrap.dedent(DRIVER))
    orders.put_many(b"%d" % n for n in range(5000))
    arguments = [sys.executable, str(program), broker.path or "", str(tmp_path / "checkpoint")]
    driver = subprocess.Popen([*arguments, "killed"], start_new_session=True)
    try:
        found = [results.get(timeout=SECONDS) for _ in range(600)]
    finally:
        kill_group(driver)
    done = warm_driver.run(*arguments[1:], "all")
    assert done.returncode == 0, done.stderr[-3000:]
    assert [int(body) for body in found + taken(results)] == list(range(5000))


def kill_group(process: subprocess.Popen[bytes]) -> None:
    import os
    import signal

    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_rows_of_two_hosts_go_through_spark_into_both_once(spark: SparkSession, tmp_path: Path) -> None:
    hosts = [tmp_path / "one", tmp_path / "two"]
    for path in hosts:
        with shmq.open(path, memory="64MiB") as broker:
            broker.queue("orders").put_many([f"{path.name} {n}" for n in range(3000)])
    gateways = [GatewayProcess(path) for path in hosts]
    uri = ",".join(one.uri for one in gateways)
    try:
        reader = spark.readStream.format("shmq").option("uri", uri).option("queue", "orders")
        frame = reader.option("subscription", "etl").option("maxRowsPerBatch", "2500").load().select("body")
        for _ in range(2):  # the second run finds nothing
            writer = frame.writeStream.format("shmq").option("uri", uri).option("queue", "results")
            query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
            assert query.awaitTermination(SECONDS), "the query does not end"
        found = [drained_queue(path, "results") for path in hosts]
        assert sorted(found[0] + found[1]) == sorted(
            b"%s %d" % (path.name.encode(), n) for path in hosts for n in range(3000)
        )
        assert all(found)
        assert spark.read.format("shmq").option("uri", uri).option("queue", "orders").load().count() == 0
    finally:
        for one in gateways:
            one.end()
