"""Processes do everything at random on queues that come and go, some are killed: no moment breaks a rule."""

import gc
import random
import time
import warnings
from pathlib import Path
from typing import Any

import shmq
from checker import judge, judge_quiet
from tests.support.health import reap_the_dead
from tests.support.offspring import Offspring, Say, family
from tests.support.segment_image import image_of, standing_still
from tests.support.size import sized

Queue = shmq.Queue[Any]
ROUNDS = sized(8, 300)


class User:
    """One process's broker and what it has in hand."""

    def __init__(self, path: Path, numbers: random.Random) -> None:
        self.path = path
        self.numbers = numbers
        self.broker = shmq.open(path)
        self.forget()

    def forget(self) -> None:
        self.messages: list[shmq.Message[Any]] = []
        self.views: list[memoryview] = []
        self.consumers: list[shmq.Consumer[Any]] = []
        gc.collect()

    def reopen(self) -> None:
        self.forget()
        self.broker.close()
        self.broker = shmq.open(self.path)

    def queue(self) -> Queue:
        number = self.numbers.randrange(4)
        if number == 3:
            return self.broker.queue(f"own {id(self)}", temporary=True, slot_size=128)
        return self.broker.queue(f"common {number}", maxsize=1024)

    def body(self) -> bytes:
        return b"x" * (self.numbers.randrange(90_000) if self.numbers.random() < 0.4 else self.numbers.randrange(90))

    def step(self) -> None:
        """One thing that a user can do."""
        queue, what = self.queue(), self.numbers.randrange(12)
        if what < 3:
            queue.put(self.body(), timeout=0.001)
        elif what == 3:
            queue.put_many([self.body()] * self.numbers.randrange(1, 6), timeout=0.001)
        elif what == 4:
            queue.get(timeout=0.0005)
        elif what == 5:
            queue.get_many(3, timeout=0)
        elif what < 8:
            self.messages.append(queue.receive(timeout=0.0005))
            if self.numbers.random() < 0.3:
                self.views.append(self.messages[-1].view())
        elif what == 8 and self.messages:
            message = self.messages.pop(self.numbers.randrange(len(self.messages)))
            self.numbers.choice((message.ack, message.release, message.retry))()
        elif what == 9:
            self.consumers.append(queue.consumer())
            self.messages.append(self.consumers[-1].receive(timeout=0))
        elif what == 10:
            loan = queue.loan(self.numbers.randrange(1, 30_000))
            if self.numbers.random() < 0.5:
                loan.commit()
        elif self.numbers.random() < 0.15:
            queue.delete()
        elif self.numbers.random() < 0.3:
            queue.purge()
        if len(self.messages) > 20 or len(self.consumers) > 5:
            self.forget()
        if self.numbers.random() < 0.002:
            self.reopen()


def use(path: Path, seed: int, say: Say) -> None:
    warnings.simplefilter("ignore")  # what it forgets is given back on purpose
    user = User(path, random.Random(seed))
    say("here")
    while True:
        try:
            user.step()
        except shmq.CorruptionError:
            raise
        except shmq.ShmqError:
            continue


def test_no_moment_of_processes_that_do_everything_and_die_breaks_a_rule(
    broker_dir: Path, broker: shmq.Broker, seed: int
) -> None:
    """Shows G2."""
    chance = random.Random(seed)
    for number in range(ROUNDS):
        with family() as children:
            children += [Offspring(use, broker_dir, seed + 10 * number + n) for n in range(3)]
            for child in children:
                child.expect("here")
            time.sleep(chance.random() * 0.1)  # anywhere in their work, which is what is looked at
            victim = chance.choice(children)
            victim.kill()
            time.sleep(chance.random() * 0.03)
            living = [child.pid for child in children if child is not victim]
            with standing_still(living):
                assert judge(image_of(broker_dir)) == [], f"round {number}, in the midst of it"
                for child in children:
                    child.signal(9)
            for child in children:
                assert child.wait() == -9, "a user ended by itself"
            image = image_of(broker_dir)
            dead = {process.row for process in image.processes if process.row != 0 and process.state != 0}
            assert judge(image, dead) == [], f"round {number}, all dead"
        reap_the_dead(broker)
        assert judge_quiet(image_of(broker_dir), {0}) == [], f"round {number}, reaped"
