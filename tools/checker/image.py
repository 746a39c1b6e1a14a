"""The bytes of one segment at one moment, and the way from the header to each of its parts.

Nothing here trusts the bytes: an offset is looked at before it is followed, and what leads nowhere is None.
"""

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy
from numpy.typing import NDArray

from checker.layout import (
    BLOCK,
    CLASS_BLOCKS,
    CLASS_BYTES,
    CLASS_GRANULES,
    CLASSES,
    COUNTERS,
    DIRECTORY,
    GRANULE,
    LINES_A_CHUNK,
    PAGE_BYTES,
    PROCESS,
    PROCESS_PAGE,
    PROCESS_ROWS,
    QUEUES,
    SEGMENT,
    SLAB,
    Regions,
    regions_of,
)
from checker.words import ENTRY_FREE, HEADERS

Words = NDArray[numpy.uint64]

NORESERVE: Final = 0x4000  # Linux; the module knows its name from Python 3.12 on


class Unreadable(Exception):
    """These bytes are no segment at all: there is nothing to judge."""


@dataclass(frozen=True)
class Process:
    """A row of the process table that may be in use."""

    row: int
    offset: int
    word: int
    pins: int

    @property
    def state(self) -> int:
        return self.word & 0xFF

    @property
    def generation(self) -> int:
        return self.word >> 32


@dataclass(frozen=True)
class Entry:
    """An entry of the queue directory that is not FREE."""

    index: int
    offset: int
    word: int
    page: int

    @property
    def state(self) -> int:
        return self.word & 0xFF

    @property
    def incarnation(self) -> int:
        return self.word >> 32


