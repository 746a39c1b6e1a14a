"""One process of a soak: everything that users do, at random, each call written down before and after it.

As a program, for processes that inherit nothing: python soak_process.py URL HISTORIES BEATS SLOT SEED [FAULT]
"""

import hashlib
import mmap
import os
import random
import signal
import struct
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy

import shmq
from instruments.history import AGAIN, OUTCOMES, SETTLES, History, Kind
from instruments.soak_endings import close_amid_calls, fork_amid_calls, lose_descriptors, open_beside_stopped

HEADER = struct.Struct("<IIQI12s")  # process, queue, number, bytes behind, their digest
ARRAY = b"shmqarr1"  # how an encoded array begins
LARGEST = 1 << 20
WAIT = 0.05  # seconds, of every call that may wait
# Name and maxsize. Takers of "fast" settle by the taking; the dead of "work" come to "work.dead". "ranked" has a level
# for each priority, and delays. "deep" and "deep.ranked" are as "work" and "ranked", and flow to disk; the messages of
# every second process in "deep.ranked" are a group. All messages of "later" are delayed, and wait on disk.
QUEUES = (
    ("work", 150),
    ("fast", 400),
    ("work.dead", 0),
    ("ranked", 200),
    ("deep", 1500),
    ("deep.ranked", 1500),
    ("later", 0),
)
WORK, FAST, DEAD, RANKED, DEEP, DEEP_RANKED, LATER = range(7)
WITH_LEVELS, FLOWING = (RANKED, DEEP_RANKED), (DEEP, DEEP_RANKED, LATER)
LEVELS = 10
IN_MEMORY = "64KiB"  # of a queue that flows
TIDE = 3.0  # seconds, in whose first half such a queue fills, and in whose second half it empties
MOST_PUT = 60
LONGEST_DELAY = 0.25  # seconds
LATEST = float(os.environ.get("SHMQ_SOAK_LATEST", "5"))  # seconds; of "later"
MOST_HELD = 6
ENDINGS = (close_amid_calls, fork_amid_calls, lose_descriptors)
POOL = random.Random(1).randbytes(2 * LARGEST)


class Wrong(Exception):
    """Something that shmq promises did not hold."""


def declare(broker: shmq.Broker, index: int) -> Any:
    name, maxsize = QUEUES[index]
    if index == DEAD:
        return broker.queue(name, codec="bytes")
    options: dict[str, Any] = {"priorities": LEVELS} if index in WITH_LEVELS else {}
    if index in FLOWING:
        options["max_memory"] = IN_MEMORY
    if index == DEEP_RANKED:
        options["groups"] = "shared"
    return broker.queue(name, codec="bytes", maxsize=maxsize, max_attempts=0, max_deaths=0, **options)


def is_rising() -> bool:
    """Whether more is put into the queues that flow than taken; all processes see the same tide."""
    return time.monotonic() % TIDE < TIDE / 2


def priority_of(number: int) -> int:
    """Of a message of a queue with levels."""
    return number % LEVELS


def is_delayed(number: int) -> bool:
    return number % 7 == 3


def body_of(process: int, queue: int, number: int, numbers: random.Random) -> bytes:
    size = int(LARGEST ** numbers.random()) - 1 if numbers.random() < 0.3 else numbers.randrange(200)
    start = numbers.randrange(LARGEST)
    content = POOL[start : start + size]
    digest = hashlib.blake2b(content, digest_size=12).digest()
    return HEADER.pack(process, queue, number, size, digest) + content


def named(body: bytes | memoryview) -> tuple[int, int, int]:
    """Process, queue and number of a body, which must be as it was made."""
    if bytes(body[: len(ARRAY)]) == ARRAY:  # its shape stands before it
        body = body[len(ARRAY) + 4 + int.from_bytes(body[len(ARRAY) : len(ARRAY) + 4], "little") :]
    if len(body) < HEADER.size:
        raise Wrong(f"a body of {len(body)} bytes that nobody put")
    process, queue, number, size, digest = HEADER.unpack_from(body)
    content = body[HEADER.size :]
    if len(content) != size or hashlib.blake2b(content, digest_size=12).digest() != digest:
        raise Wrong(f"the body of message {number} of process {process} is torn")
    return process, queue, number


