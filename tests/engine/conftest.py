"""A broker and a queue for each test, and the three ways to take a message."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq

MEMORY = "16MiB"

Taker = Callable[[shmq.Queue[Any], float | None], Any]


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory=MEMORY, disk="8GiB") as opened:
        yield opened


@pytest.fixture
def memory_only(broker_dir: Path) -> Iterator[shmq.Broker]:
    """Nothing flows to disk: what does not fit into memory is refused."""
    with shmq.open(broker_dir, memory=MEMORY, disk=0) as opened:
        yield opened


@pytest.fixture
def queue(broker: shmq.Broker) -> shmq.Queue[Any]:
    return broker.queue("jobs")


def take_by_get(queue: shmq.Queue[Any], timeout: float | None) -> Any:
    return queue.get(timeout=timeout)


def take_by_receive(queue: shmq.Queue[Any], timeout: float | None) -> Any:
    with queue.receive(timeout=timeout) as m:
        return m.body


def take_by_consumer(queue: shmq.Queue[Any], timeout: float | None) -> Any:
    with queue.consumer() as consumer, consumer.receive(timeout=timeout) as m:
        return m.body


TAKERS = {"get": take_by_get, "receive": take_by_receive, "consumer": take_by_consumer}


@pytest.fixture(params=sorted(TAKERS))
def take(request: pytest.FixtureRequest) -> Taker:
    """take(queue, timeout) -> body, settled."""
    taker: Taker = TAKERS[request.param]
    return taker


def fill(queue: shmq.Queue[Any], body: Any) -> None:
    """Puts until there is no room: raises Full."""
    while True:
        queue.put(body, timeout=0)


def fail() -> None:
    """Goes wrong in a block of a test."""
    raise ZeroDivisionError
