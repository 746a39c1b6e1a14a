"""Numbers that outlive a killed child: shared memory, a slot for each writer."""

import mmap


class Board:
    """Unsigned 64-bit numbers, zero at first, shared with all children that are forked later. One writer each.

    A number is written as a whole: a kill leaves the one before or the one after.
    """

    def __init__(self, slots: int) -> None:
        self._numbers = memoryview(mmap.mmap(-1, max(slots, 1) * 8)).cast("Q")
        self.slots = slots

    def __getitem__(self, slot: int) -> int:
        return self._numbers[slot]

    def __setitem__(self, slot: int, value: int) -> None:
        self._numbers[slot] = value

    def add(self, slot: int, change: int = 1) -> None:
        """Not atomic: for the slot's one writer."""
        self._numbers[slot] += change

    def total(self) -> int:
        return sum(self._numbers[: self.slots])
