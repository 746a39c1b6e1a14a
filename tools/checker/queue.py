"""A queue: its page, and the rings of its levels of priority, the most important first; behind them their front rings.

The ring of the first level lies in the page. Its run has the tickets of blocked producers, the other rings, the bitmap
of each, and the slots of the first level. The slots of each other ring begin at a granule. All levels have the same
number of slots, of the same size; front rings have fewer.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from checker.image import Entry, Image
from checker.layout import GRANULE, QUEUE, RING, SETTINGS, TICKET, TICKETS, round_up
from checker.ring import FRONT_SHIFT, Flow, Geometry, Ring, geometry_at, geometry_fault
from checker.words import BACK, FRONT

LEVELS = 10


@dataclass(frozen=True)
class Queue:
    """Only for a page whose levels make sense."""

    image: Image
    entry: Entry
    rings: list[Ring]

    @property
    def page(self) -> int:
        return self.entry.page

    @property
    def name(self) -> str:
        return self.rings[0].name

    @cached_property
    def title(self) -> str:
        return f"queue {self.name!r}"

    @property
    def granules(self) -> int:
        return granules_of(self.rings[0].geometry, self.rings[0].levels)

    @property
    def backs(self) -> list[Ring]:
        """Where producers put, a ring for each level."""
        return [ring for ring in self.rings if not ring.is_front]

    @property
    def fronts(self) -> list[Ring]:
        """Where entries come back from disk, a ring for each level."""
        return [ring for ring in self.rings if ring.is_front]

    @property
    def flow(self) -> Flow:
        """Of the first level; whether a mover is amid its turn is said of all."""
        return self.rings[0].flow

    @property
    def rows(self) -> int:
        return sum(ring.flow.rows + ring.flow.waiting_rows for ring in self.backs)

    @property
    def row_bytes(self) -> int:
        return sum(ring.flow.row_bytes + ring.flow.waiting_bytes - ring.flow.came_bytes for ring in self.backs)

    @property
    def waiters(self) -> int:
        """Blocked producers."""
        return self.image.u32(self.page + QUEUE["ring"] + RING["waiters"])

    def limit(self, option: str) -> int:
        """maxsize, max_bytes or max_memory; 0: none."""
        at = self.page + (QUEUE["maxsize"] if option == "maxsize" else QUEUE["settings"] + SETTINGS[option])
        return self.image.u64(at)


@lru_cache(maxsize=1024)
def front_of(first: Geometry) -> Geometry:
    """A front ring of a queue whose first level has this one: its number of slots."""
    return replace(first, kind=FRONT, shift=min(first.shift - 2, FRONT_SHIFT))


@lru_cache(maxsize=1024)  # of image after image the same
def places_of(first: Geometry, levels: int) -> list[tuple[int, int]]:
    """In the run, from its begin on: the slots of each ring, and its bitmap with stretches; last where the run ends."""
    bitmaps = TICKETS * TICKET.bytes + (2 * levels - 1) * RING.bytes
    front_bitmaps = bitmaps + levels * first.bitmap
    slots = front_bitmaps + levels * front_of(first).bitmap
    lower = round_up(slots + first.bytes, GRANULE)
    apart = round_up(first.bytes, GRANULE)
    places = [(slots, bitmaps)]
    for level in range(1, levels + 1):
        places.append((lower + (level - 1) * apart, bitmaps + level * first.bitmap))
    begin, each = places[levels][0], round_up(front_of(first).bytes, GRANULE)
    for front in range(1, levels + 1):
        places.append((begin + front * each, front_bitmaps + front * front_of(first).bitmap))
    return places


def granules_of(first: Geometry, levels: int) -> int:
    """Of the run."""
    return places_of(first, levels)[-1][0] // GRANULE


def level_of(priority: int, levels: int) -> int:
    """AMQP 0-10's mapping, counted from the most important level."""
    least = 5 - (levels + 1) // 2
    return levels - 1 - min(max(priority - least, 0), levels - 1)


def levels_fault(image: Image, page: int) -> str | None:
    """The fault in the levels of a queue, if there is one."""
    levels, rings = image.u32(page + QUEUE["levels"]), image.u64(page + QUEUE["level_rings"])
    first = geometry_at(image, page + QUEUE["ring"])
    fault = geometry_fault(image, first)
    if fault is not None or not 1 <= levels <= LEVELS:
        return fault or f"{levels} levels"
    granules, places = granules_of(first, levels), places_of(first, levels)
    if not image.holds(first.run, granules * GRANULE, GRANULE):
        return f"a run at 0x{first.run:x} that does not lie in the data"
    if first.run_granules != granules:
        return f"a run of {first.run_granules} granules, not {granules}"
    if (first.slots - first.run, first.carried - first.run) != places[0]:
        return f"slots at 0x{first.slots:x} and carried bits at 0x{first.carried:x} of a run at 0x{first.run:x}"
    if rings != first.run + TICKETS * TICKET.bytes:
        return f"{levels} levels, and the rings of the others at 0x{rings:x}"
    for level in range(1, 2 * levels):
        found = geometry_at(image, rings + (level - 1) * RING.bytes)
        kind, shift = (BACK, first.shift) if level < levels else (FRONT, front_of(first).shift)
        fault = geometry_fault(image, found, kind)
        same = (found.shift, found.slot_size, found.run, found.run_granules) == (shift, first.slot_size, 0, 0)
        if fault is not None or (found.slots - first.run, found.carried - first.run) != places[level] or not same:
            title = f"level {level % levels}" + (" front" if kind == FRONT else "")
            return f"{title}: {fault or f'a ring of other slots, at 0x{found.slots:x}'}"
    return None


def queue_of(image: Image, entry: Entry) -> Queue:
    """Only if levels_fault finds nothing."""
    levels, rings = image.u32(entry.page + QUEUE["levels"]), image.u64(entry.page + QUEUE["level_rings"])
    places = [entry.page + QUEUE["ring"], *(rings + level * RING.bytes for level in range(2 * levels - 1))]
    found = [Ring(image, entry, at, i % levels, levels, places[i % levels]) for i, at in enumerate(places)]
    return Queue(image, entry, found)


def queues_of(image: Image) -> list[Queue]:
    """All that are there, those whose levels make no sense left out."""
    entries = [entry for entry in image.entries if image.is_page(entry.page)]
    return [queue_of(image, entry) for entry in entries if levels_fault(image, entry.page) is None]


def rings_of(queues: list[Queue]) -> list[Ring]:
    return [ring for queue in queues for ring in queue.rings]
