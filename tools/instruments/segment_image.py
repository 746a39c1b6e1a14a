"""A segment's bytes as they were at a moment when nobody used it: to put back, and to find the words worth damaging."""

import errno
import os
import random
import struct
from pathlib import Path

from shmq.core import layout

PAGE = 8192
WORD = 8


class SegmentImage:
    """The content of a segment's file where it has memory, and the places of its words, by region.

    Arguments:
        path: of the segment's file; nobody may be a member while the image is taken or restored.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size
        self.extents = [(start, self._read(start, end)) for start, end in self._extents()]
        self.regions = self._regions()
        self.pages = [page for pages in self.regions.values() for page in pages]
        self.data = min(page[0] for page in self.regions["data"]) // PAGE * PAGE

    def _extents(self) -> list[tuple[int, int]]:
        found = []
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            end = 0
            while True:
                start = os.lseek(descriptor, end, os.SEEK_DATA)
                end = os.lseek(descriptor, start, os.SEEK_HOLE)
                found.append((start, end))
        except OSError as error:
            if error.errno != errno.ENXIO:  # no data behind here
                raise
        finally:
            os.close(descriptor)
        return found

    def _read(self, start: int, end: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    def restore(self) -> None:
        """The file as it was; what has got memory since loses it, as only zeros may come from what is not in use."""
        os.truncate(self.path, 0)
        with self.path.open("r+b", buffering=0) as file:
            file.truncate(self.size)
            for start, content in self.extents:
                file.seek(start)
                file.write(content)

    def _bounds(self) -> list[tuple[str, int, int]]:
        """Names and extents of the regions, as the header has them."""
        size, fields = layout.STRUCTS["segment"]
        places = {name: at for name, _, _, at in fields}
        names = ["processes", "directory", "granules", "class_bitmaps", "slabs", "data"]
        starts = [struct.unpack_from("<Q", self.extents[0][1], places[name])[0] for name in names]
        return [("header", 0, size), *zip(names, starts, [*starts[1:], self.size], strict=False)]

    def _regions(self) -> dict[str, list[list[int]]]:
        """For each region its pages, for each page the offsets of its words that are not zero."""
        bounds = self._bounds()
        regions: dict[str, list[list[int]]] = {name: [] for name, _, _ in bounds}
        for start, content in self.extents:
            for at in range(0, len(content), PAGE):
                words = struct.unpack_from(f"<{min(PAGE, len(content) - at) // WORD}Q", content, at)
                offsets = [start + at + WORD * number for number, word in enumerate(words) if word]
                for name, first, last in bounds:
                    inside = [offset for offset in offsets if first <= offset < last]
                    if inside:
                        regions[name].append(inside)
        return {name: pages for name, pages in regions.items() if pages}


def near(numbers: random.Random, value: int) -> int:
    """Another number that a check may take for a good one."""
    return (value + numbers.choice([-64, -8, -1, 1, 8, 64, 4096, 65536])) % (1 << 64)


class Damage:
    """Changes words of a segment at random, the same ones in the same order for the same numbers.

    Arguments:
        image: where words are that somebody uses.
        numbers: decides which word, and what becomes of it.
    """

    SHARES = (("header", 1), ("processes", 2), ("directory", 1), ("granules", 2), ("class_bitmaps", 1), ("slabs", 3))

    def __init__(self, image: SegmentImage, numbers: random.Random) -> None:
        self.image = image
        self.numbers = numbers
        self.shares = [(name, share) for name, share in (*self.SHARES, ("data", 14)) if name in image.regions]

    def place(self) -> int:
        """A word that was in use, or one beside it."""
        numbers = self.numbers
        names, shares = zip(*self.shares, strict=True)
        page = numbers.choice(self.image.regions[numbers.choices(names, shares)[0]])
        at = numbers.choice(page)
        if numbers.random() < 0.15:
            at += WORD * numbers.randrange(-8, 9)
        return self._inside(at)

    def _inside(self, at: int) -> int:
        return min(max(at, 0), self.image.size - WORD)

    def sibling(self, at: int) -> int:
        """A word that may mean the same of something else: of another queue, row, entry or slot."""
        numbers = self.numbers
        if numbers.random() < 0.5:
            return self._inside(at + numbers.choice((-1, 1)) * numbers.choice((16, 64, 128, 192, 640, 4096)))
        page = numbers.choice(self.image.regions["data"] if at >= self.image.data else self.image.pages)
        return self._inside(page[0] // PAGE * PAGE + at % PAGE)

    def strike(self, memory: memoryview) -> tuple[int, int, int]:
        """Damages one word; answers where, what was there, and what is."""
        numbers = self.numbers
        at = self.place()
        before = int.from_bytes(memory[at : at + WORD], "little")
        kind = numbers.random()
        if kind < 0.55:
            after = before ^ (1 << numbers.randrange(64))
        elif kind < 0.7:
            after = numbers.getrandbits(64)
        elif kind < 0.85:
            after = near(numbers, before)
        else:
            other = self.place() if numbers.random() < 0.3 else self.sibling(at)
            after = int.from_bytes(memory[other : other + WORD], "little")
        memory[at : at + WORD] = after.to_bytes(WORD, "little")
        return at, before, after
