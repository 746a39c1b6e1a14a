"""The steps of all processes of a run with a deep backlog so far: words in a file that outlives each of them.

A kill leaves each word as it was or as it became. A process writes each step there before it does it.
"""

import mmap
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path


class Fate(IntEnum):
    """The note of consumers on a message, a byte each."""

    NEW = 0
    TAKEN = 1
    ACKING = 2  # its ack was begun; if its consumer was killed then, it may have been acked or not
    ACKED = 3


class Word(IntEnum):
    """Of each process's place, a number of 64 bits each."""

    BEGUN = 0  # messages of a producer whose put was begun
    DONE = 1  # of these, those whose put has returned
    RECEIVED = 2  # by a consumer
    REDELIVERED = 3  # of these, those that were marked so
    FIRST_BYTES = 4  # memory of its own that the process had when it began


WORDS = len(Word)


class Ledger:
    """The file, mapped. Places are those of the producers first, then those of the consumers.

    Arguments:
        path: of a file that create() has made.
        producers, consumers: how many there are of each at a time.
        each: how many messages each producer puts.
    """

    def __init__(self, path: Path, producers: int, consumers: int, each: int) -> None:
        self.producers, self.consumers, self.each = producers, consumers, each
        with path.open("r+b") as file:
            self.bytes = memoryview(mmap.mmap(file.fileno(), path.stat().st_size))
        self.words_end = (1 + (producers + consumers) * WORDS) * 8
        self.words = self.bytes[: self.words_end].cast("Q")
        self.fates = self.bytes[self.words_end :]

    @classmethod
    def create(cls, path: Path, producers: int, consumers: int, each: int) -> "Ledger":
        with path.open("wb") as file:
            file.truncate((1 + (producers + consumers) * WORDS) * 8 + producers * each)
        return cls(path, producers, consumers, each)

    @property
    def is_over(self) -> bool:
        """All shall go."""
        return self.words[0] != 0

    def end(self) -> None:
        self.words[0] = 1

    def word(self, place: int, word: Word) -> int:
        return self.words[1 + place * WORDS + word]

    def set(self, place: int, word: Word, value: int) -> None:
        self.words[1 + place * WORDS + word] = value

    def add(self, place: int, word: Word) -> None:
        """Only the process that has the place does it."""
        self.words[1 + place * WORDS + word] += 1

    def total(self, word: Word) -> int:
        return sum(self.word(place, word) for place in range(self.producers + self.consumers))

    def count(self, fate: Fate) -> int:
        return sum(self.of_producer(producer).count(fate) for producer in range(self.producers))

    def of_producer(self, producer: int) -> bytes:
        """A copy of what became of its messages."""
        return bytes(self.fates[producer * self.each : (producer + 1) * self.each])

    def with_fate(self, producer: int, *fates: Fate) -> Iterator[int]:
        """Numbers of those of its messages that have one of them."""
        content = self.of_producer(producer)
        for fate in fates:
            number = content.find(fate)
            while number >= 0:
                yield number
                number = content.find(fate, number + 1)
