"""The granule map against the roots: what is in use, and by whom.

A root becomes real after its memory is marked as used, and is taken away before the memory is marked as free. So a root
never names memory that the map calls free. The other direction holds while nobody is at work (`dirty` is 0).
"""

import numpy
from numpy.typing import NDArray

from checker.image import Image
from checker.layout import CLASSES, CONSUMER_ROWS, GRANULE, PROCESS_PAGE, QUEUE, ROWS_A_CHUNK, SEGMENT, SLAB
from checker.queue import Queue
from checker.violation import Findings
from checker.words import (
    BEGUN,
    BEGUN_SHIFT,
    GRANULE_FREE,
    GRANULE_INSIDE,
    GRANULE_PAGES,
    GRANULE_RING,
    GRANULE_SLAB,
    HEADERS,
    RESERVED,
)

NAMED = 0xFFFFFFFF00FF00FF  # kind, pages, length
KINDS = ("free", "pages", "ring", "slab", "inside")


class Map:
    """The map as it follows from the roots: kind, pages and length of each granule, and who has it."""

    def __init__(self, image: Image, findings: Findings) -> None:
        self.image = image
        self.findings = findings
        self.words: NDArray[numpy.uint64] = numpy.zeros(image.regions.granule_count, dtype=numpy.uint64)
        self.owners: dict[int, str] = {}
        self.needed: NDArray[numpy.int64] = numpy.full(len(self.words), GRANULE, dtype=numpy.int64)  # bytes, if in use

    def run(self, offset: int, granules: int, kind: int, owner: str) -> None:
        first = (offset - self.image.regions.data) // GRANULE
        taken = [g for g in range(first, first + granules) if self.words[g] != 0]
        if taken:
            text = f"granule {taken[0]} is {self.owners.get(taken[0], 'a page')}'s, too"
            self.findings.add("granule.twice", owner, text)
            return
        self.words[first : first + granules] = GRANULE_INSIDE
        self.words[first] = granules << 32 | kind
        self.owners[first] = owner

    def rings(self, queue: Queue) -> None:
        """A queue has room for all slots, and memory for those that are laid."""
        run = queue.rings[0].geometry.run
        self.run(run, queue.granules, GRANULE_RING, f"rings of {queue.title}")
        first = (run - self.image.regions.data) // GRANULE
        self.needed[first : first + queue.granules] = 0
        for ring in queue.rings:
            begin = ring.geometry.slots - run if ring is not queue.rings[0] else 0
            end = ring.geometry.slots - run + ring.geometry.laid_bytes
            for granule in range(begin // GRANULE, -(-end // GRANULE)):
                self.needed[first + granule] = min(GRANULE, end - granule * GRANULE)

    def page(self, offset: int, owner: str) -> None:
        granule, inside = divmod(offset - self.image.regions.data, GRANULE)
        page = inside // 8192
        word = int(self.words[granule])
        if word & 0xFF not in (GRANULE_FREE, GRANULE_PAGES) or word >> 16 & 1 << page:
            self.findings.add("granule.twice", owner, f"page {page} of granule {granule} is somebody else's, too")
            return
        self.words[granule] = 1 << 32 | (word >> 16 & 0xFF | 1 << page) << 16 | GRANULE_PAGES


def roots_of(image: Image, queues: list[Queue], findings: Findings) -> Map:
    found = Map(image, findings)
    for process in image.processes:
        if image.is_page(process.pins):
            owner = f"process row {process.row}"
            found.page(process.pins, owner)
            for chunk in image.words_at(process.pins + PROCESS_PAGE["chunks"], 64).tolist():
                if chunk != 0 and image.is_page(chunk):
                    found.page(chunk, f"counters of {owner}")
    for queue in queues:
        found.page(queue.page, queue.title)
        found.rings(queue)
        for ring in queue.rings:
            if ring.geometry.cold != 0:
                granules, owner = ring.geometry.cold_granules, f"cold records of {ring.title}"
                found.run(ring.geometry.cold, granules, GRANULE_RING, owner)
        for chunk in image.words_at(queue.page + QUEUE["chunks"], CONSUMER_ROWS // ROWS_A_CHUNK).tolist():
            if chunk != 0 and image.is_page(chunk):
                found.page(chunk, f"consumer rows of {queue.title}")
        for page in image.words_at(queue.page + QUEUE["selectors"], CONSUMER_ROWS // ROWS_A_CHUNK).tolist():
            if page != 0 and image.is_page(page):
                found.page(page, f"selectors of {queue.title}")
    for granule, slab in image.slabs.items():
        found.run(slab.data, slab.granules, GRANULE_SLAB, f"slab at granule {granule}")
    return found


def reserved_of(words: NDArray[numpy.uint64]) -> NDArray[numpy.int64]:
    """Bytes of each granule that were reserved."""
    begun = (words & BEGUN) >> numpy.uint64(BEGUN_SHIFT)
    return numpy.where(words & RESERVED != 0, GRANULE, begun * 4096).astype(numpy.int64)


def judge_granules(image: Image, queues: list[Queue], findings: Findings) -> None:
    words = image.granule_words
    both = (words & RESERVED != 0) & (words & BEGUN != 0)
    meaningless = numpy.count_nonzero(both | (words & 0xFF00C000 != 0))
    findings.expect(meaningless == 0, "granule.word", "granule map", "bits that mean nothing are set")
    for granule in (words & HEADERS).nonzero()[0].tolist():
        class_word = image.u64(image.regions.slabs + granule * SLAB.bytes)
        good = class_word == 0 or granule in image.slabs
        findings.expect(good, "block.class", f"slab at granule {granule}", f"class {class_word - 1} of {CLASSES}")
    roots = roots_of(image, queues, findings)
    expected = roots.words
    in_use = expected != 0
    unreserved = in_use & (reserved_of(words) < roots.needed)
    for granule in unreserved.nonzero()[0].tolist():
        findings.add("granule.reserved", f"granule {granule}", "in use, but its memory was never reserved")
    found = words & NAMED
    if image.u64(SEGMENT["dirty"]) == 0:
        different = found != expected
    else:
        # At work: what a root has is marked as used; more may be.
        pages_missing = expected & ~found & 0x00FF0000
        different = in_use & ((found & 0xFF != expected & 0xFF) | (pages_missing != 0))
    for granule in different.nonzero()[0].tolist():
        text = f"{describe(int(found[granule]))}; the roots say {describe(int(expected[granule]))}"
        findings.add("granule.map", f"granule {granule}", text)
    if image.u64(SEGMENT["dirty"]) == 0:
        judge_counts(image, findings)


def judge_counts(image: Image, findings: Findings) -> None:
    """The header's counts are those of the map."""
    words = image.granule_words
    kinds, lengths = words & 0xFF, words >> numpy.uint64(32)
    used, pages = kinds != GRANULE_FREE, kinds == GRANULE_PAGES
    counts = {
        "granules_used": numpy.count_nonzero(used),
        "granules_ready": numpy.count_nonzero(~used & (words & RESERVED != 0)),
        "granules_solid": int(lengths[kinds == GRANULE_SLAB].sum()) + numpy.count_nonzero(pages),
        "pages_free": sum(8 - (word >> 16 & 0xFF).bit_count() for word in words[pages].tolist()),
        "used_bytes": int(reserved_of(words)[used].sum()),
    }
    for field, value in counts.items():
        found = image.u64(SEGMENT[field]) if field == "used_bytes" else image.u32(SEGMENT[field])
        findings.expect(found == value, "granule.counts", "header", f"{field} is {found}, the map has {value}")


def describe(word: int) -> str:
    kind = word & 0xFF
    text = KINDS[kind] if kind < len(KINDS) else f"kind {kind}"
    if kind == GRANULE_PAGES:
        text += f" {word >> 16 & 0xFF:08b}"
    return text + (f" of {word >> 32}" if word >> 32 > 1 else "")
