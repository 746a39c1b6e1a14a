"""Producers, the reaper, one that purges, and one that keeps house."""

from __future__ import annotations

from tests.protocols.pump.groups import GroupTurner
from tests.protocols.pump.mover import Mover
from tests.protocols.pump.process import Held, Holder
from tests.protocols.pump.words import (
    ACQUIRED,
    AVAILABLE,
    CLAIMED,
    ENTRIES,
    FREE,
    HELD,
    NOBODY,
    OFFERED,
    QUARANTINED,
    STEP,
    Level,
    Ring,
    Steps,
    Word,
)

PLACED, FULL, HOLE = range(3)


class Producer(Mover):
    """Knows the back ring only; where that has no room it takes a turn as mover."""

    def run(self, messages: list[int]) -> Steps[None]:
        for message in messages:
            yield from self.put(self.queue.chance.choice(self.queue.levels), message, 40)

    def put(self, level: Level, message: int, tries: int) -> Steps[bool]:
        self.judge.begins(message, level.number)
        if self.happens(self.queue.delays):
            self.judge.due[message] = self.judge.clock + self.queue.chance.choice((30, 300))
        while tries > 0:
            result = yield from self.try_put(level, message)
            if result == PLACED:
                self.judge.returns(message)
                self.judge.appears(message, self.number)
                self.queue.count("put")
                return True
            if result == FULL:
                self.queue.count("full")
                tries -= 1
                yield STEP
                yield from self.make_room(level, level.back.tail)
        return False

    def try_put(self, level: Level, message: int) -> Steps[int]:
        back = level.back
        while True:
            yield STEP
            tail = back.tail
            yield STEP
            word = back.word(tail)
            lap = back.lap(tail)
            if word.lap > lap or (word.lap == lap and word.state != FREE):
                back.help(tail)
            elif word.lap == lap:
                yield STEP
                if back.swap(tail, word, Word(CLAIMED, lap, self.number)):  # T1
                    yield STEP
                    back.help(tail)
                    return (yield from self.fill(level, tail, message))
            elif not (yield from self.clear_way(back, tail, word)):
                return FULL

    def fill(self, level: Level, position: int, message: int) -> Steps[int]:
        back = level.back
        yield from back.write(position, message, position, self.number, self.judge.dead)
        yield STEP
        self.judge.place[message] = position
        state = HELD if message in self.judge.due else AVAILABLE
        claim = Word(CLAIMED, back.lap(position), self.number)
        if back.swap(position, claim, claim._replace(state=state, owner=NOBODY)):  # T2
            self.judge.is_coming(message, self.number)
            yield from self.notify()
            if self.happens(self.queue.crossing):
                yield from self.make_room(level, position)
            return PLACED
        while True:
            yield STEP
            word = back.word(position)
            if word.state != QUARANTINED or word.owner != self.number or back.free(position, word):  # T6
                return HOLE

    def clear_way(self, back: Ring, tail: int, word: Word) -> Steps[bool]:
        """False: the ring is full."""
        if word.state in (CLAIMED, QUARANTINED) and self.clear_claim(back, tail, word):
            return True
        if (yield from back.has_room_behind(tail)):
            yield STEP
            if word.state in ENTRIES:
                moved = word._replace(lap=back.lap(tail), carried=True)
                self.queue.count("carried", back.swap(tail, word, moved))  # T17
            elif word.state == QUARANTINED:
                back.swap(tail, word, word._replace(lap=back.lap(tail)))  # T5
            return True
        for index in range(back.slots):
            yield STEP
            claim = back.words[index]
            if claim.state == CLAIMED and self.is_dead(claim.owner):
                back.swap(index, claim, Word(FREE, claim.lap + 1))
        return False


class Reaper(GroupTurner):
    """Settles the affairs of one dead process."""

    def run(self, dead: int) -> Steps[None]:
        for level in self.queue.levels:
            for ring in level.rings:
                for index in range(ring.slots):
                    yield from self.free_slot(ring, index, dead)
                # That process may have died before it turned the ring back.
                yield from ring.rewind(0)
        for group in range(self.queue.groups):
            yield STEP
            if self.queue.owners[group].owner == dead:
                yield from self.give_back(group, dead)
            else:
                yield from self.turn_back(group)
        self.judge.buried(dead)
        self.queue.progress.pop(dead, None)
        self.queue.idle.discard(dead)
        # The dead may have taken down an idle bit, and not woken that sleeper.
        self.queue.awake |= self.queue.sleepers - self.queue.idle
        yield from self.notify()

    def free_slot(self, ring: Ring, index: int, dead: int) -> Steps[None]:
        while True:
            yield STEP
            word = ring.words[index]
            if word.owner != dead or word.state not in (CLAIMED, QUARANTINED, OFFERED, ACQUIRED):
                return
            if word.state in (CLAIMED, QUARANTINED):
                new = Word(FREE, word.lap + 1, carried=word.carried)
            else:
                new = word._replace(state=AVAILABLE, owner=NOBODY)
            if ring.swap(index, word, new):
                if word.state == ACQUIRED:
                    self.judge.is_coming(ring.message[index], dead)
                return


class PurgeCaller(Mover, Holder):
    """Settles what nobody holds: in the rings word by word, the rows by one store."""

    def run(self, times: int) -> Steps[None]:
        for _ in range(times):
            level = self.queue.chance.choice(self.queue.levels)
            for ring in level.rings:
                for index in range(ring.slots):
                    yield STEP
                    word = ring.words[index]
                    seized = Word(ACQUIRED, word.lap, self.number, word.tag + 1, word.carried)
                    if word.state == AVAILABLE and ring.swap(index, word, seized):  # T13
                        message = ring.message[index]
                        self.judge.is_coming(message, self.number)
                        self.judge.since.pop(message, None)
                        self.judge.holder[message] = self.number
                        self.queue.count("purged")
                        yield from self.settle(Held(level, ring, ring.position[index], seized.tag, message))
            yield from self.purge(level)


class Housekeeper(GroupTurner):
    """Takes turns at any time: each of them must be harmless."""

    def run(self, times: int) -> Steps[None]:
        for _ in range(times):
            level = self.queue.chance.choice(self.queue.levels)
            yield STEP
            if self.queue.groups and self.happens(0.5):
                yield from self.recheck(self.queue.chance.randrange(self.queue.groups))
            elif self.happens(0.5) and not self.queue.progress:  # but for them, who brings takes, and passes the baton
                yield from self.bring(level)
            else:
                tail = level.back.tail
                yield from self.make_room(level, self.queue.chance.randint(max(0, tail - level.back.slots), tail))
