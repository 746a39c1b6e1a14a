"""A sound segment with a bit of everything in it, and the ways to damage copies of it.

Process row 0 made it, row 1 is a process with a message in hand, row 2 was left by its process. Queues: `jobs` (slot 0
in the hands of row 1, 1 in those of row 0, 2 was tried again, 3 and 6 have blocks, 4 and 5 are plain), `old` (carried
entries), `seen` (views), `timed` (slot 0 is held, 1 has a time to live), `gone` (deleted), `temp` (temporary, empty),
`ranked` (three levels: a message in slot 1 of the first, one in the hands of row 0 in slot 0 of the second, and in the
third a plain one, one with a block, and a held one), `grouped` (two messages of one group, the first in the hands of
row 0, and one of another).
"""

import dataclasses
import mmap
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import shmq
from checker import Image, Violation, judge, judge_quiet
from checker.crc32c import crc32c
from checker.groups import places_of
from checker.image import Slab
from checker.layout import (
    COLD,
    COUNTERS,
    DIRECTORY,
    GROUP,
    PROCESS,
    PROCESS_PAGE,
    QUEUE,
    RING,
    SEGMENT,
    SLAB,
    SLEEPERS,
    SLOT,
    TICKET,
)
from checker.messages import covered
from checker.queue import Queue, queues_of
from checker.ring import Ring
from tests.support.offspring import Offspring, Say, family
from tests.support.segment_image import check_image, segment_file

LARGE = b"x" * 5000
LIVE = {0, 1}
TEMP = "temp"


def hold_one(queue: shmq.Queue[Any], say: Say) -> None:
    consumer = queue.consumer()
    message = consumer.receive(timeout=10)
    say(message.body.decode())
    while True:
        signal.pause()


def look_and_leave(queue: shmq.Queue[Any], say: Say) -> None:
    queue.qsize()
    queue.put(b"bye")
    queue.get(timeout=0)
    queue.broker.close()
    say("left")


@contextmanager
def everything(broker_dir: Path) -> Iterator[Image]:
    """The bytes of such a segment."""
    with shmq.open(broker_dir, memory="16MiB") as broker, family() as children:
        jobs: shmq.Queue[Any] = broker.queue("jobs", maxsize=1024, max_attempts=0)
        old: shmq.Queue[Any] = broker.queue("old", maxsize=1024, max_bytes="1MiB")
        timed: shmq.Queue[Any] = broker.queue("timed")
        seen, gone, temp = broker.queue("seen"), broker.queue("gone"), broker.queue(TEMP, temporary=True)
        children.append(Offspring(hold_one, jobs))
        jobs.put(b"first")
        children[0].expect("first")
        children.append(Offspring(look_and_leave, temp))
        children[1].expect("left")
        children[1].wait()
        jobs.put_many([b"in hand", b"released", LARGE, b"plain", b"plain too", LARGE + b"2"])
        consumer = jobs.consumer()
        kept = consumer.receive(timeout=0)
        consumer.receive(timeout=0).retry()
        old.put_many([b"0", b"1"])
        held = [old.receive(timeout=0) for _ in range(2)]
        for n in range(1500):
            old.put(b"%d" % n)
            old.get(timeout=0)
        held[1].release()
        seen.put_many([LARGE, LARGE])
        with seen.receive(timeout=0) as message:
            left = message.view()
        other = seen.receive(timeout=0)
        right = other.view()
        timed.put(b"later", delay=3600)
        timed.put(b"mortal", ttl=3600)
        ranked: shmq.Queue[Any] = broker.queue("ranked", priorities=3, maxsize=64)
        ranked.put(b"high", priority=9)
        ranked.get(timeout=0)
        ranked.put(b"middle")
        in_the_middle = ranked.receive(timeout=0)
        ranked.put(b"high too", priority=6)
        ranked.put_many([b"low", LARGE], priority=1)
        ranked.put(b"low, later", priority=0, delay=3600)
        grouped: shmq.Queue[Any] = broker.queue("grouped", groups="shared", maxsize=64)
        for key in (b"a", b"a", b"b"):
            grouped.put(key, group=key.decode())
        of_a_group = grouped.receive(timeout=0)
        grouped.get(timeout=0)
        grouped.put(b"b again", group="b")
        gone.put(b"lost")
        gone.delete()
        yield check_image(broker_dir, LIVE)
        del left, right, kept, held, in_the_middle, of_a_group
    segment_file(broker_dir).unlink()


