"""The bytes of a broker's segment, to be damaged on purpose."""

import mmap
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import shmq
from shmq.core import layout


def place_of(struct: str, field: str) -> int:
    """Where a field begins in its struct."""
    return next(at for name, _, _, at in layout.STRUCTS[struct][1] if name == field)


class SegmentBytes:
    """Reads and writes words of a live segment, beside all protocols. A context manager."""

    def __init__(self, name: str) -> None:
        self.path = Path("/dev/shm", name)
        with self.path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), os.path.getsize(self.path))

    @classmethod
    def of(cls, broker: shmq.Broker) -> Self:
        return cls(broker._membership.member.name)

    def word(self, at: int, size: int = 8) -> int:
        return int.from_bytes(self.memory[at : at + size], "little")

    def write(self, at: int, value: int, size: int = 8) -> None:
        self.memory[at : at + size] = value.to_bytes(size, "little")

    def flip(self, at: int, bit: int) -> None:
        self.memory[at + bit // 8] ^= 1 << bit % 8

    def entry(self, queue: shmq.Queue[Any]) -> int:
        """Of the queue in the directory."""
        start = self.word(place_of("segment", "directory"))
        return start + queue._identity()[0] * layout.STRUCTS["directory"][0]

    def page(self, queue: shmq.Queue[Any]) -> int:
        return self.word(self.entry(queue) + place_of("directory", "page"))

    def slot(self, queue: shmq.Queue[Any], index: int) -> int:
        ring = self.page(queue) + place_of("queue", "ring")
        size = self.word(ring + place_of("ring", "slot_size"), 4)
        return self.word(ring + place_of("ring", "slots")) + index * size

    def body(self, queue: shmq.Queue[Any], index: int) -> int:
        """Where the body of the message in this slot lies."""
        slot = self.slot(queue, index)
        block = self.word(slot + place_of("slot", "body"))
        head = self.word(slot + place_of("slot", "headers_len"), 2)
        if block == 0:
            return slot + layout.STRUCTS["slot"][0] + head
        return ((block & ((1 << 40) - 1)) << 6) + (head + 63) // 64 * 64

    def close(self) -> None:
        self.memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
