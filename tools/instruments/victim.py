"""A process that works with a broker whose segment is being damaged, and tells right answers from wrong ones.

Each body says what it is: its first bytes are a digest of the others and of its queue's name. So whatever comes out is
known to be one that was put, and there, without books that damage could bring into disorder.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import shmq
from shmq.cli.check import examine
from shmq.core.queue import reap
from shmq.names import parse_broker_path

DIGEST = 12
QUEUES = ("small", "large", "limited", "moved", "flowing")
HOMES = {"moved": "small"}  # where its messages come from
SHORT = 0.002  # seconds; long enough to fall asleep


class WrongBody(Exception):
    """A body, or headers, that nobody put."""


def digest_of(content: bytes | memoryview, queue: str) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST, person=HOMES.get(queue, queue).encode()).digest()


def body_of(numbers: random.Random, size: int, queue: str) -> bytes:
    content = numbers.randbytes(size)
    return digest_of(content, queue) + content


def must_be_whole(body: bytes | memoryview, queue: str) -> None:
    if digest_of(body[DIGEST:], queue) != bytes(body[:DIGEST]):
        names = [name for name in QUEUES if digest_of(body[DIGEST:], name) == bytes(body[:DIGEST])]
        raise WrongBody(f"{len(body)} bytes: {bytes(body[:40])!r}, from {queue}, put into {names}")


class Victim:
    """Random calls of everything that users call.

    Arguments:
        url: of the broker.
        numbers: decides which calls.
        tell: called with a number before each call: who watches knows that the last one came back.
    """

    def __init__(self, url: str, numbers: random.Random, tell: Callable[[int], object]) -> None:
        self.url = url
        self.numbers = numbers
        self.tell = tell
        self.answers: Counter[str] = Counter()
        self.held: list[Any] = []
        self.views: list[memoryview] = []
        self.consumers: list[Any] = []
        self.broker: shmq.Broker | None = None
        self.calls = sorted(name for name in dir(self) if name.startswith("call_"))

    def queue(self) -> Any:
        assert self.broker is not None
        return self.broker.queue(self.numbers.choice(QUEUES), codec="bytes")

    def turn(self) -> None:
        """One call; what it raises of shmq's errors is an answer, anything else is a failure."""
        name = self.numbers.choice(self.calls) if self.broker is not None else "call_attach"
        self.tell(self.calls.index(name))
        try:
            getattr(self, name)()
        except shmq.ShmqError as error:
            self.answers[type(error).__name__] += 1
        else:
            self.answers["right"] += 1

    def end(self) -> None:
        """Settles and closes, as far as the damage lets it."""
        for message in self.held:
            self._quietly(message.ack)
        for consumer in self.consumers:
            self._quietly(consumer.close)
        self.views.clear()
        if self.broker is not None:
            self._quietly(self.broker.close)

    def _quietly(self, call: Callable[[], object]) -> None:
        self.tell(len(self.calls))
        try:
            call()
        except shmq.ShmqError as error:
            self.answers[type(error).__name__] += 1

    # ---- membership --------------------------------------------------------------------------------------------

    def call_attach(self) -> None:
        if self.broker is None or self.numbers.random() < 0.1:
            broker, self.broker = self.broker, None
            self.held.clear()
            self.consumers.clear()
            if broker is not None:
                broker.close()
            self.broker = shmq.open(self.url, create=False)

    def call_look(self) -> None:
        assert self.broker is not None
        self.broker.statistics()
        for queue in self.broker.queues():
            queue._check()
        member = self.broker._membership.live()
        member.valid()
        reap(member)

    def call_check(self) -> None:
        if self.numbers.random() < 0.3:
            examine(parse_broker_path(self.url))

    def call_declare(self) -> None:
        assert self.broker is not None
        queue = self.broker.queue(f"queue-{self.numbers.randrange(3)}", codec="bytes", maxsize=10)
        queue.put(body_of(self.numbers, 20, queue.name), timeout=0)
        if self.numbers.random() < 0.5:
            queue.delete()

    def call_shut_down(self) -> None:
        queue = self.queue()
        queue.shutdown()
        queue.reopen()

    def call_purge(self) -> None:
        if self.numbers.random() < 0.2:
            self.queue().purge()

    def call_move(self) -> None:
        assert self.broker is not None
        small, moved = (self.broker.queue(name, codec="bytes") for name in ("small", "moved"))
        source, target = (small, moved) if self.numbers.random() < 0.5 else (moved, small)
        source.move(target, limit=self.numbers.randrange(1, 4), copy=self.numbers.random() < 0.2)

    # ---- putting -----------------------------------------------------------------------------------------------

    def size(self) -> int:
        return self.numbers.choice([0, 20, 60, 300, 3000, 20000, 70000])

    def call_put_for_later(self) -> None:
        queue = self.queue()
        delay, ttl = self.numbers.choice([0, 0.001, 0.05]), self.numbers.choice([None, 0.001, 0.06, 10.0])
        if ttl is not None and ttl <= delay:
            ttl = None  # it would expire before a consumer could receive it, and is refused
        queue.put(body_of(self.numbers, 20, queue.name), timeout=0, delay=delay, ttl=ttl)

    def call_give_back_for_later(self) -> None:
        if self.held:
            message = self.held.pop()
            if self.numbers.random() < 0.5:
                message.touch()
            message.release(delay=self.numbers.choice([0.001, 0.02]))

    def call_put(self) -> None:
        queue = self.queue()
        queue.put(body_of(self.numbers, self.size(), queue.name), timeout=SHORT)

    def call_put_with_headers(self) -> None:
        queue = self.queue()
        body = body_of(self.numbers, self.size(), queue.name)
        queue.put(body, timeout=0, headers={"digest": body[:DIGEST].hex()})

    def call_put_many(self) -> None:
        queue = self.queue()
        queue.put_many([body_of(self.numbers, self.size(), queue.name) for _ in range(5)], timeout=SHORT)

    def call_loan(self) -> None:
        queue = self.queue()
        body = body_of(self.numbers, self.size(), queue.name)
        with queue.loan(len(body), timeout=0) as loan:
            loan.view[:] = body

    # ---- taking ------------------------------------------------------------------------------------------------

    def call_get(self) -> None:
        queue = self.queue()
        must_be_whole(queue.get(timeout=self.numbers.choice([0, SHORT])), queue.name)

    def call_get_many(self) -> None:
        queue = self.queue()
        for body in queue.get_many(5, timeout=0):
            must_be_whole(body, queue.name)

    def call_receive(self) -> None:
        self.held.append(self.queue().receive(timeout=self.numbers.choice([0, SHORT])))

    def call_consume(self) -> None:
        if len(self.consumers) < 3:
            self.consumers.append(self.queue().consumer())
        self.held.extend(self.numbers.choice(self.consumers).receive_many(3, timeout=0))

    def call_close_consumer(self) -> None:
        if self.consumers:
            self.consumers.pop(self.numbers.randrange(len(self.consumers))).close()

    def call_settle(self) -> None:
        if self.held:
            message = self.held.pop(self.numbers.randrange(len(self.held)))
            try:
                must_be_whole(message.body, message.queue.name)
                digest = message.headers.get("digest")
                if digest is not None and digest != message.body[:DIGEST].hex():
                    raise WrongBody(f"headers {message.headers!r}")
            finally:
                getattr(message, self.numbers.choice(["ack", "retry", "release", "reject"]))()

    def call_view(self) -> None:
        if self.held:
            view = self.numbers.choice(self.held).view()
            if len(self.views) < 5:
                self.views.append(view)
            else:
                self.views.clear()

    def call_browse(self) -> None:
        queue = self.queue()
        for message in queue.browse():
            must_be_whole(message.body, queue.name)

    def call_count(self) -> None:
        queue = self.queue()
        queue.qsize()
        queue.statistics()

    def call_join(self) -> None:
        self.queue().join(timeout=SHORT)
