"""Takers: the walk over one ring, the choice between two, the offer and the second look; and consumers that sleep."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.protocols.pump.mover import BUSY, STARVED, Mover
from tests.protocols.pump.process import Held, Holder, Queue
from tests.protocols.pump.words import (
    ACQUIRED,
    ASLEEP,
    AVAILABLE,
    CLAIMED,
    ENDLESS,
    FREE,
    HELD,
    NEVER,
    NOBODY,
    NOTHING,
    OFFERED,
    QUARANTINED,
    STEP,
    Fault,
    Flow,
    Level,
    Ring,
    Steps,
    Word,
)

# The ends of a look at a level other than an offer, and of a get.
END, AT_CLAIM, AT_LOCK, WITHOUT_FRONT, AGAIN = "end", "at a claim", "at the lock", "without a front slot", "again"
NO_HEAD = (NOTHING, NOTHING)
ASLEEP_AFTER = (END, AT_LOCK, WITHOUT_FRONT)


class Found(NamedTuple):
    """The place where a walk ended: an entry, a claim, or (state FREE) nothing."""

    ring: Ring
    position: int
    place: int
    word: Word
    head: tuple[int, int]  # of one with cursors: NOTHING, and the epoch of its look
    is_scattered: bool = False  # its position says nothing of its place

    @property
    def is_entry(self) -> bool:
        return self.word.state in (AVAILABLE, OFFERED)


class Seen(NamedTuple):
    """The words that a look went by: it counts only if none of them has changed behind it."""

    back: int
    front: int
    flow: Flow


class Offer(NamedTuple):
    level: Level
    ring: Ring
    position: int
    tag: int
    head: tuple[int, int]
    group: int = NOTHING
    overtakes: bool = False  # what lies before it on disk has no slot
    wrong: str = ""  # what would make the get a fault, if it is one


class End(NamedTuple):
    """Nothing to be had in this level, and by what that was seen."""

    level: Level
    seen: Seen
    position: int


class Taker(Mover, Holder):
    """One that gets entries, settles them, or gives them back."""

    has_path = False  # it wants some only, and leaves the heads alone

    def __init__(self, queue: Queue, number: int) -> None:
        super().__init__(queue, number)
        self.knows_flow: set[int] = set()  # levels that this process has seen flow
        self.held: list[Held] = []

    def wants(self, message: int) -> bool:
        return True

    def walk(self, ring: Ring, limit: int) -> Steps[Found]:
        yield STEP
        head = ring.head
        position = head[1]
        while position < limit:
            yield STEP
            word = ring.word(position)
            if ring.is_end(position, word):
                break
            if ring.is_here(position, word):
                if word.state in (CLAIMED, QUARANTINED) and self.clear_claim(ring, position, word):
                    continue
                if word.state == HELD and (yield from self.end_hold(ring, position, word)):
                    continue
                is_unwanted = word.state != CLAIMED and not self.wants(ring.message[position % ring.slots])
                if word.state in (CLAIMED, AVAILABLE, OFFERED) and not is_unwanted:
                    yield STEP
                    while self.happens(self.queue.dawdling):
                        yield STEP
                    place = ring.place[position % ring.slots] if word.state != CLAIMED else position
                    yield STEP
                    if ring.word(position) != word and not self.is_fault("one_look"):
                        continue
                    return Found(ring, position, place, word, head)
            position += 1
        if position > head[1] and not self.has_path:
            yield STEP
            if ring.head == head:
                ring.head = (head[0], position)
        return Found(ring, position, ENDLESS, Word(FREE, 0), head)

    def look(self, level: Level) -> Steps[Offer | End | str]:
        """Offers itself the first entry of a level."""
        if level.number not in self.knows_flow:
            return (yield from self.look_plainly(level))
        yield STEP
        back = level.back.epoch
        yield STEP
        front = level.front.epoch
        yield STEP
        seen = Seen(back, front, level.flow)
        yield STEP
        # An entry at or above `low` is not to be had: rows may come before it.
        low = level.low if seen.flow.flowed else ENDLESS
        in_back = yield from self.walk(level.back, ENDLESS if self.is_fault("no_low") else low)
        in_front = yield from self.look_in_front(level, low)
        if in_front.place >= low and not self.is_fault("front_early"):
            in_front = in_front._replace(place=ENDLESS)
        first = in_front if in_front.place < in_back.place else in_back
        if first.word.state == CLAIMED:
            return AT_CLAIM
        if not first.is_entry and not seen.flow.flowed:
            return (yield from self.end(level, seen, in_back.position))
        if not first.is_entry:
            return (yield from self.look_at_rows(level))
        return (yield from self.offer(level, first, seen))

    def look_at_rows(self, level: Level) -> Steps[Offer | End | str]:
        """Nothing lies below them."""
        turn = yield from self.bring(level)
        return AT_LOCK if turn == BUSY else WITHOUT_FRONT if turn == STARVED else AGAIN

    def look_in_front(self, level: Level, limit: int) -> Steps[Found]:
        if not level.scattered or self.is_fault("by_position"):
            return (yield from self.walk(level.front, ENDLESS))
        found = None
        while found is None:
            found = yield from self.scan(level.front, limit)
        return found

    def scan(self, front: Ring, limit: int) -> Steps[Found | None]:
        """All slots, for the lowest place. None: something has changed."""
        best = Found(front, 0, ENDLESS, Word(FREE, 0), NO_HEAD, is_scattered=True)
        for index in range(front.slots):
            yield STEP
            word, position, place = front.words[index], front.position[index], front.place[index]
            if word.state == HELD and (yield from self.end_hold(front, position, word)):
                return None
            if word.state not in (AVAILABLE, OFFERED):
                continue
            if place < min(limit, best.place) and self.wants(front.message[index]):
                best = Found(front, position, place, word, NO_HEAD, is_scattered=True)
        return best

    def look_plainly(self, level: Level) -> Steps[Offer | End | str]:
        """The get of a queue that never flowed: one load of the flow word, behind the offer."""
        yield STEP
        seen = Seen(level.back.epoch, 0, NEVER)
        first = yield from self.walk(level.back, ENDLESS)
        if first.word.state == CLAIMED:
            return AT_CLAIM
        if not first.is_entry:
            return (yield from self.end(level, seen, first.position))
        return (yield from self.offer(level, first, seen))

    def end(self, level: Level, seen: Seen, position: int) -> Steps[End | str]:
        """Nothing is looked at twice, too."""
        if self.is_fault("empty_once") or (yield from self.is_as_seen(level, seen)):
            return End(level, seen, position)
        return AGAIN

    def is_as_seen(self, level: Level, seen: Seen, first: Found | None = None) -> Steps[bool]:
        """Has nothing changed that this look went by? First the flow word, then the epochs.

        The other way round a flow that began and ended between the two would be missed, and with it what was moving.
        """
        if self.is_fault("flow_last"):
            return (yield from self.has_no_release(level, seen, first)) and (yield from self.has_flow(level, seen))
        return (yield from self.has_flow(level, seen)) and (yield from self.has_no_release(level, seen, first))

    def has_flow(self, level: Level, seen: Seen) -> Steps[bool]:
        yield STEP
        if level.flow != NEVER:
            self.knows_flow.add(level.number)
        return level.flow == seen.flow or self.is_fault("no_plain_look" if seen.flow == NEVER else "no_flow_look")

    def has_no_release(self, level: Level, seen: Seen, first: Found | None) -> Steps[bool]:
        """A release behind the first entry does not matter."""
        yield STEP
        released = level.back.lowest_released(seen.back)
        if released < (first.place if first else ENDLESS) and not self.is_fault("no_back_epoch"):
            return False
        if seen.flow == NEVER or self.is_fault("no_front_epoch"):
            return True
        yield STEP
        released = level.front.lowest_released(seen.front)
        is_in_order = first is not None and first.ring is level.front and not first.is_scattered
        return released >= (first.position if first and is_in_order else ENDLESS)

    def offer(self, level: Level, first: Found, seen: Seen) -> Steps[Offer | str]:
        """T9, and the second look. T11 where that fails."""
        ring, position, word, head = first.ring, first.position, first.word, first.head
        offered = Word(OFFERED, word.lap, self.number, word.tag + 1, word.carried)
        yield STEP
        if not ring.swap(position, word, offered):
            return AGAIN
        offer = Offer(level, ring, position, offered.tag, head)
        if (yield from self.is_as_seen(level, seen, first)):
            return offer  # the get happened in this look
        yield from self.withdraw(offer)
        return AGAIN

    def own_offer(self, offer: Offer) -> Word | None:
        ring, position = offer.ring, offer.position
        word = ring.word(position)
        is_own = word.state == OFFERED and word.owner == self.number and word.tag == offer.tag
        return word if is_own and ring.position[position % ring.slots] == position else None

    def withdraw(self, offer: Offer) -> Steps[None]:
        self.queue.count("withdrawn")
        while True:
            yield STEP
            word = self.own_offer(offer)
            if word is None:
                break
            if offer.ring.swap(offer.position, word, word._replace(state=AVAILABLE, owner=NOBODY)):
                yield from self.end_offer(offer)
                yield from self.notify()
                return
        yield from self.end_offer(offer)

    def end_offer(self, offer: Offer) -> Steps[None]:
        """Gives back what it took with the offer."""
        yield from ()

    def took(self, offer: Offer) -> None:
        """It has moved on in a path of its own."""

    def says_end(self) -> None:
        """It has looked at all that there is."""

    def could_have(self, began: int) -> Callable[[int], bool]:
        """The messages that a get which began then might have got."""
        return self.wants

    def take(self) -> Steps[str]:
        """One get: "" and an entry in hand, or why there is none."""
        for _ in range(6):
            if self.judge.has_due():
                yield from self.end_holds()
            began = self.judge.clock
            ends: list[End] = []
            for level in self.queue.levels:
                result = yield from self.look(level)
                if isinstance(result, End):
                    ends.append(result)
                    continue
                if isinstance(result, Offer):
                    result = yield from self.keep(result, ends, began)
                if result == AGAIN:
                    break
                return result
            else:
                self.queue.count("empty")
                self.says_end()
                self.judge.says_empty(began, self.could_have(began))
                return END
        return AGAIN

    def end_holds(self) -> Steps[None]:
        """The due word of a ring leads to entries that are held; heads do not: they have passed them."""
        for level in self.queue.levels:
            for ring in level.rings:
                for index in range(ring.slots):
                    yield STEP
                    word = ring.words[index]
                    if word.state == HELD:
                        yield from self.end_hold(ring, ring.position[index], word)

    def keep(self, offer: Offer, ends: list[End], began: int) -> Steps[str]:
        """Is there still nothing in the more important levels? Then T10."""
        for level, seen, position in ends if not self.is_fault("no_ends") else []:
            yield STEP
            is_end = level.back.is_end(position, level.back.word(position))
            if not is_end or not (yield from self.is_as_seen(level, seen)):
                yield from self.withdraw(offer)
                return AGAIN
        while True:
            yield STEP
            word = self.own_offer(offer)
            if word is None:
                yield from self.end_offer(offer)
                return AGAIN
            if offer.ring.swap(offer.position, word, word._replace(state=ACQUIRED)):
                break
        if offer.wrong:
            raise Fault(offer.wrong)
        self.took(offer)
        message = offer.ring.message[offer.position % offer.ring.slots]
        could_have = (lambda other: False) if offer.overtakes else self.could_have(began)
        self.judge.takes(message, self.number, began, could_have)
        self.held.append(Held(offer.level, offer.ring, offer.position, offer.tag, message, offer.group))
        self.queue.count("taken")
        yield STEP
        if offer.ring.head == offer.head and not self.has_path:
            offer.ring.head = (offer.head[0], offer.position + 1)
        if self.queue.idle:
            yield from self.notify()  # the baton, without a look at what follows
        return ""

    def give_up(self, likely_back: float) -> Steps[None]:
        held = self.held.pop(self.queue.chance.randrange(len(self.held)))
        if self.happens(likely_back):
            delay = self.queue.chance.choice((40, 200)) if self.happens(self.queue.delays) else 0
            yield from self.release(held, delay)
        else:
            yield from self.settle(held)
        yield from self.end_held(held)

    def end_held(self, held: Held) -> Steps[None]:
        """The same of what it had in hand."""
        yield from ()


class Consumer(Taker):
    """Gets a few times, holds up to three, then settles all."""

    def run(self, times: int) -> Steps[None]:
        queue = self.queue
        for _ in range(times):
            yield from self.take()
            while self.held and (len(self.held) > 2 or self.happens(0.4)):
                yield from self.give_up(queue.releasing)
        while self.held:
            yield from self.give_up(0)


class Sleeper(Taker):
    """Gets for ever, and sleeps behind its idle bit and a last look when there is nothing."""

    def run(self) -> Steps[None]:
        queue = self.queue
        while True:
            result = yield from self.take()
            if result:
                queue.awake.discard(self.number)
                queue.idle.add(self.number)
                yield STEP
                result = yield from self.take()
                if result in ASLEEP_AFTER:
                    queue.count("slept")
                    queue.asleep.add(self.number)
                    while self.number not in queue.awake:
                        yield ASLEEP
                    queue.asleep.discard(self.number)
                was_told = self.number not in queue.idle
                queue.idle.discard(self.number)
                if was_told and not result:
                    yield from self.notify()
            if self.held:
                for _ in range(queue.chance.choice((1, 1, 40))):
                    yield STEP
                is_endless = self.happens(queue.working)
                while is_endless:
                    yield ASLEEP
                yield from self.give_up(queue.releasing)
                if self.happens(queue.leaving):
                    return
