"""A column `queue` says into which queue each row goes; one note decides for all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import shmq
from shmq.spark.data_lost import DataLost
from shmq.spark.named_queue import check_target
from shmq.spark.options import SinkOptions, SourceOptions
from shmq.spark.placement import batch_sink
from shmq.spark.publication import Publication
from shmq.spark.sink import BatchSink
from tests.spark.engine import Checkpoint, Crash, Engine
from tests.spark.gateways import GatewayProcess, drained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 11
SECONDS = 300  # of one query, on a busy machine
TARGETS = {0: None, 1: "odd", 2: "rest"}  # of a row by its number, modulo 3


class Routed(Engine):
    """Rows go into three queues."""

    def queue_of(self, body: bytes) -> str | None:
        return TARGETS[int(body) % 3]


def sink(broker: shmq.Broker, **options: str) -> SinkOptions:
    return SinkOptions.parse({"path": broker.path or "", "queue": "results"} | options)


def source(broker: shmq.Broker, **options: str) -> SourceOptions:
    given = {"path": broker.path or "", "queue": "orders", "subscription": "etl", "maxRowsPerBatch": "7", "pollMs": "0"}
    return SourceOptions.parse(given | {"minPartitions": "2"} | options)


def found(broker: shmq.Broker) -> list[list[int]]:
    """Takes all messages of the three queues; returns their numbers, in order."""
    queues = [broker.queue(name or "results") for name in TARGETS.values()]
    return [[int(body) for body in queue.get_many(1000, timeout=0)] if queue.qsize() else [] for queue in queues]


def expected(rows: int) -> list[list[int]]:
    return [[n for n in range(rows) if n % 3 == kind] for kind in TARGETS]


def stages(broker: shmq.Broker) -> list[str]:
    return [queue.name for queue in broker.queues() if ".stage." in queue.name]


def batch(*rows: tuple[str | None, str], **more: list[Any]) -> pa.RecordBatch:
    queues, bodies = [row[0] for row in rows], [row[1] for row in rows]
    return pa.RecordBatch.from_pydict({"body": bodies, "queue": pa.array(queues, pa.string()), **more})


def test_a_driver_that_dies_after_any_call_loses_and_doubles_nothing_in_any_queue(broker: shmq.Broker) -> None:
    orders = broker.queue("orders")
    orders.put_many([b"%d" % n for n in range(ROWS)])
    calls = Routed(Checkpoint(), source(broker), sink(broker), attempts=2).run()
    assert found(broker) == expected(ROWS)
    for crash_at in range(1, calls + 1):
        checkpoint = Checkpoint(query=f"query {crash_at}")
        orders.put_many([b"%d" % n for n in range(ROWS)])
        own = source(broker, subscription=f"s{crash_at}")
        with pytest.raises(Crash):
            Routed(checkpoint, own, sink(broker), crash_at, attempts=2).run()
        Routed(checkpoint, own, sink(broker)).run()
        assert found(broker) == expected(ROWS), f"crash after call {crash_at}"


@pytest.mark.parametrize("full", ["results", "odd", "rest"])
def test_what_is_decided_is_finished_in_all_queues_when_one_has_room_again(broker: shmq.Broker, full: str) -> None:
    broker.queue(full, maxsize=2).put_many(["-1", "-1"])
    broker.queue("orders").put_many([b"%d" % n for n in range(7)])
    checkpoint = Checkpoint()
    with pytest.raises(shmq.Full):
        Routed(checkpoint, source(broker), sink(broker, commitTimeout="0")).run()
    broker.queue(full).alter(maxsize=100)
    assert broker.queue(full).get_many(2) == ["-1", "-1"]
    assert Publication(broker.queue("results")).finish() == 1
    Routed(checkpoint, source(broker), sink(broker)).run()
    assert found(broker) == expected(7)


@pytest.mark.parametrize("delay", [False, True], ids=["as columns", "row by row"])
def test_rows_of_a_batch_keep_their_order_and_options_in_each_queue(broker: shmq.Broker, delay: bool) -> None:
    broker.queue("ranked", priorities=10, groups="shared")
    rows = [("ranked" if n % 2 else None, f"{n}") for n in range(100)]
    options = {
        "priority": pa.array([9 if n % 4 == 1 else 0 if n % 2 else None for n in range(100)], pa.int32()),
        "group": ["a" if n % 2 else None for n in range(100)],
        "delay": pa.array([0.0 if delay and n == 5 else None for n in range(100)], pa.float64()),
    }
    made = BatchSink(sink(broker, idempotencyKey="today"))
    for _ in range(2):  # the second one publishes nothing
        made.commit([made.write([batch(*rows[:60], **{k: v[:60] for k, v in options.items()}).slice(0, 50)]),
                     made.write([batch(*rows, **options).slice(50)])])  # fmt: skip
    assert [int(body) for body in broker.queue("results").get_many(100)] == list(range(0, 100, 2))
    ranked = [(m.priority, int(m.body), m.group) for m in broker.queue("ranked").browse()]
    assert ranked == [(9, n, "a") for n in range(1, 100, 4)] + [(0, n, "a") for n in range(3, 100, 4)]
    assert stages(broker) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("orders.spark.etl", "'orders.spark.etl' is a name of a queue that shmq has beside yours"),
        ("orders.published", "rows go into a queue of yours"),
        ("", "name"),
        ("a" * 300, "name"),
    ],
)
def test_a_name_that_is_no_queue_of_ones_own_is_refused_and_nothing_is_left(
    broker: shmq.Broker, name: str, text: str
) -> None:
    made = BatchSink(sink(broker))
    with pytest.raises(ValueError, match=text):
        made.write([batch((None, "a"), ("b", "b")), batch((name, "c"))])
    assert stages(broker) == []
    assert broker.queue("results").qsize() == broker.queue("b").qsize() == 0


def test_without_the_option_each_row_names_its_queue(broker: shmq.Broker) -> None:
    options = SinkOptions.parse({"path": broker.path or "", "idempotencyKey": "k"})
    for _ in range(2):
        made = BatchSink(options)
        made.commit([made.write([batch(("odd", "1"), ("rest", "2"), ("odd", "3"))])])
    assert found(broker) == [[], [1, 3], [2]]
    with pytest.raises(ValueError, match=r"a row's queue is NULL, and no option queue says where it goes"):
        BatchSink(options).write([batch(("odd", "1"), (None, "2"))])
    assert stages(broker) == []


def test_a_queue_that_lacks_what_a_row_asks_for_is_named(broker: shmq.Broker) -> None:
    check_target(sink(broker), {"body": "string", "queue": "string", "priority": "int"})  # each row's queue says it
    broker.queue("ranked", priorities=10)
    rows = batch(("ranked", "a"), ("plain", "b"), priority=pa.array([1, 2], pa.int32()))
    with pytest.raises(ValueError, match="queue 'plain' has no priorities"):
        BatchSink(sink(broker)).write([rows])
    assert stages(broker) == []


def test_a_queue_that_is_deleted_before_the_decision_fails_the_batch_and_after_it_loses_its_own_rows(
    broker: shmq.Broker,
) -> None:
    made = BatchSink(sink(broker))
    staged = made.write([batch(("gone", "a"), ("kept", "b"))])
    broker.queue("gone").delete()
    with pytest.raises(DataLost, match=r"not as it was written.*queue 'gone', into which its rows go, was deleted"):
        made.commit([staged])
    made.abort([staged])  # as Spark does then
    assert broker.queue("kept").qsize() == 0
    broker.queue("kept", maxsize=1).put("in the way")
    made = BatchSink(sink(broker, commitTimeout="0", idempotencyKey="k"))
    with pytest.raises(shmq.Full):  # decided
        made.commit([made.write([batch(("kept", "b"), ("gone", "a"))])])
    broker.queue("gone").delete()
    assert broker.queue("kept").get() == "in the way"
    assert Publication(broker.queue("results")).finish() == 1
    assert broker.queue("kept").get(timeout=0) == "b"
    assert broker.queue("gone").qsize() == 0
    assert stages(broker) == []


def test_rows_that_are_decided_for_others_outlive_the_queue_of_the_notes(broker: shmq.Broker) -> None:
    broker.queue("kept", maxsize=1).put("in the way")
    made = BatchSink(sink(broker, commitTimeout="0"))
    with pytest.raises(shmq.Full):
        made.commit([made.write([batch(("kept", "b"), (None, "a"))])])
    broker.queue("results").delete()
    assert broker.queue("kept").get() == "in the way"
    Publication(broker.queue("results")).finish()
    assert broker.queue("kept").get(timeout=0) == "b"
    assert broker.queue("results").qsize() == 0
    assert stages(broker) == []


def test_over_several_hosts_each_has_the_queues(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    for path in paths:
        shmq.open(path, memory="16MiB").close()
    gateways = [GatewayProcess(path) for path in paths]
    try:
        options = {"uri": ",".join(each.uri for each in gateways), "queue": "results", "idempotencyKey": "k"}
        rows = [("odd" if n % 2 else None, f"{n}") for n in range(2_000)]
        for _ in range(2):
            made: Any = batch_sink(options, False)
            made.commit([made.write([batch(*rows)])])
        parts = {name: [drained(path, name) for path in paths] for name in ("odd", "results")}
        assert all(part for each in parts.values() for part in each)
        assert sorted(int(body) for part in parts["odd"] for body in part) == list(range(1, 2_000, 2))
        assert sorted(int(body) for part in parts["results"] for body in part) == list(range(0, 2_000, 2))
    finally:
        for each in gateways:
            each.end()
        for path in paths:
            shmq.open(path).delete(force=True)


def test_spark_routes_a_stream_and_a_batch(spark: SparkSession, broker: shmq.Broker, tmp_path: Path) -> None:
    broker.queue("orders").put_many([{"id": n, "kind": ["books", "toys", None][n % 3]} for n in range(9)])
    reader = spark.readStream.format("shmq").option("path", broker.path or "").option("queue", "orders")
    rows = reader.option("subscription", "etl").option("schema", "id INT, kind STRING").load()
    routed = rows.selectExpr("body.kind AS queue", "to_json(body) AS body")
    writer = routed.writeStream.format("shmq").option("path", broker.path or "").option("queue", "results")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    assert writer.start().awaitTermination(SECONDS)
    for name, kind in (("books", 0), ("toys", 1), ("results", 2)):
        bodies = broker.queue(name).get_many(9, timeout=0)
        assert sorted(json.loads(body)["id"] for body in bodies) == [n for n in range(9) if n % 3 == kind]
    frame = spark.range(2).selectExpr("'books' AS queue", "string(id) AS body")
    frame.write.format("shmq").mode("append").option("path", broker.path or "").option("queue", "results").save()
    assert sorted(broker.queue("books").get_many(9, timeout=0)) == ["0", "1"]
    frame.write.format("shmq").mode("append").option("path", broker.path or "").save()
    assert sorted(broker.queue("books").get_many(9, timeout=0)) == ["0", "1"]
    with pytest.raises(Exception, match="the option queue is missing"):
        frame.drop("queue").write.format("shmq").mode("append").option("path", broker.path or "").save()
    over = frame.write.format("shmq").mode("overwrite").option("path", broker.path or "").option("queue", "results")
    with pytest.raises(Exception, match="the column 'queue' names several"):
        over.option("truncate", "true").save()
