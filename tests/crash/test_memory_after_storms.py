"""Killed processes cost a broker no memory: drained and reaped, it has as much as a new one."""

import contextlib
import random
import signal
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.support.health import check_empty, reap_the_dead, usage
from tests.support.offspring import Offspring, Say, family

Queue = shmq.Queue[Any]
MEMORY = "48MiB"
AT_ONCE = 4  # processes
ROUNDS = 6
CALLS = 150
LARGE = 1_000_000
GRANULE = 65_536
# Consumer rows, counters, and the cold records of a queue that has needed them stay with their queue or process row.
LAID_OUT = 4 * GRANULE


def declared(broker: shmq.Broker) -> list[Queue]:
    safe: dict[str, Any] = {"codec": "bytes", "max_attempts": 0, "max_deaths": 0}
    return [
        broker.queue("work", maxsize=150, **safe),
        broker.queue("fast", maxsize=400, **safe),
        broker.queue("ranked", maxsize=200, priorities=10, **safe),
    ]


def size(numbers: random.Random) -> int:
    """One in three of any order of magnitude up to a MiB."""
    return int((1 << 20) ** numbers.random()) if numbers.random() < 0.3 else numbers.randrange(200)


class Stormer:
    """Random calls; what it has in hand in the end it keeps."""

    def __init__(self, broker: shmq.Broker, numbers: random.Random) -> None:
        self.broker, self.numbers = broker, numbers
        self.queues = declared(broker)
        self.consumers = [queue.consumer() for queue in self.queues]
        self.held: list[Any] = []
        self.views: list[memoryview] = []
        self.loans: list[Any] = []

    def call(self) -> None:
        chance, numbers = self.numbers.random(), self.numbers
        queue = numbers.choice(self.queues)
        if chance < 0.5:
            queue.put(bytes(size(numbers)), timeout=0)
        elif chance < 0.6:
            queue.get(timeout=0)
        elif chance < 0.75 and len(self.held) < 8:
            self.held.append(numbers.choice(self.consumers).receive(timeout=0))
        elif chance < 0.8 and self.held:
            self.views.append(numbers.choice(self.held).view)
        elif chance < 0.82:
            self.views.clear()
        elif chance < 0.86:
            self.loans.append(queue.loan(size(numbers) + 1, timeout=0))
        elif chance < 0.9 and self.loans:
            self.loans.pop().commit()
        elif chance < 0.92:
            self.queues[0].move(self.queues[1], limit=3)
        elif chance < 0.94:
            self.delete_one()
        elif self.held:
            m = self.held.pop(numbers.randrange(len(self.held)))
            (m.ack if numbers.random() < 0.6 else m.release)()

    def delete_one(self) -> None:
        queue: Queue = self.broker.queue(f"passing {self.numbers.randrange(100)}", maxsize=100, codec="bytes")
        queue.put(bytes(size(self.numbers)), timeout=0)
        queue.delete()


def storm(path: Path, seed: int, say: Say) -> None:
    stormer = Stormer(shmq.open(path), random.Random(seed))
    for _ in range(CALLS):
        with contextlib.suppress(shmq.ShmqError):
            stormer.call()
    say("stormed")
    signal.pause()


def visit(path: Path, say: Say) -> None:
    """The same queues and calls, and nothing that stays."""
    broker = shmq.open(path)
    queues = declared(broker)
    for queue in queues:
        consumer = queue.consumer()
        queue.put(b"one")
        with contextlib.suppress(shmq.Empty):  # another visitor has moved it
            consumer.receive(timeout=0).ack()
    queues[0].put(b"one")
    queues[0].move(queues[1])
    with contextlib.suppress(shmq.Empty):
        queues[1].get(timeout=0)
    say("visited")
    signal.pause()


def killed(work: Any, word: str, *arguments: object) -> None:
    """AT_ONCE of them, at a time when each of them has come to the end of its work."""
    with family() as children:
        children.extend(
            Offspring(work, *(one(i) if callable(one) else one for one in arguments)) for i in range(AT_ONCE)
        )
        for child in children:
            child.expect(word)
        for child in children:
            child.kill()


def drain(broker: shmq.Broker, *queues: Queue) -> None:
    reap_the_dead(broker)
    for queue in queues:
        with contextlib.suppress(shmq.Empty):
            while True:
                queue.get(timeout=0)


def apart_from_slots(broker: shmq.Broker, queues: list[Queue]) -> int:
    """Bytes used; a ring lays out its slots on its first lap, and keeps them."""
    return usage(broker)["used"] - sum(queue.statistics().reserved_bytes for queue in queues)


def room(broker: shmq.Broker) -> int:
    """How many large messages fit."""
    queue: Queue = broker.queue("room", maxsize=200, codec="bytes")
    with contextlib.suppress(shmq.Full):
        while True:
            queue.put(bytes(LARGE), timeout=0)
    fitted = queue.qsize()
    drain(broker, queue)
    return fitted


@pytest.mark.timeout(300)
def test_after_a_storm_of_kills_a_drained_broker_has_as_much_memory_as_a_new_one(tmp_path: Path, seed: int) -> None:
    """Shows G2."""
    new, old = tmp_path / "new", tmp_path / "old"
    with shmq.open(new, memory=MEMORY) as broker:
        queues = declared(broker)
        killed(visit, "visited", new)
        drain(broker, *queues)
        fresh, fits = apart_from_slots(broker, queues), room(broker)
    with shmq.open(old, memory=MEMORY) as broker:
        queues = declared(broker)
        for turn in range(ROUNDS):
            killed(storm, "stormed", old, lambda child, turn=turn: seed + 100 * turn + child)
            drain(broker, *queues)
        killed(visit, "visited", old)  # the last dead are reaped when nothing is in use any more
        drain(broker, *queues)
        check_empty(broker, *queues)
        assert usage(broker)["blocks_used"] == 0
        assert usage(broker)["slabs"] == 0, "slabs that nobody uses were not given back"
        assert fresh <= apart_from_slots(broker, queues) <= fresh + LAID_OUT
        assert fits - 1 <= room(broker) <= fits
