"""A queue's page and its ring, as columns: one numpy array for each word of all slots."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy
from numpy.typing import NDArray

from checker.image import Entry, Image, Words
from checker.layout import GRANULE, QUEUE, RING, SLOT
from checker.words import AVAILABLE, BROKEN, CARRIED, FREE, LOCKED, POSITION_MASK, QUARANTINED

Numbers = NDArray[numpy.int64]
Mask = NDArray[numpy.bool_]

HEADER_WORDS = SLOT.bytes // 8
_WORD_OF = {name: SLOT[name] // 8 for name in ("word", "position", "message_id", "enqueued_ns", "body", "tally")}


@lru_cache(maxsize=64)
def slot_numbers(count: int) -> Numbers:
    return numpy.arange(count, dtype=numpy.int64)


@dataclass(frozen=True)
class Geometry:
    """The constants of a ring."""

    kind: int
    shift: int
    slot_size: int
    slots: int
    carried: int
    run_granules: int

    @property
    def count(self) -> int:
        return 1 << self.shift

    @property
    def granules(self) -> int:
        return -(-(self.count * self.slot_size + self.count // 8) // GRANULE)


def geometry_of(image: Image, page: int) -> Geometry:
    at = page + QUEUE["ring"]
    return Geometry(
        kind=image.u32(at + RING["kind"]),
        shift=image.u32(at + RING["shift"]),
        slot_size=image.u32(at + RING["slot_size"]),
        slots=image.u64(at + RING["slots"]),
        carried=image.u64(at + RING["carried"]),
        run_granules=image.u64(at + RING["run_granules"]),
    )


def geometry_fault(image: Image, found: Geometry) -> str | None:
    """What makes no sense about a ring's constants."""
    if found.kind != 0 or found.shift > 24 or not 6 <= found.shift:
        return f"kind {found.kind}, shift {found.shift}"
    if not 128 <= found.slot_size <= 4096 or found.slot_size % 64:
        return f"slots of {found.slot_size} bytes"
    if not image.holds(found.slots, found.granules * GRANULE, GRANULE):
        return f"slots at 0x{found.slots:x} do not lie in the data"
    if found.carried != found.slots + found.count * found.slot_size:
        return f"the carried bits at 0x{found.carried:x} do not follow the slots"
    if found.run_granules != found.granules:
        return f"a run of {found.run_granules} granules, not {found.granules}"
    return None


class Ring:
    """All slots of one queue. Only for a geometry without a fault."""

    def __init__(self, image: Image, entry: Entry, geometry: Geometry) -> None:
        self.image = image
        self.entry = entry
        self.geometry = geometry
        self.page = entry.page
        self.count = geometry.count
        self.shift = geometry.shift
        at = entry.page + QUEUE["ring"]
        self.tail = image.u64(at + RING["tail"])
        self.head_word = image.u64(at + RING["head"])
        self.floor = image.u64(at + RING["floor"])
        self.epoch = image.u64(at + RING["epoch"])
        self.cells: Words = image.words_at(at + RING["cells"], 64)
        self.waiters = image.u32(at + RING["waiters"])
        self.maxsize = image.u64(entry.page + QUEUE["maxsize"])
        words_a_slot = geometry.slot_size // 8
        self.raw: Words = image.words_at(geometry.slots, self.count * words_a_slot).reshape(self.count, words_a_slot)
        self.columns: Words = numpy.ascontiguousarray(self.raw[:, :HEADER_WORDS].T)
        self.word: Words = self.columns[0]
        self.state: NDArray[numpy.uint8] = (self.word & 15).astype(numpy.uint8)
        self.carried_bits: Words = image.words_at(geometry.carried, self.count // 64)

    @property
    def name(self) -> str:
        length = min(self.image.u32(self.page + QUEUE["name_len"]), 200)
        return self.image.raw(self.page + QUEUE["name"], length).decode(errors="backslashreplace")

    @cached_property
    def head(self) -> int:
        """The head's position, its 44 bits extended: the highest such number that is not behind the tail's next."""
        limit = self.tail + 1
        return limit - ((limit - self.head_word) & POSITION_MASK)

    @cached_property
    def ahead(self) -> Numbers:
        """For each slot: its lap against the turn of the last position below the tail that it has; -1 before any."""
        turn, at = divmod(self.tail, self.count)
        base = turn - (slot_numbers(self.count) >= at)
        lap = (self.word >> numpy.uint64(32)).astype(numpy.int64)
        return (lap - base + (1 << 31) & 0xFFFFFFFF) - (1 << 31)

    @cached_property
    def used(self) -> Numbers:
        """The slots in use, in whatever state."""
        return numpy.flatnonzero(self.state != FREE)

    @cached_property
    def use(self) -> "Use":
        return Use(self, self.used)

    def where(self, slot: int) -> str:
        return f"queue {self.name!r} slot {slot}"


class Use:
    """The slots in use, narrowed to them: most rings are mostly empty."""

    def __init__(self, ring: Ring, slots: Numbers) -> None:
        self.ring = ring
        self.slots = slots
        full = len(slots) == ring.count
        columns = ring.columns if full else ring.columns[:, slots]
        self.word: Words = columns[_WORD_OF["word"]]
        self.position: Words = columns[_WORD_OF["position"]]
        self.message_id: Words = columns[_WORD_OF["message_id"]]
        self.body: Words = columns[_WORD_OF["body"]]
        lengths, checks = columns[5], columns[6]
        self.body_gen: Words = lengths & 0xFFFFFFFF
        self.body_len: Words = lengths >> numpy.uint64(32)
        self.crc: Words = checks & 0xFFFFFFFF
        self.head_len: Words = checks >> numpy.uint64(32) & 0xFFFF
        self.delivery: Words = checks >> numpy.uint64(48)
        self.tally: Words = columns[_WORD_OF["tally"]]
        self.state = ring.state[slots]
        self.flags: Words = self.word >> numpy.uint64(4) & 15
        self.owner: Words = self.word >> numpy.uint64(8) & 0x1FFF
        self.tag: Words = self.word >> numpy.uint64(21) & 0x7FF
        self.carried: Mask = (self.flags & CARRIED) != 0
        turn, at = divmod(ring.tail, ring.count)
        base = turn - (slots >= at) + ring.ahead[slots]
        self.at_turn: Numbers = (base << ring.shift) + slots

    @cached_property
    def is_entry(self) -> Mask:
        """A message that somebody still may get."""
        found: Mask = (self.state >= AVAILABLE) & (self.state <= LOCKED)
        return found

    @cached_property
    def is_named(self) -> Mask:
        """Its header is about a message: an entry, or one that is being cleared away."""
        found: Mask = (self.state >= AVAILABLE) & (self.state < QUARANTINED)
        return found

    @cached_property
    def counts(self) -> Mask:
        """A place of the queue."""
        found: Mask = self.state != BROKEN
        return found


def rings_of(image: Image) -> list[Ring]:
    """The rings of all queues that are there, those whose geometry makes no sense left out."""
    rings = []
    for entry in image.entries:
        if image.is_page(entry.page):
            geometry = geometry_of(image, entry.page)
            if geometry_fault(image, geometry) is None:
                rings.append(Ring(image, entry, geometry))
    return rings
