"""A process that does everything that a user can do to a broker, at random, until it is killed.

As a program: python -m tests.support.fire BROKER SEED. It prints one line, "at work", before its first call.
"""

import random
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import shmq

QUEUES = {"plain": {}, "limited": {"maxsize": 300}, "poison": {"max_deaths": 2, "max_attempts": 3}}
SIZES = (0, 20, 300, 5000, 40_000)


def queue_of(broker: shmq.Broker, name: str) -> shmq.Queue[Any]:
    return broker.queue(name, codec="bytes", **QUEUES[name])  # type: ignore[call-overload,no-any-return]


class Worker:
    """One call after another, each of them small, so that a kill meets each of them in its midst."""

    def __init__(self, broker: shmq.Broker, seed: int) -> None:
        self.broker = broker
        self.numbers = random.Random(seed)
        self.queues = [queue_of(broker, name) for name in QUEUES]
        self.held: list[shmq.Message[Any]] = []
        self.calls: list[Callable[[shmq.Queue[Any]], object]] = [
            self.put,
            self.put,
            self.put_many,
            self.put_many,
            self.get,
            self.get,
            self.get_many,
            self.receive,
            self.receive,
            self.settle,
            self.settle,
            self.settle,
            self.consume,
            self.browse,
            self.lend,
            self.sleep,
            self.purge,
            self.temporary,
        ]

    def body(self) -> bytes:
        return self.numbers.randbytes(self.numbers.choice(SIZES))

    def put(self, queue: shmq.Queue[Any]) -> None:
        queue.put(self.body(), timeout=self.numbers.choice((0, 0.001)))

    def put_many(self, queue: shmq.Queue[Any]) -> None:
        queue.put_many([self.body() for _ in range(self.numbers.randrange(1, 90))], timeout=0)

    def get(self, queue: shmq.Queue[Any]) -> None:
        queue.get(timeout=0)

    def get_many(self, queue: shmq.Queue[Any]) -> None:
        queue.get_many(self.numbers.randrange(1, 120), timeout=0)

    def receive(self, queue: shmq.Queue[Any]) -> None:
        message = queue.receive(timeout=0)
        if self.numbers.random() < 0.2:
            _ = message.view  # pins what lies in a block
        self.held.append(message)

    def settle(self, queue: shmq.Queue[Any]) -> None:
        while len(self.held) > self.numbers.randrange(0, 12):
            message = self.held.pop(self.numbers.randrange(len(self.held)))
            self.numbers.choice((message.ack, message.ack, message.release, message.retry))()

    def consume(self, queue: shmq.Queue[Any]) -> None:
        with queue.consumer(prefetch=5) as consumer:
            for _ in range(self.numbers.randrange(1, 8)):
                message = consumer.receive(timeout=0)
                if self.numbers.random() < 0.8:
                    message.ack()

    def browse(self, queue: shmq.Queue[Any]) -> None:
        for count, _ in enumerate(queue.browse()):
            if count > 50:
                break

    def lend(self, queue: shmq.Queue[Any]) -> None:
        with queue.loan(self.numbers.choice((100, 9000))) as loan:
            loan.view[:1] = b"x"
            if self.numbers.random() < 0.3:
                loan.abandon()

    def sleep(self, queue: shmq.Queue[Any]) -> None:
        queue.receive(timeout=0.002).release()

    def purge(self, queue: shmq.Queue[Any]) -> None:
        if self.numbers.random() < 0.05:
            queue.purge()

    def temporary(self, queue: shmq.Queue[Any]) -> None:
        if self.numbers.random() < 0.1:
            mine = self.broker.queue(f"mine-{self.numbers.randrange(3)}", codec="bytes", maxsize=50)
            mine.put_many([self.body() for _ in range(20)], timeout=0)
            mine.delete()

    def run(self) -> None:
        while True:
            call = self.numbers.choice(self.calls)
            with suppress(shmq.Empty, shmq.Full, shmq.SettlementError, shmq.NotFound):
                call(self.numbers.choice(self.queues))


if __name__ == "__main__":
    with shmq.open(sys.argv[1], create=False) as running:
        worker = Worker(running, int(sys.argv[2]))
        print("at work", flush=True)
        worker.run()
