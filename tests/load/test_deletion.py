"""A queue that is deleted and made again under its takers: they get whole messages, or hear that it is gone."""

import random
import time
from pathlib import Path
from typing import Any

import shmq
from tests.support.health import usage
from tests.support.offspring import Offspring, Say, family
from tests.support.size import sized

Queue = shmq.Queue[Any]
SECONDS = sized(3, 60)
BYTES = 60_000  # the longer a copy takes, the likelier it is that the block is another message's at its end


def take(path: Path, seconds: float, whole: bool, say: Say) -> None:
    """Takes for so long; says how many messages came, or what was wrong with one."""
    taken = 0
    end = time.monotonic() + seconds
    with shmq.open(path) as broker:
        while time.monotonic() < end:
            try:
                queue: Queue = broker.queue("victim", maxsize=1000)
                while time.monotonic() < end:
                    if whole:
                        body = queue.get(timeout=0.01)
                    else:
                        with queue.receive(timeout=0.01) as message:
                            body = message.body
                    if len(body) != BYTES or len(set(body)) != 1:
                        say("a body of two messages")
                        return
                    taken += 1
            except shmq.CorruptionError as error:
                say(f"damage: {error}")
                return
            except shmq.ShmqError:
                continue
    say(taken)


def test_takers_of_a_queue_that_is_deleted_hear_of_no_damage(broker_dir: Path, seed: int) -> None:
    numbers = random.Random(seed)
    with shmq.open(broker_dir, memory="128MiB") as broker, family() as children:
        children += [Offspring(take, broker_dir, SECONDS, whole) for whole in (True, False)]
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                victim: Queue = broker.queue("victim", maxsize=1000)
                for _ in range(6):
                    victim.put(bytes([numbers.randrange(256)]) * BYTES, timeout=0)
                victim.delete()
                other: Queue = broker.queue("other", maxsize=1000)
                for _ in range(2):
                    other.put(bytes([numbers.randrange(256)]) * BYTES, timeout=0)
                    other.get(timeout=0)
            except shmq.Full:
                continue  # the takers' handles keep the memory of deleted queues until they make new ones
        for child in children:
            answer = child.line()
            assert answer.isdigit(), answer
            child.wait()
        assert usage(broker)["damage"] == 0
