"""A batch read begins and ends where it is told: at positions, and at times."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import shmq
from shmq.engine.claims.claim import discard_at
from shmq.spark.batch_source import BatchSource
from shmq.spark.bounds import times_of
from shmq.spark.options import SourceOptions
from shmq.spark.stream_source import StreamSource

WALL = 1_764_300_000.0  # 2025-11-28T03:20:00Z


def read(broker: shmq.Broker, columns: Any = ("body",), **options: Any) -> list[Any]:
    given = {"path": broker.path or "", "minPartitions": "3"} | (
        {} if "subscribePattern" in options else {"queue": "orders"}
    )
    source = BatchSource(SourceOptions.parse(given | options), columns)
    return [
        row["body"].decode() if columns == ("body",) else row
        for part in source.partitions()
        for batch in source.read(part)
        for row in batch.to_pylist()
    ]


def test_positions_are_a_first_one_and_one_behind_the_last(broker: shmq.Broker) -> None:
    orders = broker.queue("orders")
    orders.put_many(map(str, range(5_000)))
    discard_at(orders, 3)  # a gap
    assert read(broker, startingPosition="4990") == [str(n) for n in range(4990, 5000)]
    assert read(broker, endingPosition="5") == ["0", "1", "2", "4"]
    assert read(broker, startingPosition="2", endingPosition="1003") == [str(n) for n in range(2, 1003) if n != 3]
    assert read(broker, startingPosition="7", endingPosition="7") == []
    assert read(broker, startingPosition="9999") == []
    assert len(read(broker, startingPosition="earliest", endingPosition="latest")) == 4999
    assert orders.qsize() == 4999


def test_positions_of_several_queues_are_json(broker: shmq.Broker) -> None:
    for name in ("orders", "refunds"):
        broker.queue(name).put_many(f"{name} {n}" for n in range(4))
    found = read(
        broker,
        queue="orders,refunds",
        startingPosition=json.dumps({"orders": 2}),
        endingPosition=json.dumps({"refunds": 1, "orders": 3}),
    )
    assert found == ["orders 2", "refunds 0"]
    assert read(broker, subscribePattern="orders|refunds", startingPosition='{"orders": 4, "refunds": 3}') == [
        "refunds 3"
    ]


@pytest.mark.parametrize("selector", [None, "JMSPriority >= 0"])
def test_times_are_those_of_the_puts(broker: shmq.Broker, selector: str | None) -> None:
    orders = broker.queue("orders")
    for n in range(6):
        orders.put(str(n))
        time.sleep(0.002)  # so that each has a time of its own
    more = {} if selector is None else {"selector": selector}
    rows = read(broker, ("enqueued_at", "body"), **more)
    moments = [row["enqueued_at"] for row in rows]
    assert moments == sorted(set(moments))
    second, fifth = moments[1], moments[4]
    assert read(broker, startingTimestamp=second.isoformat(), endingTimestamp=fifth.isoformat(), **more) == [
        "1",
        "2",
        "3",
    ]
    berlin = second.astimezone(timezone(timedelta(hours=1)))
    assert read(broker, startingTimestamp=berlin.isoformat(), **more) == ["1", "2", "3", "4", "5"]
    assert read(broker, startingTimestamp=second.replace(tzinfo=None).isoformat(" "), **more) == [
        "1",
        "2",
        "3",
        "4",
        "5",
    ]
    assert read(broker, endingTimestamp=second.isoformat().replace("+00:00", "Z"), **more) == ["0"]
    assert read(broker, startingTimestamp=str(int(time.time() * 1000) + 60_000), **more) == []
    assert [list(row) for row in read(broker, ("position", "body"), startingTimestamp=fifth.isoformat(), **more)] == [
        ["position", "body"]
    ] * 2


def test_a_time_is_milliseconds_as_of_kafka_or_iso() -> None:
    moment = datetime.fromtimestamp(WALL, UTC)
    for text in (f"{WALL * 1000:.0f}", moment.isoformat(), "2025-11-28 03:20:00", "2025-11-28T04:20:00+01:00"):
        assert times_of(text, None)[0] == int(WALL * 1e6), text
    assert times_of("1969-12-31T23:59:58Z", "1969-12-31T23:59:59Z") == (-2_000_000, -1_000_000)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"startingPosition": "-1"}, "option startingPosition='-1': earliest, a position, or those of several queues"),
        ({"endingPosition": "soon"}, "option endingPosition='soon': latest, a position"),
        ({"startingPosition": "1.5"}, "a position"),
        ({"startingPosition": "true"}, "a position"),
        ({"startingPosition": '{"orders": "4"}'}, "a position"),
        ({"startingPosition": '{"refunds": 4}'}, "'refunds' is not among the queues that are read"),
        ({"startingPosition": "4", "queue": "a,b"}, r'name it, as in \{"orders": 4\}'),
        ({"startingPosition": "9", "endingPosition": "8"}, "endingPosition=8 of queue 'orders' lies before"),
        ({"startingTimestamp": "yesterday"}, "milliseconds of the epoch are expected, or a time such as"),
        ({"startingTimestamp": "2", "endingTimestamp": "1"}, "endingTimestamp='1' lies before"),
    ],
)
def test_a_bound_that_makes_no_sense_is_named(broker: shmq.Broker, options: dict[str, str], text: str) -> None:
    broker.queue("orders")
    with pytest.raises(ValueError, match=text):
        read(broker, **options)


@pytest.mark.parametrize("option", ["startingPosition", "endingPosition", "startingTimestamp", "endingTimestamp"])
def test_a_stream_refuses_bounds(broker: shmq.Broker, option: str) -> None:
    given = {"path": broker.path or "", "queue": "orders", "subscription": "etl", option: "5"}
    with pytest.raises(ValueError, match="are of a batch read; a stream begins with all that waits"):
        StreamSource(SourceOptions.parse(given))
