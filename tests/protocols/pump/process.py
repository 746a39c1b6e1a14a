"""A process of the pump's model: its number, the queue, and the steps that several kinds of process take."""

from __future__ import annotations

import random

from tests.protocols.pump.judge import Judge
from tests.protocols.pump.words import (
    ACQUIRED,
    AVAILABLE,
    CLAIMED,
    FREE,
    HELD,
    NOBODY,
    NOTHING,
    QUARANTINED,
    STEP,
    Fault,
    Group,
    Level,
    Refused,
    Ring,
    Steps,
    Word,
)

NOBODYS = Group(0, NOBODY)
NOT_REFUSED = Refused(0, NOTHING, NOTHING)
STARVED_TOO = 10**6  # in what a searcher publishes: it counts chances, too


class Queue:
    """One queue: its levels, the mover's lock, the idle bits; and how this schedule is biased."""

    def __init__(self, chance: random.Random, fault: str, levels: list[Level], groups: int = 0) -> None:
        self.chance = chance
        self.fault = fault
        self.levels = levels
        self.judge = Judge(groups)
        self.lock = NOBODY
        self.unfinished = False  # a turn was begun, and not ended
        self.missed = False
        self.idle: set[int] = set()
        self.awake: set[int] = set()
        self.sleepers: set[int] = set()
        self.asleep: set[int] = set()
        self.failing = 0.0  # how often a commit fails
        self.crossing = 0.0  # how often a put crosses the limit of memory
        self.oldest_first = True  # a flow begins with the oldest
        self.handing = 0.0  # how often a mover hands over where it may
        self.delays = 0.0
        self.releasing = 0.25  # how often a consumer gives an entry back
        self.working = 0.0  # how often one works for ever
        self.leaving = 0.0  # how often a consumer gets no more
        self.patience = 0.05
        self.dawdling = 0.0  # how long processes stand where that matters most
        self.groups = groups
        self.owners = [NOBODYS] * groups
        self.refused = [NOT_REFUSED] * groups
        self.chances = 0
        self.progress: dict[
            int, int
        ] = {}  # of searchers that sleep: what they have looked at; NOTHING: not at all of it
        self.counts: dict[str, int] = {}

    def count(self, what: str, many: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + many

    def group_of(self, message: int) -> int:
        return message % self.groups if self.groups else NOTHING

    def version(self) -> int:
        """Grows with whatever may give a taker work."""
        rings = [ring for level in self.levels for ring in level.rings]
        return sum(ring.tail + ring.head[0] for ring in rings)

    def is_locked(self) -> bool:
        return self.lock != NOBODY and self.lock not in self.judge.dead


class Process:
    """Anything that takes steps."""

    def __init__(self, queue: Queue, number: int) -> None:
        self.queue = queue
        self.judge = queue.judge
        self.number = number

    def happens(self, likely: float) -> bool:
        return likely > 0 and self.queue.chance.random() < likely

    def is_fault(self, name: str) -> bool:
        return self.queue.fault == name

    def is_dead(self, owner: int) -> bool:
        return owner in self.judge.dead

    def notify(self) -> Steps[None]:
        yield STEP
        if self.queue.progress:
            yield from self.notify_searchers()
        elif self.queue.idle:
            sleeper = self.queue.chance.choice(sorted(self.queue.idle))
            self.queue.idle.discard(sleeper)
            yield STEP
            self.queue.awake.add(sleeper)

    def notify_searchers(self) -> Steps[None]:
        """A searcher that has looked at all that there is need not be woken."""
        queue = self.queue
        for sleeper in queue.chance.sample(sorted(queue.idle), len(queue.idle)):
            yield STEP
            seen = queue.progress.get(sleeper, NOTHING)
            yield STEP
            now = queue.version() + (STARVED_TOO + queue.chances if seen >= STARVED_TOO else 0)
            if seen == now and not self.is_fault("no_progress"):
                continue
            yield STEP
            if sleeper in queue.idle:
                queue.idle.discard(sleeper)
                yield STEP
                queue.awake.add(sleeper)
                return

    def notify_starved(self) -> Steps[None]:
        """Starved takers may be able to get their entries now."""
        if self.queue.progress:
            yield STEP
        self.queue.chances += 1
        self.judge.last = self.judge.clock
        while self.queue.progress and self.happens(self.queue.dawdling):
            yield STEP
        yield from self.notify()

    def clear_claim(self, ring: Ring, position: int, word: Word) -> bool:
        """A claim or hole of a dead one is buried (T3, T6); a claim of a living one becomes a hole in time (T4)."""
        if word.owner == self.number:
            return False
        if self.is_dead(word.owner):
            return ring.swap(position, word, Word(FREE, word.lap + 1))
        if word.state == CLAIMED and self.happens(self.queue.patience):
            self.queue.count("holes")
            return ring.swap(position, word, word._replace(state=QUARANTINED))
        return False

    def end_hold(self, ring: Ring, position: int, word: Word) -> Steps[bool]:
        """T18, as a release. True: look again."""
        message = ring.message[position % ring.slots]
        yield STEP
        if self.judge.due.get(message, 0) > self.judge.clock:
            return False
        if ring.swap(position, word, word._replace(state=AVAILABLE)):
            self.judge.is_coming(message, self.number)
            self.judge.due.pop(message, None)
            yield from ring.rewind(position)
            self.judge.appears(message, self.number)
            yield from self.notify()
        return True


class Held:
    """An entry in a process's hands."""

    def __init__(self, level: Level, ring: Ring, position: int, tag: int, message: int, group: int = NOTHING) -> None:
        self.level = level
        self.ring = ring
        self.position = position
        self.tag = tag
        self.message = message
        self.group = group


class Holder(Process):
    """A process that settles and releases what it holds."""

    def own_word(self, held: Held) -> Word:
        word = held.ring.word(held.position)
        is_own = word.state == ACQUIRED and word.owner == self.number and word.tag == held.tag
        if not is_own or held.ring.position[held.position % held.ring.slots] != held.position:
            raise Fault(f"{self.number} lost what it holds: {word}")
        return word

    def settle(self, held: Held) -> Steps[None]:
        """T14. Where rows wait, whoever frees a slot of the front says so."""
        while True:
            yield STEP
            if held.ring.free(held.position, self.own_word(held)):
                break
        self.judge.settles(held.message)
        yield STEP
        if held.ring is held.level.front and held.level.flow.flowed and not self.is_fault("settle_quiet"):
            if self.is_fault("no_chance"):
                yield from self.notify()
            else:
                yield from self.notify_starved()

    def release(self, held: Held, delay: int = 0) -> Steps[None]:
        """T15, then R2 to R5."""
        if delay:
            self.judge.due[held.message] = self.judge.clock + delay
        while True:
            yield STEP
            word = self.own_word(held)
            if held.ring.swap(held.position, word, word._replace(state=HELD if delay else AVAILABLE, owner=NOBODY)):
                break
        self.judge.is_coming(held.message, self.number)
        if delay:
            return
        yield from held.ring.rewind(held.position)
        self.judge.appears(held.message, self.number)
        yield from self.notify()
