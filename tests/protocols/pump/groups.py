"""Groups: whose one is, who was refused what, and who turns back for those who were."""

from __future__ import annotations

from tests.protocols.pump.mover import Mover
from tests.protocols.pump.words import (
    ACQUIRED,
    AVAILABLE,
    NEVER,
    NOBODY,
    NOTHING,
    OFFERED,
    STEP,
    Group,
    Refused,
    Ring,
    Steps,
)

OURS, BUSY, BEHIND = range(3)


class GroupTurner(Mover):
    """G3 to G5: what any process may do with a group."""

    def turn_back_to(self, refused: Refused) -> Steps[None]:
        """The back ring to the place, all of the front; of the less important levels the word says nothing."""
        for level in self.queue.levels[refused.level :]:
            yield from level.back.rewind(refused.place if level.number == refused.level else 0)
            if level.flow != NEVER and not self.is_fault("front_forgotten"):
                yield from level.front.rewind(0)

    def turn_back(self, group: int) -> Steps[None]:
        """G4."""
        queue = self.queue
        while True:
            yield STEP
            refused = queue.refused[group]
            if refused.level == NOTHING:
                if queue.owners[group].owner == NOBODY:
                    self.judge.is_free(group)
                return
            yield STEP
            if queue.owners[group].owner != NOBODY:
                return
            yield from self.turn_back_to(refused)
            yield STEP
            if queue.refused[group] == refused:
                queue.refused[group] = Refused(refused.version, NOTHING, NOTHING)
                yield from self.notify()

    def free_group(self, group: int, word: Group) -> Steps[bool]:
        """G3. False: the word has changed."""
        yield STEP
        if self.queue.owners[group] != word:
            return False
        self.queue.owners[group] = Group(word.version + 1, NOBODY)
        self.judge.is_given_up(group)
        yield from self.turn_back(group)
        return True

    def give_back(self, group: int, owner: int) -> Steps[None]:
        while True:
            yield STEP
            word = self.queue.owners[group]
            if word.owner != owner or (yield from self.free_group(group, word)):
                return

    def recheck(self, group: int) -> Steps[None]:
        """G5."""
        queue = self.queue
        yield STEP
        word = queue.owners[group]
        if word.owner == NOBODY:
            yield from self.turn_back(group)
            return
        yield STEP
        if queue.owners[group] != word:
            return
        queue.owners[group] = suspect = word._replace(suspect=True)
        for level in queue.levels:
            for ring in level.rings:
                for slot in range(ring.slots):
                    if not (yield from self.recall(ring, slot, group, word.owner)):
                        return
        for level in queue.levels:
            for ring in level.rings:
                yield from ring.rewind(0)
        if (yield from self.free_group(group, suspect)):
            queue.count("groups freed for others")

    def recall(self, ring: Ring, slot: int, group: int, owner: int) -> Steps[bool]:
        """Takes back an entry that is only offered. False: something of the group is in flight."""
        while True:
            yield STEP
            word = ring.words[slot]
            is_offered = word.state == OFFERED and word.owner == owner
            if self.queue.group_of(ring.message[slot]) != group or not (is_offered or word.state == ACQUIRED):
                return True
            if not is_offered:
                return False
            if ring.swap(ring.position[slot], word, word._replace(state=AVAILABLE, owner=NOBODY)):  # T11
                return True


class GroupTaker(GroupTurner):
    """G1 and G2: one that takes messages of groups. How many of each it has in hand is its own knowledge."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.in_hand: dict[int, int] = {}

    def may_be_ours(self, word: Group) -> bool:
        return word.owner in (NOBODY, self.number)

    def is_open(self, group: int, level: int, place: int) -> Steps[bool]:
        """G1: records the place of the level that is refused. A process that frees the group from there on sees it."""
        queue = self.queue
        yield STEP
        if self.may_be_ours(queue.owners[group]):
            return True
        yield STEP
        before = queue.refused[group]
        is_lower = before.level == NOTHING or (level, place) < (before.level, before.place)
        lowest = (level, place) if is_lower else (before.level, before.place)
        queue.refused[group] = Refused(before.version + 1, *lowest)
        queue.count("refused")
        yield STEP
        return self.may_be_ours(queue.owners[group])

    def own(self, group: int, level: int, place: int) -> Steps[int]:
        """G1, G2."""
        queue = self.queue
        while True:
            yield STEP
            word = queue.owners[group]
            if not self.may_be_ours(word):
                return BUSY
            yield STEP
            if queue.owners[group] == word:
                queue.owners[group] = Group(word.version + 1, self.number)
                break
        is_fresh = word.owner != self.number
        if is_fresh:
            self.judge.is_owned(group, self.number)
            yield STEP
            refused = queue.refused[group]
            if refused.level != NOTHING:
                yield from self.turn_back_to(refused)
                if (refused.level, refused.place) < (level, place):
                    queue.count("owned behind")
                    yield from self.give_back(group, self.number)
                    return BEHIND
        self.in_hand[group] = self.in_hand.get(group, 0) + 1
        return OURS

    def confirm(self, group: int) -> Steps[bool]:
        """The look at the owner behind the offer."""
        while True:
            yield STEP
            word = self.queue.owners[group]
            if word.owner != self.number:
                return False
            if not word.suspect:
                return True
            yield STEP
            if self.queue.owners[group] == word:
                self.queue.owners[group] = Group(word.version + 1, self.number)
                return True

    def leave_group(self, group: int) -> Steps[None]:
        """G3, if it was the last one."""
        self.in_hand[group] -= 1
        if self.in_hand[group] == 0:
            yield from self.give_back(group, self.number)
