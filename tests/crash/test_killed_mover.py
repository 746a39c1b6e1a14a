"""Processes that move messages, and bury them, are killed at random: each message is in exactly one queue, always."""

import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.support.health import check_sound, reap_the_dead
from tests.support.offspring import Offspring, Say, family
from tests.support.size import sized

Queue = shmq.Queue[Any]
MESSAGES = 120
ROUNDS = sized(80, 1_500)


def body_of(number: int) -> bytes:
    return b"%d " % number * (1 if number % 3 else 400)


def number_in(body: bytes) -> int:
    return int(body.split()[0])


def move(queues: list[Queue], seed: int, say: Say) -> None:
    numbers = random.Random(seed)
    say("here")
    while True:
        here, there = numbers.sample(queues, 2)
        try:
            here.move(there, limit=numbers.randint(1, 20))
        except shmq.Full:
            pass  # "there" has a limit


def bury(queues: list[Queue], seed: int, say: Say) -> None:
    numbers = random.Random(seed)
    say("here")
    while True:
        for m in queues[0].receive_many(numbers.randint(1, 5), timeout=0.01):
            if numbers.random() < 0.7:
                m.reject("no use")
            else:
                m.release()


def move_one_and_take_one(here: Queue, there: Queue, say: Say) -> None:
    """As a move that has come to its second message: it is the mover's, and still in its first queue."""
    here.move(there, limit=1)
    second = next(iter(here.browse()))
    mine = here._steal(second.position, True)
    say(second.body)
    while mine:
        signal.pause()


@pytest.mark.parametrize("priorities", [1, 3])
def test_who_moves_on_after_a_killed_mover_keeps_the_order_of_the_source(broker_dir: Path, priorities: int) -> None:
    """Shows G1."""
    with shmq.open(broker_dir) as broker:
        here: Queue = broker.queue("here", priorities=priorities)
        there: Queue = broker.queue("there")
        here.put_many(["b0", "b1", "b2", "b3"])
        with Offspring(move_one_and_take_one, here, there) as mover:
            mover.expect("b1")
            mover.kill()
            assert here.move(there, limit=1) == 1
            assert here.move(there) == 2
            assert [m.body for m in there.browse()] == ["b0", "b1", "b2", "b3"]
        check_sound(broker, here, there)


def test_a_message_is_in_exactly_one_queue_whenever_its_mover_is_killed(broker_dir: Path, seed: int) -> None:
    """Shows G2."""
    numbers = random.Random(seed)
    with shmq.open(broker_dir, memory="32MiB", patience=0.02) as broker, family() as children:
        queues: list[Queue] = [
            broker.queue("here", max_attempts=0, max_deaths=0),
            broker.queue("there", maxsize=MESSAGES // 2, priorities=2, max_attempts=0, max_deaths=0),
            broker.queue("here.dead", max_attempts=0, max_deaths=0),
        ]
        for number in range(MESSAGES):
            queues[0].put(body_of(number), headers={"n": number})
        started = 0

        def start() -> Offspring:
            nonlocal started
            started += 1
            child = Offspring(bury if started % 3 == 0 else move, queues, seed + started)
            child.expect("here")
            return child

        def all_there() -> Counter[int]:
            return Counter(number_in(m.body) for queue in queues for m in queue.browse())

        children.extend(start() for _ in range(3))
        for turn in range(ROUNDS):
            victim = numbers.randrange(len(children))
            time.sleep(numbers.uniform(0, 0.01))
            if numbers.random() < 0.2:
                children[victim].signal(signal.SIGSTOP)
                time.sleep(0.005)
                children[victim].signal(signal.SIGCONT)
            if turn % 10 != 9:
                children[victim].kill()
                children[victim] = start()
                continue
            for child in children:
                child.kill()
            reap_the_dead(broker)
            assert all_there() == dict.fromkeys(range(MESSAGES), 1)
            check_sound(broker, *queues)
            children[:] = [start() for _ in children]
        for child in children:
            child.kill()
        reap_the_dead(broker)
        got = Counter(number_in(queue.get(timeout=0)) for queue in queues for _ in range(queue.qsize()))
        assert got == dict.fromkeys(range(MESSAGES), 1)
        check_sound(broker, *queues)
