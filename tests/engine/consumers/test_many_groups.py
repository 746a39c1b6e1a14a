"""Many groups at once: one consumer that holds them leaves others theirs. Shows G1."""

from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child
from tests.engine.consumers.test_groups import HOLDS, gets_nothing


@pytest.fixture(params=["shared", "sticky"])
def grouped(broker: shmq.Broker, request: pytest.FixtureRequest) -> shmq.Queue[Any]:
    return broker.queue("either", groups=request.param)


def received(consumer: shmq.Consumer[Any], count: int) -> list[shmq.Message[Any]]:
    """So many, or as many as there are for it."""
    found: list[shmq.Message[Any]] = []
    while len(found) < count and (more := consumer.receive_many(count - len(found), timeout=0)):
        found += more
    return found


@pytest.mark.in_hand
def test_one_consumer_with_a_thousand_groups_leaves_others_theirs(grouped: shmq.Queue[Any]) -> None:
    """A key whose place somebody has waits. The keys, and so their places, are the same in each run."""
    for n in range(1000):
        grouped.put(n, group=f"held {n}")
    with grouped.consumer() as one, grouped.consumer() as two:
        held = received(one, 1000)
        assert len(held) == 1000
        for n in range(200):
            grouped.put(n, group=f"new {n}")
        at_once = received(two, 200)
        assert len(at_once) > 150
        for m in held + at_once:
            m.ack()
        held.clear()
        if grouped.options["groups"] == "shared":
            assert len(received(two, 200)) == 200 - len(at_once)


@pytest.mark.in_hand
def test_a_thousand_groups_of_a_dead_process_are_free(broker_dir: Path, grouped: shmq.Queue[Any]) -> None:
    for n in range(1000):
        grouped.put(n, group=f"held {n}")
    with Child(HOLDS, broker_dir, "either", 1000) as child, grouped.consumer() as consumer:
        child.line()
        gets_nothing(consumer)
        child.kill()
        for n in range(1000):
            with consumer.receive(timeout=30) as m:
                assert m.body == n
