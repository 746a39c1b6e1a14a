"""Numbers that outlive a killed child: one page of shared memory, a slot for each writer."""

import mmap
import struct


class Board:
    """Unsigned 64-bit numbers, zero at first, shared with all children that are forked later. One writer each."""

    def __init__(self, slots: int) -> None:
        self._map = mmap.mmap(-1, max(slots * 8, 8))
        self.slots = slots

    def __getitem__(self, slot: int) -> int:
        return int(struct.unpack_from("<Q", self._map, slot * 8)[0])

    def __setitem__(self, slot: int, value: int) -> None:
        struct.pack_into("<Q", self._map, slot * 8, value)

    def add(self, slot: int, change: int = 1) -> None:
        """Not atomic: for the slot's one writer."""
        self[slot] += change

    def total(self) -> int:
        return sum(self[slot] for slot in range(self.slots))
