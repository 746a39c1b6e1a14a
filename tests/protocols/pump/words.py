"""The state that processes of the pump's model share: slot words, rings, and a level's flow word, `low` and rows."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")
# A process yields before each access to something shared: False, or True where it sleeps until somebody wakes it.
Steps = Generator[bool, None, Result]
STEP, ASLEEP = False, True

FREE, CLAIMED, AVAILABLE, HELD, OFFERED, ACQUIRED, QUARANTINED, MOVING = range(8)
ENTRIES = (AVAILABLE, HELD, OFFERED, ACQUIRED, MOVING)
NOBODY = 0
NOTHING = -1
ENDLESS = 10**9


class Fault(Exception):
    """A promise of the protocol was broken."""


class Word(NamedTuple):
    """A slot's word, as on the page of the ring; the owner is a process."""

    state: int
    lap: int
    owner: int = NOBODY
    tag: int = 0
    carried: bool = False


class Flow(NamedTuple):
    """A level's flow word. Open: no rows, takers look at both rings. Flowed: what lay below `p` has left the back."""

    flowed: bool
    p: int


NEVER = Flow(False, 0)


class Group(NamedTuple):
    """The owner word of a group."""

    version: int
    owner: int
    suspect: bool = False


class Refused(NamedTuple):
    """The lowest place where somebody was refused a group; level NOTHING: nobody was."""

    version: int
    level: int
    place: int


class Ring:
    """A ring of slots. The steps of head and cells are in `rewind.pml`; here a cell is written with its epoch."""

    def __init__(self, slots: int, level: int) -> None:
        self.slots = slots
        self.level = level
        self.words = [Word(FREE, 0)] * slots
        self.position = [NOTHING] * slots
        self.place = [NOTHING] * slots
        self.message = [NOTHING] * slots
        self.ordinal = [NOTHING] * slots  # of a front slot: how many rows were pulled, or fetched, with it
        self.fetched = [False] * slots
        self.is_next = [False] * slots  # fetched by one that wants all: no earlier row of its group was there
        self.writer = [NOBODY] * slots
        self.tail = 0
        self.head = (0, 0)
        self.released: list[int] = []

    @property
    def epoch(self) -> int:
        return len(self.released)

    def word(self, position: int) -> Word:
        return self.words[position % self.slots]

    def lap(self, position: int) -> int:
        return position // self.slots

    def swap(self, position: int, old: Word, new: Word) -> bool:
        """A compare-and-swap of a slot's word."""
        if self.words[position % self.slots] != old:
            return False
        self.words[position % self.slots] = new
        return True

    def free(self, position: int, old: Word) -> bool:
        return self.swap(position, old, Word(FREE, old.lap + 1, carried=old.carried))

    def help(self, tail: int) -> None:
        if self.tail == tail:
            self.tail = tail + 1

    def is_end(self, position: int, word: Word) -> bool:
        lap = self.lap(position)
        return word.lap < lap or (word.lap == lap and word.state == FREE)

    def is_here(self, position: int, word: Word) -> bool:
        lap = self.lap(position)
        if word.carried:
            return word.lap > lap and self.position[position % self.slots] == position
        return word.lap == lap

    def lowest_released(self, since: int, until: int | None = None) -> int:
        return min(self.released[since:until], default=ENDLESS)

    def write(self, position: int, message: int, place: int, writer: int, is_dead: set[int]) -> Steps[None]:
        """Fills a slot: in two steps, so that a reader can meet it half-written."""
        index = position % self.slots
        if self.writer[index] not in (NOBODY, writer) and self.writer[index] not in is_dead:
            raise Fault(f"two write slot {index}")
        self.writer[index] = writer
        self.message[index] = NOTHING
        yield STEP
        self.position[index] = position
        self.place[index] = place
        self.message[index] = message
        self.writer[index] = NOBODY

    def in_hands_or_before_head(self) -> set[int]:
        busy = (HELD, OFFERED, ACQUIRED)
        before = self.head[1]
        slots = range(self.slots)
        return {self.position[slot] for slot in slots if self.words[slot].state in busy or self.position[slot] < before}

    def has_room_behind(self, position: int) -> Steps[bool]:
        """Is a slot free behind the one in the way? Only then is that carried."""
        for ahead in range(position + 1, position + self.slots):
            yield STEP
            word = self.word(ahead)
            if word.lap == self.lap(ahead) and word.state == FREE:
                return True
            if word.lap < self.lap(ahead) and word.state not in ENTRIES and word.state != QUARANTINED:
                return False
        return False

    def rewind(self, position: int) -> Steps[None]:
        """R2 to R4 of the ring's page."""
        yield STEP
        epoch, head = self.head
        self.head = (epoch + 1, min(head, position))
        yield STEP
        self.released.append(position)


class Level:
    """The back ring, into which producers put; the front ring, into which the mover does; the rows between the two."""

    def __init__(self, number: int, back: int, front: int) -> None:
        self.number = number
        self.back = Ring(back, number)
        self.front = Ring(front, number)
        self.flow = NEVER
        self.low = 0
        self.rows: dict[int, int] = {}  # place -> message, on disk; those below `low`, and those from P on, are garbage
        # How many entries became rows, how many of these left again; and which P comes with which `flushed`.
        self.flushed = self.pulled = 0
        self.flushing = (NOTHING, 0)
        self.gone: set[int] = set()  # marks on disk: rows that were fetched
        self.fetched = 0  # how many were
        self.scattered = 0  # behind the front position of the last one that was fetched; 0: none is left there
        self.passed: set[int] = set()  # no word of the protocol: what was in somebody's hands, or not due, then

    @property
    def rings(self) -> tuple[Ring, Ring]:
        return self.back, self.front

    def is_starved(self) -> bool:
        """Rows come first, and each slot of the front is in somebody's hands: the bound on what is unsettled."""
        has_rows = self.flow.flowed and bool(self.live_rows())
        return has_rows and all(word.state != FREE for word in self.front.words)

    def fetched_slots(self) -> list[int]:
        """Slots of the front with entries that came in by themselves."""
        front = self.front
        return [slot for slot, word in enumerate(front.words) if front.fetched[slot] and word.state in ENTRIES]

    def most_fetched(self) -> int:
        return max(1, self.front.slots // 4)

    def live_rows(self) -> list[int]:
        return sorted(place for place in self.rows if self.low <= place < self.flow.p and place not in self.gone)
