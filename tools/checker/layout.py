"""Sizes and offsets of the shared structs, read from the page that documents them.

The page is the only source: what it does not say, nobody who reads the segment from its documentation could know.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "memory-layout.md"

SECTION = re.compile(r"^## (\w+)\n\n`shmq_\w+` of `[\w.]+`, (\d+) bytes\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (\d+) \| (\d*) \| `([^`]+)` \|", re.MULTILINE)
FINGERPRINT = re.compile(r"fingerprint of this layout is\s+`(0x[0-9A-Fa-f]{16})`")


class Undocumented(Exception):
    """The page does not say what a reader of segments has to know."""


class Struct(dict[str, int]):
    """One struct: its bytes, and where each field begins."""

    def __init__(self, size: int, offsets: Mapping[str, int]) -> None:
        super().__init__(offsets)
        self.bytes: Final = size


def read(page: str) -> dict[str, Struct]:
    structs = {
        name: Struct(int(size), {field: int(offset) for offset, _, field in ROW.findall(rows)})
        for name, size, rows in SECTION.findall(page)
    }
    missing = {"segment", "directory", "process", "pin", "counters", "process_page", "queue", "ring"} - set(structs)
    missing |= {"settings", "sleepers", "consumer", "slot", "cold", "block", "slab", "ticket", "group"} - set(structs)
    if missing:
        raise Undocumented(f"{PAGE.name} has no byte map of {', '.join(sorted(missing))}")
    return structs


def read_fingerprint(page: str) -> int:
    match = FINGERPRINT.search(page)
    if match is None:
        raise Undocumented(f"{PAGE.name} does not say the fingerprint")
    return int(match.group(1), 16)


_TEXT: Final = PAGE.read_text()
STRUCTS: Final = read(_TEXT)
FINGERPRINT_DOCUMENTED: Final = read_fingerprint(_TEXT)

SEGMENT: Final = STRUCTS["segment"]
DIRECTORY: Final = STRUCTS["directory"]
PROCESS: Final = STRUCTS["process"]
PIN: Final = STRUCTS["pin"]
COUNTERS: Final = STRUCTS["counters"]
PROCESS_PAGE: Final = STRUCTS["process_page"]
QUEUE: Final = STRUCTS["queue"]
SETTINGS: Final = STRUCTS["settings"]
RING: Final = STRUCTS["ring"]
SLEEPERS: Final = STRUCTS["sleepers"]
GROUP: Final = STRUCTS["group"]
CONSUMER: Final = STRUCTS["consumer"]
SLOT: Final = STRUCTS["slot"]
COLD: Final = STRUCTS["cold"]
BLOCK: Final = STRUCTS["block"]
SLAB: Final = STRUCTS["slab"]
TICKET: Final = STRUCTS["ticket"]

GRANULE: Final = 65536
PAGE_BYTES: Final = 8192
PROCESS_ROWS: Final = 1024
QUEUES: Final = 4096
CONSUMER_ROWS: Final = 1088
ROWS_A_CHUNK: Final = 64
TARGETS: Final = 16
TICKETS: Final = 256
LINES_A_CHUNK: Final = 64
PINS: Final = 256
CELLS: Final = 64
GROUPS: Final = 256
GROUPS_MORE: Final = 65536
SLAB_BLOCKS: Final = 248
CLASSES: Final = 43


def class_sizes() -> tuple[int, ...]:
    """Bytes of a block of each class: 2^k and 1.5 * 2^k, but where a granule could not be divided well."""
    small = [256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 21760, 32768, 65536]
    large = [granules * GRANULE for k in range(1, 14) for granules in (1 << k, 3 << (k - 1))]
    return tuple(small + large + [GRANULE << 14])


CLASS_BYTES: Final = class_sizes()
CLASS_BLOCKS: Final = tuple(min(SLAB_BLOCKS, GRANULE // size) or 1 for size in CLASS_BYTES)
CLASS_GRANULES: Final = tuple(-(-size // GRANULE) for size in CLASS_BYTES)


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass(frozen=True)
class Regions:
    """Where the regions of a segment of a given size lie; follows from the size alone."""

    granule_count: int
    processes: int
    directory: int
    granules: int
    class_bitmaps: int
    class_bitmap_bytes: int
    slabs: int
    data: int


def place(granule_count: int) -> Regions:
    processes = SEGMENT.bytes
    directory = round_up(processes + PROCESS.bytes * PROCESS_ROWS, 4096)
    granules = round_up(directory + DIRECTORY.bytes * QUEUES, 4096)
    class_bitmaps = round_up(granules + 8 * granule_count, 4096)
    class_bitmap_bytes = round_up((granule_count + 7) // 8, 128)
    slabs = round_up(class_bitmaps + class_bitmap_bytes * CLASSES, 4096)
    data = round_up(slabs + SLAB.bytes * granule_count, GRANULE)
    return Regions(granule_count, processes, directory, granules, class_bitmaps, class_bitmap_bytes, slabs, data)


def regions_of(size: int) -> Regions | None:
    """The most granules that fit; None: no segment has this size."""
    if size % GRANULE or size < 8 << 20 or size > 256 << 30:
        return None
    count = size // GRANULE
    while place(count).data + count * GRANULE > size:
        over = place(count).data + count * GRANULE - size
        count -= max(1, over // (GRANULE + SLAB.bytes + 64))
    while place(count + 1).data + (count + 1) * GRANULE <= size:
        count += 1
    return place(count)
