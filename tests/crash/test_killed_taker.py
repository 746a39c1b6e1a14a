"""kill -9 of those who take: in get(), asleep, with a loan or a view in hand. Shows G4, G5."""

import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.support.board import Board
from tests.support.health import check_empty, reap_the_dead, usage
from tests.support.offspring import Offspring, Say, eventually, family
from tests.support.size import sized

Queue = shmq.Queue[Any]
LARGE = 100_000
WOKEN = 5.0  # seconds, at most, where the time limit of a sleep is 7.5 at least


def body_of(number: int, large: bool) -> bytes:
    return b"%d " % number + b"y" * (LARGE if large else 10)


def get_for_ever(queue: Queue, seen: Board, marks: Board, slot: int, say: Say) -> None:
    say("here")
    while True:
        number = int(queue.get().split(b" ", 1)[0])
        marks.add(number)
        seen.add(slot)


def get_one(queue: Queue, say: Say) -> None:
    say(queue.get(timeout=30))


@pytest.mark.parametrize("large", [False, True], ids=["small", "with_blocks"])
def test_a_kill_in_get_costs_at_most_the_message_in_hand_and_doubles_none(
    broker: shmq.Broker, seed: int, large: bool
) -> None:
    """Shows G2."""
    rng = random.Random(seed)
    queue = broker.queue("jobs", codec="bytes", max_deaths=0)
    kills, alive_at_once = sized(40, 500), 3
    count = kills * (60 if large else 400)
    marks, seen = Board(count), Board(kills + alive_at_once)
    put = started = killed = 0
    with family() as children:
        alive: list[Offspring] = []
        while put < count or killed < kills:
            while len(alive) < alive_at_once and started < kills + alive_at_once:
                slot = started
                child = Offspring(get_for_ever, queue, seen, marks, slot)
                children.append(child)
                alive.append(child)
                started += 1
                child.expect("here")
            end = min(count, put + rng.randrange(1, 2 * count // kills))
            for number in range(put, end):
                queue.put(body_of(number, large), timeout=30)
            put = end
            if killed < kills:
                time.sleep(rng.random() * 0.002)
                alive.pop(rng.randrange(len(alive))).kill()
                killed += 1
        reap_the_dead(broker)
        queue.join(timeout=30)
        eventually(lambda: all(queue._waiters()["asleep"] >= 1 for _ in range(3)), "the last ones sleep again")
        for child in alive:
            child.kill()
    doubled = [n for n in range(count) if marks[n] > 1]
    missing = [n for n in range(count) if marks[n] == 0]
    assert not doubled
    assert len(missing) <= kills, f"{len(missing)} of {count} missing after {kills} kills"
    check_empty(broker, queue)


def test_no_wake_up_is_lost_with_a_killed_sleeper(broker_dir: Path, seed: int) -> None:
    """With a long patience: nobody looks by the clock before the wake that it is owed. Shows S55, C12, R4."""
    rng = random.Random(seed)
    broker = shmq.open(broker_dir, memory="16MiB", patience=1.0)
    queue = broker.queue("jobs")
    sleepers, messages = 6, 3
    for _ in range(sized(15, 150)):
        with family() as children:
            for _ in range(sleepers):
                children.append(Offspring(get_one, queue))
            eventually(lambda: queue._waiters()["asleep"] == sleepers, "all sleep")
            victims = rng.sample(children, sleepers - messages)
            for victim in victims:
                victim.kill()
            for number in range(messages):
                queue.put(number)
            left = [child for child in children if child not in victims]
            assert sorted(int(child.line(60)) for child in left) == list(range(messages))
            for child in left:
                assert child.wait() == 0
    reap_the_dead(broker)
    assert usage(broker)["rescues"] == 0, "somebody was woken by the clock alone"
    check_empty(broker, queue)
    broker.close()


def receive_one(queue: Queue, priority: int, say: Say) -> None:
    with queue.consumer(priority=priority) as consumer:
        say("here")
        with consumer.receive(timeout=60) as message:
            say(message.body)


@pytest.mark.parametrize("many", [False, True], ids=["put", "put_many"])
def test_an_idle_consumer_of_higher_priority_that_is_killed_delays_nobody(broker_dir: Path, many: bool) -> None:
    """The patience is so long that a sleep that its time limit ends is seen."""
    with shmq.open(broker_dir, memory="16MiB", patience=60) as broker:
        queue = broker.queue("jobs")
        for number in range(4):
            with family() as children:
                for priority in (1, 0):
                    children.append(Offspring(receive_one, queue, priority))
                    children[-1].expect("here")
                eventually(lambda: queue._waiters()["asleep"] == 2, "both sleep")
                children[0].kill()
                if many:
                    queue.put_many([number])
                else:
                    queue.put(number)
                assert int(children[1].line(WOKEN)) == number
                assert children[1].wait() == 0
        assert usage(broker)["rescues"] == 0
        check_empty(broker, queue)


def lend(queue: Queue, say: Say) -> None:
    loans = [queue.loan(LARGE) for _ in range(3)]
    loans[0].view[:5] = b"hello"
    loans[1].view[:5] = b"hello"
    loans[1].commit()
    say("held")
    signal.pause()


def look(queue: Queue, say: Say) -> None:
    settled, held = queue.receive(timeout=30), queue.receive(timeout=30)
    views = [settled.view(), held.view()]
    settled.ack()
    assert bytes(views[0][:1]) == b"0"
    say("held")
    signal.pause()


def test_blocks_of_a_killed_loan_holder_come_back(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", codec="bytes")
    for _ in range(5):
        with Offspring(lend, queue) as holder:
            holder.expect("held")
            assert usage(broker)["blocks_used"] == 3
            holder.kill()
        reap_the_dead(broker)
        assert usage(broker)["blocks_used"] == 1
        body = queue.get(timeout=5)
        assert (len(body), body[:5]) == (LARGE, b"hello")
    check_empty(broker, queue)


def test_blocks_of_a_killed_view_holder_come_back(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", codec="bytes")
    for _ in range(5):
        for number in range(2):
            queue.put(body_of(number, True))
        with Offspring(look, queue) as holder:
            holder.expect("held")
            assert usage(broker)["blocks_used"] == 2
            holder.kill()
        reap_the_dead(broker)
        assert usage(broker)["blocks_used"] == 1
        with queue.receive(timeout=5) as m:
            assert m.redelivered
            assert m.body == body_of(1, True)
        del m  # its body is a view
    check_empty(broker, queue)
