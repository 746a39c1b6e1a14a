"""From queue to queue through the engine's calls: every row once and in order, wherever the driver dies."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.engine.claims.claim import Claimer, queue_of_claims
from shmq.spark.batch_source import BatchSource
from shmq.spark.notes import published_name
from shmq.spark.options import SinkOptions, SourceOptions
from shmq.spark.publication import Publication
from shmq.spark.stage import is_stage_of
from shmq.spark.stream_source import Limit, StreamSource
from shmq.spark.subscription import claims_name
from tests.engine.child import eventually
from tests.spark.engine import Checkpoint, Crash, Engine

ROWS = 11


def rows(end: int, begin: int = 0) -> list[bytes]:
    return [b"%d" % n for n in range(begin, end)]


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="16MiB") as opened:
        yield opened


@pytest.fixture
def orders(broker: shmq.Broker) -> shmq.Queue[Any]:
    return broker.queue("orders")


def source(broker: shmq.Broker, **options: str) -> SourceOptions:
    given = {"path": broker.path or "", "queue": "orders", "subscription": "etl", "maxRowsPerBatch": "7", "pollMs": "0"}
    return SourceOptions.parse(given | {"minPartitions": "2"} | options)


def sink(broker: shmq.Broker, **options: str) -> SinkOptions:
    return SinkOptions.parse({"path": broker.path or "", "queue": "results"} | options)


def taken(queue: shmq.Queue[Any]) -> list[Any]:
    found = []
    try:
        while True:
            found.append(queue.get(timeout=0))
    except shmq.Empty:
        return found


def left_over(broker: shmq.Broker) -> set[str]:
    """Staging queues that nobody has deleted."""
    return {queue.name for queue in broker.queues() if is_stage_of(queue.name, "results")}


def calls_of_a_run(broker: shmq.Broker, **how: Any) -> int:
    return Engine(Checkpoint(), source(broker), sink(broker), **how).run()


def test_rows_go_through_in_order(broker: shmq.Broker, orders: shmq.Queue[Any]) -> None:
    orders.put_many(rows(ROWS))
    assert calls_of_a_run(broker) > 12
    assert taken(broker.queue("results")) == rows(ROWS)
    assert orders.qsize() == 0
    assert left_over(broker) == set()


def test_a_driver_that_dies_after_any_call_loses_and_doubles_nothing(
    broker: shmq.Broker, orders: shmq.Queue[Any]
) -> None:
    orders.put_many(rows(ROWS))
    calls = calls_of_a_run(broker, attempts=2)
    assert taken(broker.queue("results")) == rows(ROWS)
    for crash_at in range(1, calls + 1):
        checkpoint = Checkpoint(query=f"query {crash_at}")
        orders.put_many(rows(ROWS))
        with pytest.raises(Crash):
            Engine(checkpoint, source(broker, subscription=f"s{crash_at}"), sink(broker), crash_at, attempts=2).run()
        Engine(checkpoint, source(broker, subscription=f"s{crash_at}"), sink(broker)).run()
        assert taken(broker.queue("results")) == rows(ROWS), f"crash after call {crash_at}"


def test_a_driver_that_dies_again_and_again_loses_and_doubles_nothing(
    broker: shmq.Broker, orders: shmq.Queue[Any]
) -> None:
    """Each run one call longer than the one before, from one checkpoint, with newcomers."""
    checkpoint, put = Checkpoint(), 0
    for crash_at in range(1, 30):
        orders.put_many(rows(put + 3, put))
        put += 3
        try:
            Engine(checkpoint, source(broker), sink(broker), crash_at).run()
        except Crash:
            continue
    Engine(checkpoint, source(broker), sink(broker)).run()
    assert taken(broker.queue("results")) == rows(put)
    assert checkpoint.commits == sorted(checkpoint.commits)


@pytest.mark.parametrize("moved", range(8))
def test_claims_that_no_offset_knows_come_first(broker: shmq.Broker, orders: shmq.Queue[Any], moved: int) -> None:
    """The planner died amid its moves: so many had been done."""
    orders.put_many(rows(ROWS))
    claims = queue_of_claims(broker, claims_name("orders", "etl"))
    if moved:
        assert Claimer(orders, claims).claim(moved, 1 << 20).entries == moved
    Engine(Checkpoint(), source(broker), sink(broker)).run()
    assert taken(broker.queue("results")) == rows(ROWS)


@pytest.mark.parametrize("room", range(8))
def test_a_batch_that_is_decided_is_finished_by_the_next_one(
    broker: shmq.Broker, orders: shmq.Queue[Any], room: int
) -> None:
    """The driver died amid the moves behind its decision: so many had been done."""
    results = broker.queue("results", maxsize=7)
    orders.put_many(rows(ROWS))
    results.put_many(["before"] * (7 - room))
    checkpoint = Checkpoint()
    impatient = sink(broker, commitTimeout="0")
    if room < 7:
        with pytest.raises(shmq.Full):
            Engine(checkpoint, source(broker), impatient).run(batches=1)
        assert results.qsize() == 7
    found = taken(results)
    for _ in range(20):
        try:
            Engine(checkpoint, source(broker), impatient).run()
        except shmq.Full:
            found += taken(results)
    found += taken(results)
    assert [row for row in found if row != "before"] == rows(ROWS)
    assert left_over(broker) == set()


def test_a_batch_that_was_published_is_not_published_again(broker: shmq.Broker, orders: shmq.Queue[Any]) -> None:
    """The driver died between the sink's commit and Spark's commit log: the batch is written and committed again."""
    orders.put_many(rows(5))
    checkpoint = Checkpoint()
    Engine(checkpoint, source(broker), sink(broker)).run(batches=1)
    checkpoint.commits.clear()
    Engine(checkpoint, source(broker), sink(broker)).run()
    assert taken(broker.queue("results")) == rows(5)
    assert left_over(broker) == set()


def test_an_attempt_that_lost_is_never_published_and_expires(broker: shmq.Broker, orders: shmq.Queue[Any]) -> None:
    orders.put_many(rows(5))
    Engine(Checkpoint(), source(broker), sink(broker, stageTtl="1"), attempts=3).run()
    assert taken(broker.queue("results")) == rows(5)
    assert len(left_over(broker)) in (0, 2)  # a busy machine may let them expire at once
    expire(broker)
    assert left_over(broker) == set()


def expire(broker: shmq.Broker) -> None:
    """Waits until what has an end is at its end."""
    eventually(lambda: not left_over(broker))


def test_whoever_asks_finishes_what_is_decided(broker: shmq.Broker, orders: shmq.Queue[Any]) -> None:
    results = broker.queue("results", maxsize=7)
    orders.put_many(rows(ROWS))
    results.put_many(["before"] * 7)
    with pytest.raises(shmq.Full):
        Engine(Checkpoint(), source(broker), sink(broker, commitTimeout="0")).run()
    assert taken(results) == ["before"] * 7
    assert Publication(results).finish() == 1
    assert Publication(results).finish() == 0
    assert taken(results) == rows(7)


@pytest.mark.parametrize("reader", ["batch", "stream"])
def test_whoever_reads_the_queue_finishes_what_is_decided(
    broker: shmq.Broker, orders: shmq.Queue[Any], reader: str
) -> None:
    """As far as there is room, and not beside another publisher."""
    results = broker.queue("results", maxsize=7)
    orders.put_many(rows(7))
    results.put_many(["before"] * 7)
    with pytest.raises(shmq.Full):
        Engine(Checkpoint(), source(broker), sink(broker, commitTimeout="0")).run()
    options = source(broker, queue="results", subscription="next")

    def look() -> None:
        if reader == "batch":
            BatchSource(options).partitions()
        else:
            planner = StreamSource(options)
            planner.initialOffset()
            planner.close()

    look()
    assert taken(results) == ["before"] * 7
    with broker.queue(published_name("results")).consumer(exclusive=True):
        look()
        assert results.qsize() == 0
    look()
    assert taken(results) == rows(7)
    assert left_over(broker) == set()


def test_one_note_is_kept_of_a_query(broker: shmq.Broker, orders: shmq.Queue[Any]) -> None:
    orders.put_many(rows(ROWS))
    Engine(Checkpoint(), source(broker), sink(broker)).run()
    orders.put_many(rows(3))
    Engine(Checkpoint(query="another"), source(broker), sink(broker)).run()
    assert broker.queue(published_name("results")).qsize() == 2


def test_an_available_now_run_reads_what_is_there_and_acknowledges_all_of_it(
    broker: shmq.Broker, orders: shmq.Queue[Any]
) -> None:
    orders.put_many(rows(ROWS))
    checkpoint = Checkpoint()
    engine = Engine(checkpoint, source(broker), sink(broker))
    latest = engine.source.latestOffset

    def and_a_newcomer(start: Any, limit: Limit) -> Any:
        orders.put("late")
        return latest(start, limit)

    engine.source.latestOffset = and_a_newcomer
    engine.run(available_now=True)
    assert taken(broker.queue("results")) == rows(ROWS)
    assert len(checkpoint.commits) == 2
    assert broker.queue(claims_name("orders", "etl")).qsize() == 0
    assert set(taken(orders)) == {"late"}


def test_a_second_query_on_a_subscription_is_refused_with_the_first_ones_process(
    broker: shmq.Broker, orders: shmq.Queue[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shmq.spark.subscription._OWNERSHIP_SECONDS", 0.0)
    first, second = StreamSource(source(broker)), StreamSource(source(broker))
    first.initialOffset()
    with pytest.raises(
        shmq.ConsumerRefused, match=rf"'etl' of queue 'orders' is read by another query: .*{os.getpid()}"
    ):
        second.initialOffset()
    other = StreamSource(source(broker, subscription="audit"))
    other.initialOffset()
    other.close()
    first.close()
    second.initialOffset()
    second.close()


def test_a_batch_is_split_into_tasks_and_published_in_order(
    broker: shmq.Broker, orders: shmq.Queue[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shmq.spark.stream_source._FEW_ROWS", 1)
    orders.put_many(rows(100))
    options = source(broker, minPartitions="4", maxRowsPerBatch="50")
    planner = StreamSource(options)
    start = planner.initialOffset()
    assert len(planner.partitions(start, planner.latestOffset(start, Limit(rows=50)))) == 4
    planner.close()
    Engine(Checkpoint(), options, sink(broker)).run()
    assert taken(broker.queue("results")) == rows(100)


@pytest.mark.parametrize("room", [1, 2, 5, 7])
@pytest.mark.parametrize("available_now", [False, True])
def test_more_than_the_queue_of_the_claims_holds_goes_through(
    broker: shmq.Broker, orders: shmq.Queue[Any], room: int, available_now: bool
) -> None:
    """Spark acknowledges a batch while it plans the next one: one without rows, where there is no room for a claim."""
    broker.queue(claims_name("orders", "etl"), maxsize=room, max_attempts=0, max_deaths=0)
    orders.put_many(rows(ROWS))
    Engine(Checkpoint(), source(broker), sink(broker)).run(available_now=available_now)
    assert taken(broker.queue("results")) == rows(ROWS)
    assert orders.qsize() == 0


def test_several_queues_are_read_together(broker: shmq.Broker, orders: shmq.Queue[Any]) -> None:
    returns = broker.queue("returns")
    orders.put_many(f"o{n}" for n in range(ROWS))
    returns.put_many(f"r{n}" for n in range(ROWS))
    Engine(Checkpoint(), source(broker, queue="orders, returns"), sink(broker)).run()
    found = taken(broker.queue("results"))
    assert [row for row in found if row[:1] == b"o"] == [f"o{n}".encode() for n in range(ROWS)]
    assert [row for row in found if row[:1] == b"r"] == [f"r{n}".encode() for n in range(ROWS)]


def test_a_batch_is_as_small_as_is_asked(broker: shmq.Broker, orders: shmq.Queue[Any]) -> None:
    orders.put_many([b"x" * 1000] * 10)
    planner = StreamSource(source(broker))
    start = planner.initialOffset()
    by_rows = planner.latestOffset(start, Limit(rows=4))
    by_size = planner.latestOffset(by_rows, Limit(nbytes=2500))
    large = planner.latestOffset(by_size, Limit(nbytes=1))
    rest = planner.latestOffset(large, Limit())
    rows = [offset["queues"]["orders"]["rows"] for offset in (start, by_rows, by_size, large, rest)]
    assert rows == [0, 4, 6, 7, 10]
    planner.close()
