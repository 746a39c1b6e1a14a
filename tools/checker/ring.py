"""A ring of a queue, as columns: one numpy array for each word of all slots."""

import os
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy
from numpy.typing import NDArray

from checker.image import Entry, Image, Words
from checker.layout import COLD, GRANULE, QUEUE, RING, SLOT
from checker.words import (
    BACK,
    BROKEN,
    CARRIED,
    FETCHED,
    FLOWED,
    FRONT,
    LAID_ALL,
    LOCKED,
    MOVING,
    PENDING,
    POSITION_MASK,
    QUARANTINED,
    TURN,
    WAITS,
)

Numbers = NDArray[numpy.int64]
Mask = NDArray[numpy.bool_]

HEADER_WORDS = SLOT.bytes // 8
_WORD_OF = {name: SLOT[name] // 8 for name in ("word", "position", "message_id", "enqueued_ns", "body", "tally")}


@lru_cache(maxsize=64)
def slot_numbers(count: int) -> Numbers:
    return numpy.arange(count, dtype=numpy.int64)


FRONT_SHIFT = int(os.environ.get("SHMQ_TEST_FRONT_SHIFT", "12"))  # at most; tools/test --flow makes smaller ones


@dataclass(frozen=True)
class Geometry:
    """The constants of a ring."""

    kind: int
    shift: int
    slot_size: int
    slots: int
    carried: int
    run: int
    run_granules: int
    laid: int
    cold: int

    @property
    def count(self) -> int:
        return 1 << self.shift

    @property
    def bytes(self) -> int:
        """Of the slots."""
        return self.count * self.slot_size

    @property
    def bitmap(self) -> int:
        """Bytes of the bitmap of carried slots, and of the words of stretches behind it."""
        return -(-self.count // 512) * 64 + -(-self.count // 16384) * 64

    @property
    def laid_bytes(self) -> int:
        """Of the slots that have memory."""
        return min(self.laid, self.count) * self.slot_size

    @property
    def cold_granules(self) -> int:
        return -(-self.count * COLD.bytes // GRANULE)


def geometry_at(image: Image, at: int) -> Geometry:
    """The geometry in the ring at this offset."""
    return Geometry(
        kind=image.u32(at + RING["kind"]),
        shift=image.u32(at + RING["shift"]),
        slot_size=image.u32(at + RING["slot_size"]),
        slots=image.u64(at + RING["slots"]),
        carried=image.u64(at + RING["carried"]),
        run=image.u64(at + RING["run"]),
        run_granules=image.u64(at + RING["run_granules"]),
        laid=image.u64(at + RING["laid"]),
        cold=image.u64(at + RING["cold"]),
    )


def geometry_fault(image: Image, found: Geometry, kind: int = BACK) -> str | None:
    """The fault in a ring's constants by themselves, if there is one."""
    if found.kind != kind or found.shift > 24 or not (min(4, FRONT_SHIFT) if kind == FRONT else 6) <= found.shift:
        return f"kind {found.kind}, shift {found.shift}"
    if not 128 <= found.slot_size <= 4096 or found.slot_size % 64:
        return f"slots of {found.slot_size} bytes"
    if not image.holds(found.slots, found.bytes, 64):
        return f"slots at 0x{found.slots:x} do not lie in the data"
    if not image.holds(found.carried, found.bitmap, 64):
        return f"carried bits at 0x{found.carried:x} do not lie in the data"
    if (found.laid == 0 and kind == BACK) or found.count <= found.laid != LAID_ALL:
        return f"{found.laid} slots of {found.count} with memory"
    if found.cold != 0 and not image.holds(found.cold, found.cold_granules * GRANULE, GRANULE):
        return f"cold records at 0x{found.cold:x} do not lie in the data"
    return None


FLOW_WORDS = (
    "flow",
    "low",
    "flushed",
    "pulled",
    "flushing_at",
    "flushing_count",
    "flushed_bytes",
    "pulled_bytes",
    "flushing_bytes",
    "dropping_at",
    "waiting",
    "waiting_bytes",
    "came",
    "came_bytes",
    "waiting_low",
    "waiting_from",
)
# In the words of a level's front ring: how many rows came in by themselves, and how many of these the level's low has
# passed. Also the position of the ring behind which the last of them lies.
FETCH_WORDS = ("fetched", "fetched_bytes", "passed", "passed_bytes", "fetched_end")


@dataclass(frozen=True)
class Flow:
    """The words of a back ring and its queue's page about the rows on disk."""

    word: int
    low: int
    flushed: int
    pulled: int
    flushing_at: int
    flushing_count: int
    flushed_bytes: int
    pulled_bytes: int
    flushing_bytes: int
    dropping_at: int
    waiting: int
    waiting_bytes: int
    came: int
    came_bytes: int
    waiting_low: int
    waiting_from: int
    erased: int
    erased_bytes: int
    passed: int
    passed_bytes: int
    scattered: int
    unfinished: int
    missed: int
    handed: int = 0  # amid a turn: behind the last entry that was handed over to the front; 0: none was

    @property
    def is_on(self) -> bool:
        return self.word & FLOWED != 0

    @property
    def place(self) -> int:
        """P: entries from here on are in the back ring. The next mover derives it from the entries handed over."""
        return max(self.word >> 1, self.handed)

    @property
    def rows(self) -> int:
        return self.flushed - self.pulled - (self.erased - self.passed)

    @property
    def row_bytes(self) -> int:
        """Headers and bodies of these."""
        return self.flushed_bytes - self.pulled_bytes - (self.erased_bytes - self.passed_bytes)

    @property
    def waiting_rows(self) -> int:
        return self.waiting - self.came

    @property
    def waits_are_rows(self) -> bool:
        """The rows that a turn moves to the waiting ones are there already."""
        return 0 < self.waiting_from <= self.waiting

    @property
    def is_amid(self) -> bool:
        """A mover is inside its turn, or died in it, and nobody has recovered since."""
        return self.unfinished != 0

    def is_near(self, position: Numbers) -> Mask:
        """Positions that a mover's turn may be about."""
        near: Mask = (position >= self.place - TURN) & (position < self.place + TURN)
        return near


def flow_at(image: Image, page: int, ring: int, front: int) -> Flow:
    words = [image.u64(ring + RING[field]) for field in FLOW_WORDS]
    words += [image.u64(front + RING[field]) for field in FETCH_WORDS]
    turn = {field: image.u32(page + QUEUE[field]) for field in ("unfinished", "missed")}
    return Flow(*words, **turn)


class Ring:
    """All slots of one ring of a queue, back or front. Only for a geometry without a fault."""

    def __init__(
        self, image: Image, entry: Entry, at: int, level: int = 0, levels: int = 1, back: int | None = None
    ) -> None:
        self.image = image
        self.entry = entry
        self.at = at
        self.back = at if back is None else back  # of its level: of two rings the one with the words of its flow
        self.level = level  # 0: the most important
        self.levels = levels
        self.geometry = geometry = geometry_at(image, at)
        self.page = entry.page
        self.count = geometry.count
        self.shift = geometry.shift
        self.tail = image.u64(at + RING["tail"])
        self.head_word = image.u64(at + RING["head"])
        self.floor = image.u64(at + RING["floor"])
        self.epoch = image.u64(at + RING["epoch"])
        self.due = image.u64(at + RING["due"])
        self.rows_due = image.u64(at + RING["rows_due"])
        self.tried = image.u64(at + RING["tried"])
        self.cells: Words = image.words_at(at + RING["cells"], 64)
        words_a_slot = geometry.slot_size // 8
        self.raw: Words = image.words_at(geometry.slots, self.count * words_a_slot).reshape(self.count, words_a_slot)
        self.word: Words = self.raw[:, 0].copy()
        self.state: NDArray[numpy.uint8] = (self.word & 15).astype(numpy.uint8)
        self.carried_bits: Words = image.words_at(geometry.carried, -(-self.count // 64))
        self.is_front = geometry.kind == FRONT

    @cached_property
    def name(self) -> str:
        """Of the queue."""
        length = min(self.image.u32(self.page + QUEUE["name_len"]), 200)
        return self.image.raw(self.page + QUEUE["name"], length).decode(errors="backslashreplace")

    @cached_property
    def title(self) -> str:
        level = f" level {self.level}" if self.levels > 1 else ""
        return f"queue {self.name!r}{level}" + (" front" if self.is_front else "")

    @cached_property
    def flow(self) -> Flow:
        """Of its level."""
        flow = flow_at(self.image, self.page, self.back, self.front)
        if not (flow.is_on and flow.is_amid and flow.low >= flow.place):
            return flow
        front = Ring(self.image, self.entry, self.front, self.level, self.levels, self.back)
        there = front.places[front.use.props & FETCHED == 0]
        handed = max(flow.low, int(there.max(initial=-1)) + 1)
        return replace(flow, handed=handed if handed - flow.place <= TURN else 0)

    @property
    def front(self) -> int:
        """Where the front ring of its level is."""
        return self.image.u64(self.page + QUEUE["level_rings"]) + (self.levels - 1 + self.level) * RING.bytes

    @cached_property
    def places(self) -> Numbers:
        """Of all slots in use: a front's entries have them in cold records, those of a level are their positions."""
        if not self.is_front:
            return self.use.position.astype(numpy.int64)
        if self.geometry.cold == 0:
            return numpy.full(len(self.used), -1, dtype=numpy.int64)
        records = self.image.words_at(self.geometry.cold, self.count * COLD.bytes // 8)
        return records[self.used * (COLD.bytes // 8) + COLD["back"] // 8].astype(numpy.int64)

    @cached_property
    def ordinals(self) -> Numbers:
        """Of a front's entries."""
        records = self.image.words_at(self.geometry.cold, self.count * COLD.bytes // 8)
        return records[self.used * (COLD.bytes // 8) + COLD["ordinal"] // 8].astype(numpy.int64)

    @cached_property
    def head(self) -> int:
        """The head's position, its 44 bits extended: the highest such number that is not behind the tail's next."""
        limit = self.tail + 1
        return limit - ((limit - self.head_word) & POSITION_MASK)

    @cached_property
    def ahead(self) -> Numbers:
        """For each slot: its lap against that of the last position below the tail that it has; -1 before any."""
        newest, at = divmod(self.tail, self.count)
        base = newest - (slot_numbers(self.count) >= at)
        lap = (self.word >> numpy.uint64(32)).astype(numpy.int64)
        return (lap - base + (1 << 31) & 0xFFFFFFFF) - (1 << 31)

    @cached_property
    def used(self) -> Numbers:
        """The slots in use, in whatever state."""
        return self.state.nonzero()[0]

    @property
    def is_unused(self) -> bool:
        """No slot is in use: there is nothing to be asked of messages."""
        return self.used.size == 0

    @cached_property
    def use(self) -> "Use":
        return Use(self, self.used)

    def where(self, slot: int) -> str:
        return f"{self.title} slot {slot}"


class Use:
    """The slots in use, narrowed to them: most rings are mostly empty."""

    def __init__(self, ring: Ring, slots: Numbers) -> None:
        self.ring = ring
        self.slots = slots
        full = len(slots) == ring.count
        rows = ring.raw[:, :HEADER_WORDS]
        columns = numpy.ascontiguousarray((rows if full else rows[slots]).T)
        self.word: Words = columns[_WORD_OF["word"]]
        self.position: Words = columns[_WORD_OF["position"]]
        self.message_id: Words = columns[_WORD_OF["message_id"]]
        self.body: Words = columns[_WORD_OF["body"]]
        lengths, checks = columns[5], columns[6]
        self.body_gen: Words = lengths & 0xFFFFFFFF
        self.body_len: Words = lengths >> numpy.uint64(32)
        self.crc: Words = checks & 0xFFFFFFFF
        self.headers_len: Words = checks >> numpy.uint64(32) & 0xFFFF
        self.delivery: Words = checks >> numpy.uint64(48)
        self.tally: Words = columns[_WORD_OF["tally"]]
        self.state = ring.state[slots]
        self.props: Words = self.tally >> numpy.uint64(32) & 0xFFFF
        self.flags: Words = self.word >> numpy.uint64(4) & 15
        self.owner: Words = self.word >> numpy.uint64(8) & 0x1FFF
        self.tag: Words = self.word >> numpy.uint64(21) & 0x7FF
        self.carried: Mask = (self.flags & CARRIED) != 0
        newest, at = divmod(ring.tail, ring.count)
        base = newest - (slots >= at) + ring.ahead[slots]
        self.at_lap: Numbers = (base << ring.shift) + slots

    @cached_property
    def is_entry(self) -> Mask:
        """A message that somebody still may get."""
        found: Mask = (self.state >= PENDING) & (self.state <= LOCKED)
        if self.moving.any():
            found |= self.moving & ~self.is_row
        return found

    @cached_property
    def moving(self) -> Mask:
        """On its way to disk."""
        found: Mask = self.state == MOVING
        return found

    @cached_property
    def waits(self) -> Mask:
        found: Mask = (self.flags & WAITS) != 0
        return found

    @cached_property
    def is_row(self) -> Mask:
        """On its way to disk, and a word says that it is there: what is left here is to be cleared away."""
        flow = self.ring.flow
        flushed = ~self.waits & (self.position.astype(numpy.int64) < flow.place)
        return self.moving & (flushed | (self.waits & flow.waits_are_rows))

    @cached_property
    def is_named(self) -> Mask:
        """Its header is about a message: an entry, or one that is being cleared away."""
        found: Mask = ((self.state >= PENDING) & (self.state < QUARANTINED)) | self.moving
        return found

    @cached_property
    def counts(self) -> Mask:
        """A place of the queue."""
        found: Mask = self.state != BROKEN
        return found
