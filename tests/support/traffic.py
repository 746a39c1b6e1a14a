"""Producers and consumers that keep books, in whatever process they run, and the audit of their books.

As programs: python -m tests.support.traffic produce BROKER QUEUE NUMBER COUNT BATCH SEED, and
python -m tests.support.traffic consume BROKER QUEUE BOOK BATCH SEED.
"""

import random
import struct
import sys
from array import array
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import shmq

HEADER = struct.Struct("<HIQ")  # producer, number, seed of the run; 14 bytes
LARGEST = 8 << 20
POOL = 1 << 20


def pool_of(seed: int) -> bytes:
    """Random bytes of which bodies are cut: what is compared must not be all alike."""
    return random.Random(seed).randbytes(POOL)


def size_of(producer: int, number: int, seed: int) -> int:
    """From 0 bytes to 8 MiB, each order of magnitude as often as the others."""
    draw = random.Random(f"{seed} {producer} {number}").random()
    return int(LARGEST ** (draw * 1.05)) - 1 if draw < 0.95 else (0, LARGEST)[number % 2]


def body_of(producer: int, number: int, seed: int, pool: bytes | None) -> bytes:
    """Small without a pool; else of size_of() bytes, with the header in front where it fits."""
    header = HEADER.pack(producer, number, seed)
    if pool is None:
        return header
    size = size_of(producer, number, seed)
    if size < len(header):
        return pool[:size]
    start = (producer * 7919 + number * 104729) % POOL
    need = size - len(header)
    text = pool[start : start + need]
    while len(text) < need:
        text += pool[: need - len(text)]
    return header + text


def bodies(producer: int, count: int, seed: int, large: bool) -> Iterator[bytes]:
    pool = pool_of(seed) if large else None
    return (body_of(producer, number, seed, pool) for number in range(count))


def produce(queue: shmq.Queue[Any], producer: int, count: int, batch: bool, seed: int, large: bool = False) -> None:
    if batch:
        queue.put_many(bodies(producer, count, seed, large))
        return
    for body in bodies(producer, count, seed, large):
        queue.put(body)


class Book:
    """The messages that one consumer saw: the numbers of each producer, as they came."""

    def __init__(self, seed: int, large: bool = False) -> None:
        self.seed = seed
        self.pool = pool_of(seed) if large else None
        self.numbers: dict[int, array[int]] = {}
        self.nameless = 0  # bodies too small for a header
        self.volume = 0

    def note(self, body: bytes) -> None:
        self.volume += len(body)
        if len(body) < HEADER.size:
            assert self.pool is not None
            assert body == self.pool[: len(body)]
            self.nameless += 1
            return
        producer, number, seed = HEADER.unpack_from(body)
        assert seed == self.seed, f"a body that nobody put: {body[:32]!r}"
        if self.pool is not None:
            assert body == body_of(producer, number, seed, self.pool), f"body {number} of producer {producer} is torn"
        self.numbers.setdefault(producer, array("I")).append(number)

    def save(self, path: Path) -> None:
        with path.open("wb") as file:
            file.write(struct.pack("<QQQ", len(self.numbers), self.nameless, self.volume))
            for producer, numbers in self.numbers.items():
                file.write(struct.pack("<QQ", producer, len(numbers)))
                numbers.tofile(file)


def consume(queue: shmq.Queue[Any], path: Path, batch: bool, seed: int, large: bool = False) -> None:
    """Takes everything until the queue is shut down and drained."""
    book = Book(seed, large)
    try:
        while True:
            if batch:
                for body in queue.get_many(50):
                    book.note(body)
            else:
                book.note(queue.get())
    except shmq.ShutDown:
        book.save(path)


class Audit:
    """All books of a run against what was put."""

    def __init__(self) -> None:
        self.seen: dict[int, list[array[int]]] = {}
        self.nameless = 0
        self.volume = 0

    def read(self, path: Path) -> None:
        with path.open("rb") as file:
            producers, nameless, volume = struct.unpack("<QQQ", file.read(24))
            self.nameless += nameless
            self.volume += volume
            for _ in range(producers):
                producer, count = struct.unpack("<QQ", file.read(16))
                numbers = array("I")
                numbers.fromfile(file, count)
                self.seen.setdefault(producer, []).append(numbers)

    def check(self, producers: int, count: int, nameless: list[int] | None = None) -> None:
        """None lost, none doubled, each producer's order kept as each consumer saw it."""
        without = nameless or [0] * producers
        assert self.nameless == sum(without)
        for producer in range(producers):
            parts = self.seen.get(producer, [])
            for part in parts:
                for before, after in pairwise(part):
                    assert before < after, f"producer {producer}: {after} came after {before}"
            flat = sorted(number for part in parts for number in part)
            doubled = sum(a == b for a, b in pairwise(flat))
            assert doubled == 0, f"producer {producer}: {doubled} doubled"
            assert len(flat) == count - without[producer], f"producer {producer}: {len(flat)} of {count} arrived"


def main(words: list[str]) -> None:
    role, path, name = words[:3]
    seed = int(words[-1])
    with shmq.open(path, create=False) as broker:
        queue = broker.queue(name, codec="bytes", create=False)
        if role == "produce":
            produce(queue, int(words[3]), int(words[4]), words[5] == "True", seed)
        else:
            consume(queue, Path(words[3]), words[4] == "True", seed)


if __name__ == "__main__":
    main(sys.argv[1:])
