"""SIGSTOP of a planner of Spark, or of a publisher, at any moment: producers and consumers of its queues go on.

As in test_stopped.py: a delay is the patience (0.1 s here) at most, with a margin for a machine that is busy. A stopped
holder of the structure lock delays whoever needs memory that is not laid out yet (docs/guarantees.md), so both rings
have had one lap before.
"""

import random
import signal
import time
from typing import Any

import pytest

import shmq
from shmq.engine.arrow.outgoing import Outgoing
from shmq.spark.options import SinkOptions, SourceOptions
from shmq.spark.sink import StreamSink
from shmq.spark.stream_source import Limit, StreamSource
from tests.support.offspring import Offspring, Say, family
from tests.support.size import sized

PATIENCE, MARGIN, STOP = 0.1, 0.3, 0.4
STOPS = sized(12, 150)
ROOM = 2_000


def plan(path: str, say: Say) -> None:
    """Claims batches of `orders`, and acknowledges each when the next one is there."""
    options = {"path": path, "queue": "orders", "subscription": "etl", "pollMs": "1"}
    source = StreamSource(SourceOptions.parse(options))
    start = source.initialOffset()
    say("here")
    while True:
        end = source.latestOffset(start, Limit(rows=50))
        source.commit(start)
        start = end


def publish(path: str, say: Say) -> None:
    """Publishes batches into `results`, as a driver does."""
    sink = StreamSink(SinkOptions.parse({"path": path, "queue": "results"}))
    say("here")
    batch = 0
    while True:
        sink.commit([sink.stage([Outgoing(b"row", {}, None)] * 20, "query")], batch)
        batch += 1


@pytest.mark.alone
def test_a_planner_or_publisher_that_is_stopped_anywhere_delays_nobody(broker: shmq.Broker, seed: int) -> None:
    rng = random.Random(seed)
    orders: shmq.Queue[Any] = broker.queue("orders", codec="bytes", maxsize=ROOM)
    results: shmq.Queue[Any] = broker.queue("results", codec="bytes", maxsize=ROOM)
    for queue in (orders, results):
        for _ in range(5):  # a ring has more slots than its queue takes messages
            queue.put_many([b"row"] * ROOM)
            queue.purge()
    assert broker.path is not None
    longest = 0.0
    taken = 0
    with family() as children:
        children.extend(Offspring(child, broker.path) for child in (plan, publish))
        for child in children:
            child.expect("here")
        for _ in range(STOPS):
            time.sleep(rng.random() * 0.02)
            for child in children:
                child.signal(signal.SIGSTOP)
            end = time.monotonic() + STOP
            while time.monotonic() < end:
                for queue in (orders, results):
                    begin = time.monotonic()
                    queue.put(b"mine", timeout=30)
                    queue.get(timeout=30)
                    longest = max(longest, time.monotonic() - begin)
                    taken += 1
            for child in children:
                child.signal(signal.SIGCONT)
            orders.purge()
            results.purge()
    print(f"{STOPS} stops, {taken} times, longest delay {longest * 1e3:.0f} ms")
    assert taken > STOPS
    assert longest < PATIENCE + MARGIN