class Slab:
    """The words of the blocks of one slab."""

    def __init__(self, image: "Image", granule: int, size_class: int) -> None:
        self.granule = granule
        self.size_class = size_class
        self.size = CLASS_BYTES[size_class]
        self.blocks = CLASS_BLOCKS[size_class]
        self.granules = CLASS_GRANULES[size_class]
        self.headers = image.regions.slabs + granule * SLAB.bytes
        self.data = image.regions.data + granule * GRANULE
        pairs = image.words_at(self.headers + SLAB["block"], 2 * (SLAB.bytes - SLAB["block"]) // BLOCK.bytes)
        self.words: Words = pairs[0::2].copy()
        self.states: Words = pairs[1::2].copy()
        self.free: Words = image.words_at(self.headers + SLAB["free"], 4).copy()

    def index_of(self, offset: int) -> int | None:
        """The block that begins at this offset of the segment."""
        index, rest = divmod(offset - self.data, self.size)
        return index if rest == 0 and 0 <= index < self.blocks else None

    def offset_of(self, index: int) -> int:
        return self.data + index * self.size


class Image:
    """A segment's bytes; `data` is kept, not copied, and must not change while it is judged.

    Arguments:
        parts: where data may be that is not zero, begin and end of each; all of it, if nothing is said. A segment's
            file is far larger than its memory, so a copy is made of these alone.
    """

    def __init__(
        self,
        data: bytes | bytearray | memoryview | mmap.mmap | NDArray[numpy.uint8],
        parts: list[tuple[int, int]] | None = None,
    ) -> None:
        if isinstance(data, numpy.ndarray):
            self.bytes: NDArray[numpy.uint8] = numpy.ascontiguousarray(data).view(numpy.uint8).reshape(-1)
        else:
            self.bytes = numpy.frombuffer(data, dtype=numpy.uint8)
        self.size = len(self.bytes)
        self.parts = [(0, self.size)] if parts is None else parts
        regions = regions_of(self.size)
        if regions is None:
            raise Unreadable(f"no segment has {self.size} bytes")
        self.regions: Regions = regions
        self.data_end = regions.data + regions.granule_count * GRANULE
        self.longs: Words = self.bytes.view(numpy.uint64)
        self._longs = memoryview(self.longs.data)
        self._ints = memoryview(self.bytes.view(numpy.uint32).data)
        self._lines: dict[tuple[int, int], int | None] = {}

    @classmethod
    def of_file(cls, path: Path) -> "Image":
        """A copy of a file; the parts of it that have no memory yet are not touched, and get none here either."""
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if regions_of(size) is None:
                raise Unreadable(f"{path} is no segment: it has {size} bytes")
            copy = untouched(size)
            parts = list(extents(file.fileno(), size))
            for begin, end in parts:
                file.seek(begin)
                copy[begin:end] = file.read(end - begin)
        return cls(copy, parts)

    def copied(self) -> mmap.mmap:
        """The bytes in memory of their own, to be changed."""
        copy = untouched(self.size)
        for begin, end in self.parts:
            copy[begin:end] = self.raw(begin, end - begin)
        return copy

    def u64(self, offset: int) -> int:
        return self._longs[offset >> 3]

    def u32(self, offset: int) -> int:
        return self._ints[offset >> 2]

    def words_at(self, offset: int, count: int) -> Words:
        return self.longs[offset >> 3 : (offset >> 3) + count]

    def raw(self, offset: int, count: int) -> bytes:
        return self.bytes[offset : offset + count].tobytes()

    def holds(self, offset: int, count: int, unit: int) -> bool:
        """Do so many bytes at this offset lie in the data, at a multiple of `unit`?"""
        return offset % unit == 0 and self.regions.data <= offset <= self.size - count

    def is_page(self, offset: int) -> bool:
        return offset % PAGE_BYTES == 0 and self.regions.data <= offset <= self.data_end - PAGE_BYTES

    @cached_property
    def process_high(self) -> int:
        return min(self.u32(SEGMENT["process_high"]), PROCESS_ROWS)

    @cached_property
    def queue_high(self) -> int:
        return min(self.u32(SEGMENT["queue_high"]), QUEUES)

    @cached_property
    def processes(self) -> list[Process]:
        rows = []
        for row in range(self.process_high):
            offset = self.regions.processes + row * PROCESS.bytes
            rows.append(Process(row, offset, self.u64(offset), self.u64(offset + PROCESS["pins"])))
        return rows

    @cached_property
    def somebody_holds(self) -> bool:
        """Does any process, dead or alive, say that it has a message in hand?"""
        return any(self.u32(process.offset + PROCESS["unsettled"]) != 0 for process in self.processes)

    @cached_property
    def entries(self) -> list[Entry]:
        found = []
        for index in range(self.queue_high):
            offset = self.regions.directory + index * DIRECTORY.bytes
            word = self.u64(offset)
            if word & 0xFF != ENTRY_FREE:
                found.append(Entry(index, offset, word, self.u64(offset + DIRECTORY["page"])))
        return found

    @cached_property
    def granule_words(self) -> Words:
        return self.words_at(self.regions.granules, self.regions.granule_count)

    @cached_property
    def slabs(self) -> dict[int, Slab]:
        """By granule; those whose class makes sense."""
        found = {}
        for granule in numpy.flatnonzero(self.granule_words & HEADERS).tolist():
            class_word = self.u64(self.regions.slabs + granule * SLAB.bytes)
            if 1 <= class_word <= CLASSES and granule + CLASS_GRANULES[class_word - 1] <= self.regions.granule_count:
                found[granule] = Slab(self, granule, class_word - 1)
        return found

    def block_at(self, offset: int) -> tuple[Slab, int] | None:
        """Slab and number of the block that begins at this offset."""
        slab = self.slabs.get((offset - self.regions.data) // GRANULE)
        index = slab.index_of(offset) if slab is not None else None
        return (slab, index) if slab is not None and index is not None else None

    def line(self, process: Process, queue_index: int) -> int | None:
        """Offset of the process's counters on a queue."""
        key = process.row, queue_index
        if key not in self._lines:
            self._lines[key] = self._line(process, queue_index)
        return self._lines[key]

    def _line(self, process: Process, queue_index: int) -> int | None:
        if not self.is_page(process.pins):
            return None
        chunk = self.u64(process.pins + PROCESS_PAGE["chunks"] + queue_index // LINES_A_CHUNK * 8)
        return chunk + queue_index % LINES_A_CHUNK * COUNTERS.bytes if self.is_page(chunk) else None

    def is_attached(self, row: int, queue_index: int, incarnation: int) -> bool:
        """Does this process say that it uses this queue? A reaper looks for what it left only where it does."""
        line = self.line(self.processes[row], queue_index) if row < self.process_high else None
        return line is not None and self.u64(line + COUNTERS["attached"]) == incarnation + 1


def untouched(size: int) -> mmap.mmap:
    """Zeros, which get memory when something else is written."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE)


def extents(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts of a sparse file that have memory."""
    end = 0
    while end < size:
        try:
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(descriptor, begin, os.SEEK_HOLE)
        yield begin, end
