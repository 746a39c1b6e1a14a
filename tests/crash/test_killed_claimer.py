"""Processes that claim many entries are killed at random: each entry is in one queue, always, and in its order."""

import random
import time
from pathlib import Path
from typing import Any

import shmq
from tests.support.health import check_empty, check_sound, reap_the_dead
from tests.support.offspring import Offspring, Say, family
from tests.support.size import sized

Queue = shmq.Queue[Any]
ROUNDS = sized(60, 1_000)
MESSAGES = 4_000


def body_of(number: int) -> bytes:
    return b"%d " % number * (1 if number % 20 else 300)


def claim(here: Queue, there: Queue, seed: int, say: Say) -> None:
    numbers = random.Random(seed)
    say("here")
    while True:
        if not here._claim(there, numbers.choice([1, 7, 100, 5_000]), numbers.choice([1, 1 << 30]), None)[0]:
            time.sleep(0.0005)


def numbers_in(queue: Queue) -> list[int]:
    return [int(m.body.split()[0]) for m in queue.browse()]


def test_each_entry_is_in_exactly_one_queue_whenever_its_claimer_is_killed(broker_dir: Path, seed: int) -> None:
    """Shows G1, G2."""
    numbers = random.Random(seed)
    with shmq.open(broker_dir, memory="64MiB", patience=0.02) as broker:
        here: Queue = broker.queue("here", max_deaths=1)  # who dies at a claim is no consumer that died at a message
        there: Queue = broker.queue("there", maxsize=MESSAGES, max_deaths=0, max_attempts=0)
        put = done = 0
        for turn in range(ROUNDS):
            while put < done + MESSAGES:
                here.put(body_of(put))
                put += 1
            count = 1 + turn % 2
            with family() as claimers:
                claimers.extend(Offspring(claim, here, there, seed + turn + n) for n in range(count))
                for claimer in claimers:
                    claimer.expect("here")
                time.sleep(numbers.uniform(0, 0.01))
                for claimer in claimers:
                    claimer.kill()
            reap_the_dead(broker)
            claimed, left = numbers_in(there), numbers_in(here)
            assert sorted(claimed + left) == list(range(done, put))
            if count == 1:
                assert claimed + left == list(range(done, put)), "the claimed are not the first ones, in their order"
            assert there._discard_below(there._ends()[0]) == len(claimed)
            rest = here._claim(there, MESSAGES, 1 << 40, None)[0] if count == 2 else 0
            assert there._discard_below(there._ends()[0]) == rest
            done = put if count == 2 else put - len(left)
        check_sound(broker, here, there)
        here._claim(there, MESSAGES, 1 << 40, None)
        there._discard_below(there._ends()[0])
        check_empty(broker, here, there)


def discard(there: Queue, say: Say) -> None:
    say("here")
    there._discard_below(MESSAGES // 2)
    say("done")


def test_what_a_killed_discarder_has_left_the_next_one_discards(broker_dir: Path, seed: int) -> None:
    numbers = random.Random(seed)
    with shmq.open(broker_dir, memory="64MiB") as broker:
        for turn in range(ROUNDS // 4):
            there: Queue = broker.queue(f"there-{turn}", maxsize=MESSAGES, max_deaths=0, max_attempts=0)
            for number in range(MESSAGES):
                there.put(body_of(number))
            with Offspring(discard, there) as discarder:
                discarder.expect("here")
                time.sleep(numbers.uniform(0, 0.002))
                discarder.kill()
            reap_the_dead(broker)
            there._discard_below(MESSAGES // 2)
            assert numbers_in(there) == list(range(MESSAGES // 2, MESSAGES))
            there._discard_below(MESSAGES)
            check_empty(broker, there)
            there.delete()
