"""Blocked producers stand in line: released in the order of their arrival; the dead give way. Shows G1."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.conftest import MEMORY
from tests.support.health import reap_the_dead
from tests.support.offspring import Offspring, Say, eventually, family

Queue = shmq.Queue[Any]
PATIENCE, MARGIN = 0.1, 0.9  # seconds; a machine under load is slow
LONG = 30.0


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    """Patient: a machine that lets somebody stand still for a while does not change the order."""
    with shmq.open(broker_dir, memory=MEMORY, patience=3.0) as opened:
        yield opened


def put_one(queue: Queue, body: object, timeout: float, say: Say) -> None:
    try:
        queue.put(body, timeout=timeout)
        say("put")
    except shmq.Full:
        say("full")


def put_all(queue: Queue, bodies: list[object], say: Say) -> None:
    queue.put_many(bodies, timeout=LONG)
    say("put")


def stand_in_line(queue: Queue, child: Offspring, children: list[Offspring]) -> Offspring:
    """It stands behind those who are there already."""
    children.append(child)
    place = sum(1 for other in children)
    eventually(lambda: queue.statistics().producers_waiting >= place, "one more waits")
    return child


@pytest.mark.parametrize("at_once", [1, 3], ids=["one_by_one", "three_at_once"])
def test_blocked_producers_are_released_in_the_order_of_their_arrival(broker: shmq.Broker, at_once: int) -> None:
    """Shows R14."""
    queue = broker.queue("jobs", maxsize=3)
    queue.put_many(["old"] * 3)
    with family() as children:
        for number in range(8):
            stand_in_line(queue, Offspring(put_one, queue, number, LONG), children)
        came: list[object] = []
        while len(came) < 11:
            came += queue.get_many(at_once, timeout=LONG)
        assert came == ["old"] * 3 + list(range(8))
        for child in children:
            child.expect("put")


def test_a_newcomer_does_not_take_what_one_in_line_waits_for(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=1)
    for number in range(20):
        queue.put("old")
        with family() as children:
            stand_in_line(queue, Offspring(put_one, queue, number, LONG), children)
            assert queue.get(timeout=LONG) == "old"
            with pytest.raises(shmq.Full):
                queue.put("new", timeout=0)
            assert queue.get(timeout=LONG) == number
            children[0].expect("put")


def test_a_large_message_in_front_waits_for_its_bytes_and_small_ones_behind_it(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", codec="bytes", max_bytes=100)
    for _ in range(9):
        queue.put(b"o" * 10)
    with family() as children:
        stand_in_line(queue, Offspring(put_one, queue, b"L" * 60, LONG), children)
        stand_in_line(queue, Offspring(put_one, queue, b"s" * 15, LONG), children)
        came = []
        for _ in range(5):
            with pytest.raises(shmq.Full):
                queue.put(b"n" * 12, timeout=0)
            came.append(queue.get(timeout=LONG)[:1])
        came += [queue.get(timeout=LONG)[:1] for _ in range(6)]
        assert came == [b"o"] * 9 + [b"L", b"s"]


def test_who_puts_many_keeps_its_place_until_all_are_in(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=2)
    queue.put("old")
    with family() as children:
        stand_in_line(queue, Offspring(put_all, queue, list(range(30))), children)
        stand_in_line(queue, Offspring(put_one, queue, "later", LONG), children)
        came = [queue.get(timeout=LONG) for _ in range(32)]
        assert came == ["old", *range(30), "later"]
        for child in children:
            child.expect("put")


def test_those_who_are_killed_in_line_give_their_places_up(broker: shmq.Broker) -> None:
    """Shows R14."""
    queue = broker.queue("jobs", maxsize=1)
    queue.put("old")
    with family() as children:
        for number in range(6):
            stand_in_line(queue, Offspring(put_one, queue, number, LONG), children)
        for number in (0, 2, 3):
            children[number].kill()
        assert [queue.get(timeout=LONG) for _ in range(4)] == ["old", 1, 4, 5]
    reap_the_dead(broker)
    assert queue.statistics().producers_waiting == 0


def test_one_that_is_killed_when_it_is_called_gives_its_place_up(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=1)
    queue.put("old")
    with family() as children:
        for number in range(3):
            stand_in_line(queue, Offspring(put_one, queue, number, LONG), children)
        children[0].signal(signal.SIGSTOP)
        assert queue.get(timeout=LONG) == "old"
        children[0].kill()
        assert [queue.get(timeout=LONG) for _ in range(2)] == [1, 2]


@pytest.mark.alone
def test_one_that_is_stopped_in_front_delays_the_others_by_one_patience(broker_dir: Path) -> None:
    broker = shmq.open(broker_dir, memory=MEMORY, patience=PATIENCE)
    queue = broker.queue("jobs", maxsize=1)
    queue.put("old")
    with family() as children:
        for number in range(3):
            stand_in_line(queue, Offspring(put_one, queue, number, LONG), children)
        children[0].signal(signal.SIGSTOP)
        begin = time.monotonic()
        assert [queue.get(timeout=LONG) for _ in range(3)] == ["old", 1, 2]
        assert time.monotonic() - begin < PATIENCE + MARGIN
        for child in children[1:]:
            child.expect("put")  # they are in, and out of the line
        queue.put("new", timeout=0)  # and nobody waits for the stopped one a second time
        children[0].signal(signal.SIGCONT)
        assert [queue.get(timeout=LONG) for _ in range(2)] == ["new", 0]
        children[0].expect("put")
    broker.close()


def test_one_whose_time_is_over_leaves_the_line(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=1)
    queue.put("old")
    with family() as children:
        children.append(Offspring(put_one, queue, "impatient", 0.3))  # it may have left before the other one has come
        children.append(Offspring(put_one, queue, "patient", LONG))
        children[0].expect("full")
        eventually(lambda: queue.statistics().producers_waiting == 1, "the patient one waits alone")
        assert [queue.get(timeout=LONG) for _ in range(2)] == ["old", "patient"]
        children[1].expect("put")  # it is in, and out of the line
        queue.put("new", timeout=0)


def test_a_limit_that_is_raised_lets_all_in_line_in(broker: shmq.Broker) -> None:
    """Shows R14."""
    queue = broker.queue("jobs", maxsize=1)
    queue.put("old")
    with family() as children:
        for number in range(4):
            stand_in_line(queue, Offspring(put_one, queue, number, LONG), children)
        queue.alter(maxsize=5)
        for child in children:
            child.expect("put")
        assert queue.get_many(5, timeout=0) == ["old", 0, 1, 2, 3]


def test_a_shut_down_ends_the_line(broker: shmq.Broker) -> None:
    """Shows R14."""
    queue = broker.queue("jobs", maxsize=1)
    queue.put("old")

    def wait(say: Say) -> None:
        try:
            queue.put("new", timeout=LONG)
        except shmq.ShutDown:
            say("shut down")

    with family() as children:
        for _ in range(3):
            stand_in_line(queue, Offspring(wait), children)
        queue.shutdown()
        for child in children:
            child.expect("shut down")
    assert queue.statistics().producers_waiting == 0
