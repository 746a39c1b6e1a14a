"""Each call of Spark's engine keeps its promise by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

import shmq
from shmq.engine.arrow.outgoing import Outgoing
from shmq.spark.batch_source import BatchSource
from shmq.spark.options import SinkOptions, SourceOptions
from shmq.spark.sink import BatchSink
from shmq.spark.stream_source import Limit, StreamSource
from shmq.spark.subscription import claims_name


def options(broker: shmq.Broker, **more: str) -> SourceOptions:
    given = {"path": broker.path or "", "queue": "orders", "subscription": "etl", "pollMs": "0"}
    return SourceOptions.parse(given | more)


def test_an_acknowledgement_that_is_repeated_or_older_changes_nothing(broker: shmq.Broker) -> None:
    broker.queue("orders").put_many([b"row"] * 9)
    source = StreamSource(options(broker))
    offsets = [source.initialOffset()]
    for _ in range(3):
        offsets.append(source.latestOffset(offsets[-1], Limit(rows=3)))
    claims = broker.queue(claims_name("orders", "etl"))
    for offset, left in ((offsets[2], 3), (offsets[2], 3), (offsets[1], 3), (offsets[0], 3), (offsets[3], 0)):
        source.commit(offset)
        assert claims.qsize() == left
    source.close()


def test_asking_where_to_begin_moves_nothing(broker: shmq.Broker) -> None:
    orders = broker.queue("orders")
    orders.put_many([b"row"] * 9)
    source = StreamSource(options(broker))
    assert json.dumps(source.initialOffset()) == json.dumps(source.initialOffset())
    source.close()
    assert orders.qsize() == 9


def test_a_stream_with_a_selector_takes_what_it_is_true_for(broker: shmq.Broker) -> None:
    orders = broker.queue("orders")
    for n in range(10):
        orders.put(b"%d" % n, headers={"n": n})
    source = StreamSource(options(broker, selector="n >= 7"))
    start = source.initialOffset()
    end = source.latestOffset(start, Limit())
    found = [entry[9] for part in source.partitions(start, end) for entry in source.entries(broker, part)]
    assert found == [b"7", b"8", b"9"]
    assert orders.qsize() == 7
    source.close()


def test_a_batch_read_is_split_by_bytes(broker: shmq.Broker) -> None:
    broker.queue("orders").put_many([bytes(1000)] * 4000)
    for size, parts in (("1MiB", 4), ("500KiB", 8), ("32MiB", 1)):
        source = BatchSource(options(broker, maxPartitionBytes=size, minPartitions="1"))
        assert len(source.partitions()) == parts, size


@pytest.mark.parametrize("rows", [0, 2])
def test_an_overwrite_throws_away_what_is_ready_with_its_decision(broker: shmq.Broker, rows: int) -> None:
    results: shmq.Queue[Any] = broker.queue("results")
    results.put_many(["old"] * 3)
    given = {"path": broker.path or "", "queue": "results", "truncate": "true"}
    sink = BatchSink(SinkOptions.parse(given), overwrite=True)
    staged = [sink.stage([Outgoing("new", {}, None)] * rows)] if rows else []
    assert results.qsize() == 3
    sink.commit(staged)
    assert results.get_many(9, timeout=0) == ["new"] * rows