@dataclasses.dataclass
class Scene:
    """A copy of the bytes, to be damaged, and the places in it."""

    data: mmap.mmap
    sound: Image

    @classmethod
    def of(cls, sound: Image) -> "Scene":
        return cls(sound.copied(), sound)

    def read(self, offset: int, size: int = 8) -> int:
        return int.from_bytes(self.data[offset : offset + size], "little")

    def write(self, offset: int, value: int, size: int = 8) -> None:
        self.data[offset : offset + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")

    def add(self, offset: int, change: int, size: int = 8) -> None:
        self.write(offset, self.read(offset, size) + change, size)

    def judged(self, dead: set[int] | None = None) -> set[str]:
        return names(judge(Image(self.data), dead))

    def judged_quiet(self, live: set[int] | None = None) -> set[str]:
        return names(judge_quiet(Image(self.data), LIVE if live is None else live))

    def header(self, field: str) -> int:
        return SEGMENT[field]

    def seal_header(self) -> None:
        self.write(SEGMENT["header_crc"], crc32c(self.data[:120] + self.data[128:1280]), 4)

    def process(self, row: int, field: str) -> int:
        return self.sound.regions.processes + row * PROCESS.bytes + PROCESS[field]

    def pin(self, row: int, number: int) -> int:
        return self.sound.processes[row].pins + 16 * number

    def used_pin(self) -> int:
        """The first pin of process row 0."""
        return next(self.pin(0, number) for number in range(256) if self.read(self.pin(0, number)))

    def unused_pin(self, row: int) -> int:
        return next(self.pin(row, number) for number in range(256) if not self.read(self.pin(row, number)))

    def counter_chunk(self, row: int, number: int) -> int:
        return self.sound.processes[row].pins + PROCESS_PAGE["chunks"] + 8 * number

    def line(self, row: int, queue: str, field: str) -> int:
        line = self.sound.line(self.sound.processes[row], self.ring(queue).entry.index)
        assert line is not None
        return line + COUNTERS[field]

    def queue(self, name: str) -> Queue:
        return next(queue for queue in queues_of(self.sound) if queue.name == name)

    def ring(self, name: str, level: int = 0) -> Ring:
        return self.queue(name).rings[level]

    def entry(self, name: str, field: str) -> int:
        return self.ring(name).entry.offset + DIRECTORY[field]

    def ticket(self, name: str, number: int) -> int:
        return self.ring(name).geometry.run + number * TICKET.bytes

    def page(self, name: str, field: str) -> int:
        return self.ring(name).page + QUEUE[field]

    def of_ring(self, name: str, field: str, level: int = 0) -> int:
        return self.ring(name, level).at + RING[field]

    def sleepers(self, name: str, field: str, group: int = 0) -> int:
        return self.page(name, "sleepers") + group * SLEEPERS.bytes + SLEEPERS[field]

    def consumer_word(self, name: str, row: int) -> int:
        return self.read(self.page(name, "chunks")) + 128 * row

    def consumer_rows(self, name: str, process: int) -> list[int]:
        used = self.read(self.sleepers(name, "used"))
        rows = [row for row in range(64) if used >> row & 1]
        return [row for row in rows if self.read(self.consumer_word(name, row)) >> 8 & 0xFFFFFF == process]

    def group(self, name: str, field: str, owned: bool = True) -> int:
        """A slot of the table that somebody has, or the first that was never used."""
        places = places_of(self.queue(name))
        return next(at for at in places if bool(self.read(at) & 0x1FFF if owned else not self.read(at))) + GROUP[field]

    def record(self, name: str, number: int, field: str, level: int = 0) -> int:
        return self.ring(name, level).geometry.cold + number * COLD.bytes + COLD[field]

    def slot(self, name: str, number: int, field: str = "word", level: int = 0) -> int:
        geometry = self.ring(name, level).geometry
        return geometry.slots + number * geometry.slot_size + SLOT[field]

    def change_slot(
        self,
        name: str,
        number: int,
        state: int | None = None,
        owner: int | None = None,
        tag: int | None = None,
        level: int = 0,
    ) -> None:
        """Parts of a slot's word."""
        word = self.read(self.slot(name, number, level=level))
        for value, shift, bits in ((state, 0, 4), (owner, 8, 13), (tag, 21, 11)):
            if value is not None:
                word = word & ~(((1 << bits) - 1) << shift) | value << shift
        self.write(self.slot(name, number, level=level), word)

    def claim(self, name: str, tag: int = 0) -> int:
        """The slot at the tail, claimed by process row 0, and counted. Answers its number."""
        number = self.read(self.of_ring(name, "tail")) % 1024
        self.change_slot(name, number, state=1, owner=0x1000, tag=tag)
        self.add(self.page(name, "count"), 1)
        return number

    def set_head(self, name: str, position: int, level: int = 0) -> None:
        """The head's position; its epoch stays."""
        at = self.of_ring(name, "head", level)
        self.write(at, self.read(at) >> 44 << 44 | position)

    def seal(self, name: str, number: int, level: int = 0) -> None:
        """The right checksum for what a slot holds now."""
        ring = next(queue for queue in queues_of(Image(self.data)) if queue.name == name).rings[level]
        text = covered(ring, ring.use.slots.tolist().index(number))
        assert text is not None
        self.write(self.slot(name, number, "crc", level), crc32c(text), 4)

    def block(self, name: str, number: int, level: int = 0) -> tuple[int, int]:
        """Offsets of the two words of the block that a slot names: word, state."""
        offset = (self.read(self.slot(name, number, "body", level)) & (1 << 40) - 1) << 6
        place = self.sound.block_at(offset)
        assert place is not None
        slab, index = place
        at = slab.headers + SLAB["block"] + 16 * index
        return at, at + 8

    def slab_with_free_blocks(self) -> Slab:
        slabs = self.sound.slabs.values()
        return next(slab for slab in slabs if slab.blocks > 1 and (slab.states[: slab.blocks] & 0xFF == 1).any())

    def free_block(self) -> tuple[int, int]:
        slab = self.slab_with_free_blocks()
        index = next(index for index in range(slab.blocks) if int(slab.states[index]) & 0xFF == 1)
        at = slab.headers + SLAB["block"] + 16 * index
        return at, at + 8

    def granule(self, number: int) -> int:
        return self.sound.regions.granules + 8 * number

    def free_granule(self) -> int:
        words = self.sound.granule_words.tolist()
        return next(number for number, word in enumerate(words) if word & 0xFF == 0)

    def used_granule(self) -> int:
        words = self.sound.granule_words.tolist()
        return next(number for number, word in enumerate(words) if word & 0xFF == 1)


def names(violations: list[Violation]) -> set[str]:
    return {violation.rule for violation in violations}
