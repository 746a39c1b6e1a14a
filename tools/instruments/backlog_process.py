"""A producer and a consumer of tools/backlog: each notes in the ledger what it is about to do, and what it has done."""

import os
import random
import signal
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import shmq
from instruments.backlog_ledger import Fate, Ledger, Word
from instruments.resident import anonymous_bytes

HEADER = struct.Struct("<QQQ")  # seed of the run, producer, number
BODY = 1024
POOL = 1 << 20
LONGEST_BATCH = 64
MOST_RECEIVED = 20  # at a time
WAIT = 0.2  # seconds of a receive, then a look whether all shall go
FAULT_EVERY = 500  # messages, of a fault on purpose
HOARD = 48 << 20  # bytes that a process keeps which grows on purpose


def pool_of(seed: int) -> bytes:
    """Random bytes of which bodies are cut: what is compared must not be all alike."""
    return random.Random(seed).randbytes(POOL)


def body_of(producer: int, number: int, seed: int, pool: bytes) -> bytes:
    start = (producer * 7919 + number * 104729) % (POOL - BODY)
    return HEADER.pack(seed, producer, number) + pool[start : start + BODY - HEADER.size]


class Producer:
    """Goes on where the one before it was killed: with the message behind those whose put had been begun."""

    def __init__(self, queue: Any, ledger: Ledger, place: int, seed: int, rng: random.Random) -> None:
        self.queue, self.ledger, self.place, self.seed, self.rng = queue, ledger, place, seed, rng
        self.pool = pool_of(seed)

    def work(self, fault: str | None) -> None:
        ledger, number = self.ledger, self.ledger.word(self.place, Word.BEGUN)
        while number < ledger.each and not ledger.is_over:
            count = 1 if self.rng.random() < 0.8 else self.rng.randrange(2, LONGEST_BATCH)
            count = min(count, ledger.each - number)
            bodies = [body_of(self.place, number + after, self.seed, self.pool) for after in range(count)]
            if fault == "reorder" and count > 1:
                bodies.reverse()
            if fault == "double" and number > FAULT_EVERY and self.rng.random() < 1 / FAULT_EVERY:
                self.queue.put(body_of(self.place, number - FAULT_EVERY, self.seed, self.pool))
            ledger.set(self.place, Word.BEGUN, number + count)
            if count == 1:
                self.queue.put(bodies[0])
            else:
                self.queue.put_many(bodies)
            number += count
            ledger.set(self.place, Word.DONE, number)


class Consumer:
    """Receives and acks until all shall go, and tells what cannot be: what came twice, out of order, or torn."""

    def __init__(self, queue: Any, ledger: Ledger, place: int, seed: int, tell: Callable[[str], object]) -> None:
        self.queue, self.ledger, self.place, self.seed, self.tell = queue, ledger, place, seed, tell
        self.pool = pool_of(seed)
        self.newest = [-1] * ledger.producers

    def work(self, rng: random.Random, fault: str | None) -> None:
        with self.queue.consumer() as consumer:
            while not self.ledger.is_over:
                if fault == "lose" and rng.random() < 1 / FAULT_EVERY:
                    self.queue.get_many(1, timeout=0)
                limit = 1 if rng.random() < 0.8 else rng.randrange(2, MOST_RECEIVED)
                self.settle(consumer.receive_many(limit, timeout=WAIT))

    def settle(self, messages: Sequence[Any]) -> None:
        fates = self.ledger.fates
        noted = [(message, self.note(message.body, message.redelivered)) for message in messages]
        for message, at in noted:
            if at is not None:
                fates[at] = Fate.ACKING
            message.ack()
            if at is not None:
                fates[at] = Fate.ACKED

    def note(self, body: bytes, again: bool) -> int | None:
        """Where the message stands in the ledger; None: it is none of this run."""
        ledger = self.ledger
        seed, producer, number = HEADER.unpack_from(body)
        if seed != self.seed or producer >= ledger.producers or number >= ledger.each:
            self.tell(f"a body came that nobody had put: {body[:32]!r}")
            return None
        name = f"message {number} of producer {producer}"
        if body != body_of(producer, number, self.seed, self.pool):
            self.tell(f"{name} is torn")
        at = int(producer * ledger.each + number)
        before = ledger.fates[at]
        if before == Fate.ACKED:
            self.tell(f"{name} came again after its ack had returned")
        elif before != Fate.NEW and not again:
            self.tell(f"{name} came twice as if for the first time")
        ledger.add(self.place, Word.RECEIVED)
        if again:
            ledger.add(self.place, Word.REDELIVERED)
        else:
            if number <= self.newest[producer]:
                self.tell(f"{name} came after number {self.newest[producer]}")
            self.newest[producer] = max(number, self.newest[producer])
        ledger.fates[at] = Fate.TAKEN
        return at


def work(url: str, ledger: Ledger, place: int, seed: int, random_seed: int, faults: Path, fault: str | None) -> None:
    """Runs the process at this place, from its begin to its end; faults are lines in a file."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the run in order
    rng = random.Random(random_seed)
    descriptor = os.open(faults, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with shmq.open(url, create=False) as broker:
        queue = broker.queue("backlog", codec="bytes", create=False)
        ledger.set(place, Word.FIRST_BYTES, anonymous_bytes(os.getpid()))
        hoard = b"x" * HOARD if fault == "grow" else b""
        if place < ledger.producers:
            Producer(queue, ledger, place, seed, rng).work(fault)
        else:
            consumer = Consumer(queue, ledger, place, seed, lambda text: os.write(descriptor, f"{text}\n".encode()))
            consumer.work(rng, fault)
        del hoard
