"""Queues by a pattern, how far behind a stream is, batches of a least size: what the planner does, without Spark."""

from __future__ import annotations

import time
from typing import Any

import pytest

import shmq
from shmq.spark.batch_source import BatchSource
from shmq.spark.least_batch import LeastBatch
from shmq.spark.named_queue import queues_like
from shmq.spark.options import SourceOptions
from shmq.spark.stream_source import Limit, StreamSource
from shmq.spark.subscription import claims_name

OWN = ["orders.a.spark.etl", "orders.a.stage.0123456789abcdef", "orders.a.published", "orders.a.dead"]


def stream(broker: shmq.Broker, **more: str) -> StreamSource:
    given = {"path": broker.path or "", "subscription": "etl", "pollMs": "1"}
    return StreamSource(SourceOptions.parse(given | more))


def rows(offset: dict[str, Any]) -> dict[str, int]:
    return {name: reached["rows"] for name, reached in offset["queues"].items()}


def bodies(source: StreamSource, broker: shmq.Broker, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
    return [entry[9] for part in source.partitions(start, end) for entry in source.entries(broker, part)]


def test_a_batch_reads_all_queues_that_match_and_none_of_our_own(broker: shmq.Broker) -> None:
    for name in ["orders.b", "orders.a", "order", "xorders.a", *OWN]:
        broker.queue(name)
    assert [queue.name for queue in queues_like(broker, r"orders\..*")] == ["orders.a", "orders.b"]
    broker.queue("orders.b").put("b")
    broker.queue("order").put("x")
    for pattern, found in ((r"orders\..*", ["orders.b"]), ("nothing", [])):
        options = SourceOptions.parse({"path": broker.path or "", "subscribePattern": pattern})
        assert [part.queue for part in BatchSource(options).partitions()] == found


def test_a_stream_takes_queues_that_come_later_and_goes_on_with_them(broker: shmq.Broker) -> None:
    source = stream(broker, subscribePattern=r"orders\..*")
    start = source.initialOffset()
    assert rows(start) == {}
    assert source.latestOffset(start, Limit()) == start
    broker.queue("orders.a").put_many(["a1", "a2"])
    first = source.latestOffset(start, Limit())
    assert (rows(first), bodies(source, broker, start, first)) == ({"orders.a": 2}, [b"a1", b"a2"])
    broker.queue("orders.b").put("b1")
    broker.queue("orders.a").put("a3")
    broker.queue("other").put("x")
    second = source.latestOffset(first, Limit())
    assert rows(second) == {"orders.a": 3, "orders.b": 1}
    source.close()
    again = stream(broker, subscribePattern=r"orders\..*")  # as after a crash: the first call is partitions()
    assert sorted(bodies(again, broker, first, second)) == [b"a3", b"b1"]
    again.commit(second)
    assert again.latestOffset(second, Limit()) == second
    assert [broker.queue(claims_name(name, "etl")).qsize() for name in ("orders.a", "orders.b")] == [0, 0]
    again.close()


def test_a_run_of_what_is_there_now_reads_queues_of_the_pattern(broker: shmq.Broker) -> None:
    broker.queue("orders.a").put_many(["1", "2", "3"])
    source = stream(broker, subscribePattern=r"orders\..*")
    source.prepareForTriggerAvailableNow()
    start = source.initialOffset()
    broker.queue("orders.a").put("later")
    end = source.latestOffset(start, Limit())
    assert rows(end) == {"orders.a": 3}
    assert source.latestOffset(end, Limit()) == end
    source.close()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"queue": "orders", "subscribePattern": "a"}, "queue and subscribePattern are both given"),
        ({"subscribePattern": "a("}, "option subscribePattern='a\\(': no regular expression of Python"),
        ({}, "the option queue is missing"),
        ({"queue": "a", "minRowsPerBatch": "9", "maxRowsPerBatch": "8"}, "at most maxRowsPerBatch=8 rows"),
        ({"queue": "a", "minRowsPerBatch": "0"}, "minRowsPerBatch='0': a whole number from 1 on"),
        ({"queue": "a", "minRowsPerBatch": "9", "selector": "a = 1"}, "does not go with a selector"),
        ({"queue": "a", "maxBatchDelay": "9"}, "goes with minRowsPerBatch"),
    ],
)
def test_options_that_do_not_go_together_are_named(broker: shmq.Broker, options: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        stream(broker, **options)


def test_the_latest_offset_has_the_rows_that_wait_behind_a_batch(broker: shmq.Broker) -> None:
    orders, refunds = broker.queue("orders"), broker.queue("refunds")
    orders.put_many(range(10))
    refunds.put_many(range(5))
    source = stream(broker, queue="orders,refunds")
    assert rows(source.reportLatestOffset()) == {"orders": 10, "refunds": 5}
    end = source.latestOffset(source.initialOffset(), Limit(rows=4))
    assert rows(end) == {"orders": 4, "refunds": 0}
    assert rows(source.reportLatestOffset()) == {"orders": 10, "refunds": 5}
    assert source.waiting(end) == 11
    source.commit(end)  # it does not count what was acknowledged less
    assert rows(source.reportLatestOffset()) == {"orders": 10, "refunds": 5}
    source.close()
    again = stream(broker, queue="orders,refunds")  # claimed, and in no batch that Spark knows
    assert again.waiting(end) == 11
    assert rows(again.latestOffset(end, Limit())) == {"orders": 10, "refunds": 5}
    again.close()


def test_few_rows_wait_for_more_but_not_for_ever() -> None:
    patient = LeastBatch(10, 3600.0)
    assert [patient.holds(n) for n in (0, 1, 9, 10, 3, 10, 11)] == [True, True, True, False, True, False, False]
    hasty = LeastBatch(10, 0.0)
    assert [hasty.holds(n) for n in (0, 1, 9, 0)] == [True, False, False, True]
    short = LeastBatch(10, 0.05)
    assert short.holds(1)
    time.sleep(0.05)  # what it waits for
    assert not short.holds(1)
    assert short.holds(1)  # the next one waits anew