class SoakProcess:
    """Random calls until it is told to end, or killed.

    Arguments:
        url: of the broker.
        histories: the directory of all histories.
        numbers: decides what it does.
        broker: an open one, of a parent; None: it opens its own.
        forked: made by another process of the soak.
        fault: "lose", "double" or "reorder": done now and then, to show that it is found.
    """

    def __init__(
        self,
        url: str,
        histories: Path,
        numbers: random.Random,
        broker: shmq.Broker | None = None,
        *,
        forked: bool = False,
        fault: str | None = None,
    ) -> None:
        self.url, self.histories, self.numbers = url, histories, numbers
        self.history = History(histories)
        if forked:
            self.history.note(Kind.FORKED)
        self.put_so_far = [0] * len(QUEUES)
        self.held: list[tuple[Any, tuple[int, int, int], int]] = []
        self.views: list[memoryview] = []
        self.consumers: list[Any] = []
        self.broker = broker if broker is not None else open_beside_stopped(url)
        self.forked = forked
        calls: list[tuple[Callable[[], object], float]] = [
            (self.put, 12),
            (self.put_many, 4),
            (self.put_ranked, 8),
            (self.receive_ranked, 8),
            (self.fill, 12),
            (self.empty, 8),
            (self.loan, 3),
            (self.loan_array, 2),
            (self.get, 8),
            (self.get_many, 3),
            (self.receive, 12),
            (self.consume, 4),
            (self.settle, 24),
            (self.view, 3),
            (self.close_consumer, 1),
            (self.browse, 1),
            (self.count, 2),
            (self.clear_the_dead, 3),
            (self.manage, 2),
            (self.join, 1),
            (self.open_again, 1),
            (self.fork, 0 if forked else 1),
            *((partial(ending, self), 0 if forked else 0.2) for ending in ENDINGS),
        ]
        if fault is not None:
            calls.append((getattr(self, f"fault_{fault}"), 1))
        self.calls, self.weights = zip(*calls, strict=True)

    def turn(self) -> None:
        self.numbers.choices(self.calls, self.weights)[0]()

    def queue(self, index: int) -> Any:
        return declare(self.broker, index)

    def end(self) -> None:
        """Gives back what it holds, and leaves."""
        self.give_back()
        self.broker.close()
        self.history.close()

    # ---- putting -----------------------------------------------------------------------------------------------

    def _target(self) -> int:
        return self.numbers.choice((WORK, FAST, DEEP))

    def _put(self, index: int, count: int, call: Callable[[list[bytes]], object]) -> None:
        first = self.put_so_far[index]
        bodies = [body_of(self.history.number, index, first + n, self.numbers) for n in range(count)]
        self.history.note(Kind.PUT, index, amount=count, number=first)
        accepted = count
        try:
            call(bodies)
        except (shmq.Full, shmq.OutOfSpace) as error:
            accepted = getattr(error, "accepted", 0)
        self.put_so_far[index] += count  # a number that was refused is not used again
        self.history.note(Kind.PUT_DONE, index, amount=accepted, number=first)

    def put(self) -> None:
        index = self._target()
        self._put(index, 1, lambda bodies: self.queue(index).put(bodies[0], timeout=WAIT))

    def put_many(self) -> None:
        index = self._target()
        count = self.numbers.randrange(1, 12)
        self._put(index, count, lambda bodies: self.queue(index).put_many(bodies, timeout=WAIT))

    def put_ranked(self, index: int = RANKED) -> None:
        number = self.put_so_far[index]
        longest = LATEST if index == LATER else LONGEST_DELAY if is_delayed(number) else 0.0
        delay = self.numbers.random() * longest
        options: dict[str, Any] = {"priority": priority_of(number)} if index in WITH_LEVELS else {}
        if index == DEEP_RANKED and self.history.number % 2:
            options["group"] = str(self.history.number)

        def put(bodies: list[bytes]) -> None:
            self.queue(index).put(bodies[0], timeout=WAIT, delay=delay, **options)

        self._put(index, 1, put)

    def fill(self) -> None:
        """Puts into a queue that flows, many when the tide rises."""
        count = self.numbers.randrange(1, MOST_PUT) if is_rising() else 1
        kind = self.numbers.random()
        if kind < 0.5:
            self._put(DEEP, count, lambda bodies: self.queue(DEEP).put_many(bodies, timeout=WAIT))
        else:
            for _ in range(count):
                self.put_ranked(LATER if kind > 0.9 else DEEP_RANKED)

    def loan(self) -> None:
        index = self._target()

        def write(bodies: list[bytes]) -> None:
            with self.queue(index).loan(len(bodies[0]), timeout=WAIT) as loan:
                loan.view[:] = bodies[0]

        self._put(index, 1, write)

    def loan_array(self) -> None:
        index = self._target()

        def write(bodies: list[bytes]) -> None:
            with self.queue(index).loan_array(len(bodies[0]), "uint8", timeout=WAIT) as loan:
                loan.array[:] = numpy.frombuffer(bodies[0], "uint8")

        self._put(index, 1, write)

    # ---- taking ------------------------------------------------------------------------------------------------

    def _took(self, index: int, body: bytes | memoryview, flags: int) -> tuple[int, int, int]:
        process, queue, number = named(body)
        if queue != (WORK if index == DEAD else index):
            raise Wrong(f"message {number} of process {process} was put into queue {queue}, and came from {index}")
        self.history.note(Kind.TOOK, index, flags, amount=process, number=number)
        return process, queue, number

    def _get(self, index: int, limit: int, call: Callable[[], list[bytes]]) -> None:
        self.history.note(Kind.TAKE, index, SETTLES, amount=limit)
        for body in call():
            self._took(index, body, SETTLES)
        self.history.note(Kind.TAKE_DONE, index)

    def get(self) -> None:
        def one() -> list[bytes]:
            try:
                return [self.queue(FAST).get(timeout=WAIT)]
            except shmq.Empty:
                return []

        self._get(FAST, 1, one)

    def get_many(self) -> None:
        limit = self.numbers.randrange(1, 15)
        self._get(FAST, limit, lambda: list(self.queue(FAST).get_many(limit, timeout=WAIT)))

    def _receive(self, source: Any, limit: int, index: int = WORK) -> None:
        if len(self.held) + limit > MOST_HELD:
            return
        self.history.note(Kind.TAKE, index, amount=limit)
        for message in source.receive_many(limit, timeout=WAIT):
            body = message.body if self.numbers.random() < 0.6 else message.view()
            name = self._took(index, body, AGAIN if message.redelivered else 0)
            self.held.append((message, name, index))
        self.history.note(Kind.TAKE_DONE, index)

    def receive_ranked(self) -> None:
        self._receive(self.queue(RANKED), self.numbers.choice((1, 1, 4)), RANKED)

    def receive(self) -> None:
        self._receive(self.queue(WORK), self.numbers.choice((1, 1, 3)))

    def empty(self) -> None:
        """Takes from a queue that flows. When the tide falls, as long as much is there, and settles all of it."""
        index = self.numbers.choice(FLOWING)
        if is_rising():
            self._receive(self.queue(index), 1, index)
            return
        for _ in range(MOST_PUT):
            while self.held:
                self.settle()
            self._receive(self.queue(index), MOST_HELD, index)
            if len(self.held) < MOST_HELD:
                return

    def consume(self) -> None:
        if len(self.consumers) < 2:
            self.consumers.append(self.queue(WORK).consumer(prefetch=self.numbers.choice((None, 4))))
        self._receive(self.numbers.choice(self.consumers), 1)

    def close_consumer(self) -> None:
        if self.consumers:
            closing = self.consumers.pop(self.numbers.randrange(len(self.consumers)))
            kept = []
            for message, name, index in self.held:
                if message._consumer is closing:
                    self.settle_one(message, name, index, "release")
                else:
                    kept.append((message, name, index))
            self.held = kept
            closing.close()

    def settle_one(
        self, message: Any, name: tuple[int, int, int], index: int, how: str, delay: float | None = None
    ) -> None:
        process, _, number = name
        outcome = OUTCOMES.index(how)
        self.history.note(Kind.SETTLE, index, outcome=outcome, amount=process, number=number)
        getattr(message, how)(**({} if delay is None else {"delay": delay}))
        self.history.note(Kind.SETTLED, index, outcome=outcome, amount=process, number=number)

    def settle(self) -> None:
        if self.held:
            message, name, index = self.held.pop(self.numbers.randrange(len(self.held)))
            how = self.numbers.choices(OUTCOMES, (20, 2, 3, 1 if index == WORK else 0))[0]
            late = how in ("retry", "release") and self.numbers.random() < 0.4
            self.settle_one(message, name, index, how, self.numbers.random() * LONGEST_DELAY if late else None)

    def view(self) -> None:
        """Some views outlive their message's settlement."""
        if self.held:
            message = self.numbers.choice(self.held)[0]
            self.views.append(message.view() if self.numbers.random() < 0.7 else memoryview(message.array()))
        if len(self.views) > 4:
            for view in self.views:
                named(view.cast("B"))
            self.views.clear()

    def clear_the_dead(self) -> None:
        self.history.note(Kind.TAKE, DEAD, amount=5)
        messages = self.queue(DEAD).receive_many(5, timeout=0)
        named_ones = [(m, self._took(DEAD, m.body, AGAIN if m.redelivered else 0)) for m in messages]
        self.history.note(Kind.TAKE_DONE, DEAD)
        for message, name in named_ones:
            self.settle_one(message, name, DEAD, "ack")

    # ---- the rest ----------------------------------------------------------------------------------------------

    def browse(self) -> None:
        self.history.note(Kind.OTHER)
        for message in self.queue(self.numbers.choice((WORK, FAST, RANKED, *FLOWING))).browse():
            named(message.body)
        self.history.note(Kind.OTHER_DONE)

    def count(self) -> None:
        queue = self.queue(self.numbers.choice((WORK, FAST, RANKED, *FLOWING)))
        queue.qsize()
        queue.statistics()

    def manage(self) -> None:
        """A queue of all, in which nothing is accounted for: made, filled, shut down, purged, deleted."""
        self.history.note(Kind.OTHER)
        try:
            queue: Any = self.broker.queue(f"brief-{self.numbers.randrange(3)}", maxsize=20)
            for _ in range(self.numbers.randrange(4)):
                queue.put(self.numbers.randbytes(self.numbers.choice((0, 10, 5000))), timeout=0)
            draw = self.numbers.random()
            if draw < 0.2:
                queue.purge()
            elif draw < 0.4:
                queue.shutdown(immediate=draw < 0.3)
                queue.reopen()
            elif draw < 0.6:
                queue.delete()
            elif draw < 0.8:
                message = queue.receive(timeout=0)
                message.ack()
            else:
                queue.get_many(4, timeout=0)
        except (shmq.Full, shmq.Empty, shmq.ShutDown, shmq.NotFound, shmq.SettlementError, shmq.OutOfSpace):
            pass  # others do the same with it
        self.history.note(Kind.OTHER_DONE)

    def join(self) -> None:
        self.history.note(Kind.OTHER)
        try:
            self.queue(FAST).join(timeout=WAIT)
        except shmq.Timeout:
            pass
        self.history.note(Kind.OTHER_DONE)

    def open_again(self) -> None:
        """Leaves the broker and comes back; a message in hand goes back first."""
        if not self.forked:
            self.give_back()
            self.rejoin()

    def give_back(self) -> None:
        """All that it has in hand."""
        for message, name, index in self.held:
            self.settle_one(message, name, index, "release")
        self.held.clear()
        self.views.clear()
        for consumer in self.consumers:
            consumer.close()
        self.consumers.clear()

    def rejoin(self) -> None:
        self.history.note(Kind.OTHER)
        self.broker.close()
        self.broker = open_beside_stopped(self.url)
        self.history.note(Kind.OTHER_DONE)

    def fork(self) -> None:
        """A child with the handles of its parent does a little of its own, and ends without a word."""
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                child = SoakProcess(self.url, self.histories, self.numbers, self.broker, forked=True)
                child.numbers.random()
                for _ in range(child.numbers.randrange(20)):
                    child.turn()
                child.settle_all()
                code = 0
            finally:
                os._exit(code)
        self.history.note(Kind.OTHER)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
            raise Wrong(f"child {pid} failed")
        self.history.note(Kind.OTHER_DONE)

    def settle_all(self) -> None:
        while self.held:
            message, name, index = self.held.pop()
            self.settle_one(message, name, index, "ack")

    # ---- faults on purpose -------------------------------------------------------------------------------------

    def _wrong(self, index: int) -> int:
        """Where: in this queue, or in one that flows."""
        return self.numbers.choice((index, DEEP))

    def fault_lose(self) -> None:
        """Takes a message, and tells nobody."""
        self.queue(self._wrong(WORK)).get_many(1, timeout=0)

    def fault_double(self) -> None:
        """Puts a message that it has put before."""
        index = self._wrong(WORK)
        if self.put_so_far[index]:
            body = body_of(self.history.number, index, self.put_so_far[index] - 1, self.numbers)
            try:
                self.queue(index).put(body, timeout=0)
            except shmq.Full:
                pass

    def fault_reorder(self) -> None:
        """Puts two messages in the wrong order."""
        index = self._wrong(FAST)
        first = self.put_so_far[index]
        self.put_so_far[index] += 2
        self.history.note(Kind.PUT, index, amount=2, number=first)
        try:
            for number in (first + 1, first):
                self.queue(index).put(body_of(self.history.number, index, number, self.numbers), timeout=0)
        except shmq.Full:
            pass


# ---- as a program ----------------------------------------------------------------------------------------------


def shared_numbers(path: Path) -> memoryview:
    """Numbers that all processes of a run see: for each one its calls so far; the last is 1 when all shall end."""
    with path.open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), path.stat().st_size)).cast("Q")


def work(url: str, histories: Path, beats: Path, slot: int, seed: int, fault: str | None) -> None:
    """Random calls until all shall end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the run in order
    numbers = shared_numbers(beats)
    process = SoakProcess(url, histories, random.Random(seed), fault=fault)
    while numbers[len(numbers) - 1] == 0:
        process.turn()
        numbers[slot] += 1
    process.end()


if __name__ == "__main__":
    _, url, histories, beats, slot, seed, *fault = sys.argv
    work(url, Path(histories), Path(beats), int(slot), int(seed), fault[0] if fault else None)
