"""kill -9 of producers under load: nobody hangs, what put() accepted is not lost, no block leaks.

150 kills in the suite, 1,000 with SHMQ_FULL=1.
"""

import random
import time
from typing import Any

import pytest

import shmq
from tests.support.board import Board
from tests.support.health import check_empty, reap_the_dead, usage
from tests.support.offspring import Offspring, Say, family
from tests.support.size import sized

Queue = shmq.Queue[Any]
KILLS = sized(1000, 10_000)
AT_ONCE = 3
BATCH = 20


def body_of(producer: int, number: int, large: bool) -> bytes:
    text = f"{producer} {number} ".encode()
    return text + b"x" * (number * 37 % 40_000 if large and number % 3 == 0 else number % 60)


def produce(queue: Queue, producer: int, large: bool, accepted: Board, say: Say) -> None:
    """Puts numbered bodies for ever, one by one and in batches; notes each number that was accepted."""
    number = 0
    say("here")
    while True:
        if number % 7 == 0:
            queue.put_many(body_of(producer, n, large) for n in range(number, number + BATCH))
            number += BATCH
        else:
            queue.put(body_of(producer, number, large))
            number += 1
        accepted[producer] = number


class Ledger:
    """The messages that came out: each producer's numbers must be 0, 1, 2, and so on."""

    def __init__(self) -> None:
        self.next: dict[int, int] = {}

    def note(self, body: bytes) -> None:
        producer, number = map(int, body.split(b" ", 2)[:2])
        assert number == self.next.get(producer, 0), f"producer {producer}: {number} after {self.next.get(producer)}"
        self.next[producer] = number + 1

    def check(self, accepted: Board) -> None:
        for producer in range(accepted.slots):
            came = self.next.get(producer, 0)
            assert came >= accepted[producer], f"producer {producer}: {accepted[producer]} accepted, {came} came"
            assert came <= accepted[producer] + BATCH


@pytest.mark.parametrize("maxsize", [0, 50], ids=["unlimited", "full_all_the_time"])
@pytest.mark.parametrize("large", [False, True], ids=["small", "with_blocks"])
def test_killed_producers_lose_nothing_that_was_accepted(
    broker: shmq.Broker, seed: int, large: bool, maxsize: int
) -> None:
    """Shows S3, E3, R13, G2."""
    rng = random.Random(seed)
    queue = broker.queue("jobs", codec="bytes", maxsize=maxsize)
    kills = KILLS // 4
    accepted = Board(kills)
    ledger = Ledger()
    started = 0
    with family() as children:
        alive: list[Offspring] = []
        for _ in range(kills):
            while len(alive) < AT_ONCE and started < kills:
                number = started
                child = Offspring(produce, queue, number, large, accepted)
                children.append(child)
                alive.append(child)
                started += 1
                child.expect("here")
            end = time.monotonic() + rng.random() * 0.02
            while time.monotonic() < end:
                ledger.note(queue.get(timeout=30))
            alive.pop(rng.randrange(len(alive))).kill()
        for body in iter(lambda: take(queue), None):
            ledger.note(body)
    ledger.check(accepted)
    reap_the_dead(broker)
    check_empty(broker, queue)
    assert 0 < usage(broker)["deaths"] <= kills  # some were not members yet
    if maxsize:
        fill_exactly(queue, maxsize)


def take(queue: Queue) -> bytes | None:
    try:
        return bytes(queue.get(timeout=0.3))
    except shmq.Empty:
        return None


def fill_exactly(queue: Queue, maxsize: int) -> None:
    """All of the capacity is back, and no more than that."""
    for n in range(maxsize):
        queue.put(b"%d" % n, timeout=5)
    with pytest.raises(shmq.Full):
        queue.put(b"one too many", timeout=0)
    assert [queue.get(timeout=5) for _ in range(maxsize)] == [b"%d" % n for n in range(maxsize)]


def put_one(queue: Queue, number: int, say: Say) -> None:
    queue.put(number, timeout=30)
    say("put")


def test_a_producer_that_is_killed_while_it_waits_for_room_leaves_the_others_waiting_rightly(
    broker: shmq.Broker, seed: int
) -> None:
    """Shows G4."""
    rng = random.Random(seed)
    queue = broker.queue("jobs", maxsize=1)
    for _ in range(sized(20, 200)):
        queue.put("first")
        with family() as children:
            for number in range(4):
                children.append(Offspring(put_one, queue, number))
            while queue._waiters()["producers_waiting"] < 4:
                time.sleep(0.001)
            victims = rng.sample(children, 2)
            for victim in victims:
                victim.kill()
            assert queue.get(timeout=10) == "first"
            left = {number for number, child in enumerate(children) if child not in victims}
            assert {queue.get(timeout=10) for _ in range(2)} == left
            for number in left:
                children[number].expect("put")
                assert children[number].wait() == 0
    reap_the_dead(broker)
    check_empty(broker, queue)
    queue.put("last", timeout=1)
    with pytest.raises(shmq.Full):
        queue.put("one too many", timeout=0)
    assert queue.get(timeout=1) == "last"
