"""Takers with cursors of their own: they want some messages only, or none of a group that another one has."""

from __future__ import annotations

from collections.abc import Callable

from tests.protocols.pump.groups import OURS, GroupTaker
from tests.protocols.pump.mover import BUSY, DONE, STARVED
from tests.protocols.pump.process import STARVED_TOO, Held, Queue
from tests.protocols.pump.taker import (
    AGAIN,
    ASLEEP_AFTER,
    AT_CLAIM,
    AT_LOCK,
    NO_HEAD,
    WITHOUT_FRONT,
    Consumer,
    End,
    Found,
    Offer,
    Seen,
    Taker,
)
from tests.protocols.pump.words import (
    ASLEEP,
    AVAILABLE,
    CLAIMED,
    ENDLESS,
    FREE,
    HELD,
    NEVER,
    NOTHING,
    OFFERED,
    QUARANTINED,
    STEP,
    Level,
    Ring,
    Steps,
    Word,
)


class Searcher(GroupTaker, Taker):
    """Finds what it wants among the rows, too. A choosy one wants those whose numbers are as odd as its own."""

    has_path = True

    def __init__(self, queue: Queue, number: int, is_choosy: bool) -> None:
        super().__init__(queue, number)
        self.is_choosy = is_choosy
        self.cursors: dict[Ring, tuple[int, int]] = {}  # position, and the epoch of the scan that ended there
        self.searches: dict[int, tuple[int, int]] = {}  # of a level: a place, and the epoch of its back ring
        self.passed: dict[int, dict[int, int]] = {}  # of a level, by group: where rows that were another's begin
        self.nothing_in: dict[Ring, int] = {}  # the version of a front in which nothing was to be had
        self.version = 0
        self.chances = 0
        self.seen = NOTHING  # what need not be looked at again

    def wants(self, message: int) -> bool:
        return not self.is_choosy or message % 2 == self.number % 2

    def could_have(self, began: int) -> Callable[[int], bool]:
        return lambda message: self.wants(message) and self.judge.was_open(message, self.number, began)

    def considers(self, level: int, message: int, place: int) -> Steps[bool]:
        if not self.wants(message):
            return False
        group = self.queue.group_of(message)
        return group == NOTHING or (yield from self.is_open(group, level, place))

    # ---- one ring

    def walk(self, ring: Ring, limit: int) -> Steps[Found]:
        """From where the last one ended, or from what was released since then."""
        yield STEP
        epoch = ring.epoch
        cursor, last = self.cursors.get(ring, (0, 0))
        position = min(cursor, ring.lowest_released(last, epoch))
        while True:
            yield STEP
            word = ring.word(position)
            if position >= limit or ring.is_end(position, word):
                break
            if ring.is_here(position, word):
                if word.state in (CLAIMED, QUARANTINED) and self.clear_claim(ring, position, word):
                    continue
                if word.state == HELD and (yield from self.end_hold(ring, position, word)):
                    continue
                place = position if word.state == CLAIMED else ring.place[position % ring.slots]
                message = ring.message[position % ring.slots]
                if word.state == CLAIMED:
                    return Found(ring, position, place, word, (NOTHING, epoch))
                if word.state in (AVAILABLE, OFFERED) and (yield from self.considers(ring.level, message, place)):
                    yield STEP
                    if ring.word(position) != word and not self.is_fault("one_look"):
                        continue
                    return Found(ring, position, place, word, (NOTHING, epoch))
            position += 1
        self.cursors[ring] = (position, epoch)
        return Found(ring, position, ENDLESS, Word(FREE, 0), (NOTHING, epoch))

    def look_in_front(self, level: Level, limit: int) -> Steps[Found]:
        if not level.scattered or self.is_fault("by_position"):
            return (yield from self.walk(level.front, ENDLESS))
        front = level.front
        while True:
            yield STEP
            epoch = front.epoch
            yield STEP
            version = epoch + front.tail
            nothing = Found(front, 0, ENDLESS, Word(FREE, 0), (NO_HEAD[0], epoch), is_scattered=True)
            if self.nothing_in.get(front, NOTHING) == version:
                return nothing
            found = yield from self.scan_all(front, limit, nothing)
            if found is None:
                continue
            best, is_above = found
            if self.is_fault("nothing_late"):
                version = front.epoch + front.tail
            if not best.is_entry and not is_above:
                self.nothing_in[front] = version
            return best

    def scan_all(self, front: Ring, limit: int, best: Found) -> Steps[tuple[Found, bool] | None]:
        """All slots, for the lowest place. None: something has changed."""
        is_above = False
        for slot in range(front.slots):
            yield STEP
            word, position, place = front.words[slot], front.position[slot], front.place[slot]
            if word.state == HELD and (yield from self.end_hold(front, position, word)):
                return None
            if word.state not in (AVAILABLE, OFFERED):
                continue
            is_above = is_above or place >= limit
            if place < min(limit, best.place) and (yield from self.considers(front.level, front.message[slot], place)):
                best = best._replace(position=position, place=place, word=word)
        return best, is_above

    # ---- a level

    def look(self, level: Level) -> Steps[Offer | End | str]:
        yield STEP
        self.chances = self.queue.chances
        yield STEP
        flow = level.flow
        if flow == NEVER:
            return (yield from self.look_plainly(level))
        self.knows_flow.add(level.number)
        yield STEP
        low = level.low if flow.flowed else ENDLESS
        in_back = yield from self.walk(level.back, low)
        in_front = yield from self.look_in_front(level, low)
        if in_front.place >= low and not self.is_fault("front_early"):
            in_front = in_front._replace(place=ENDLESS)
        first = in_front if in_front.place < in_back.place else in_back
        seen = Seen(in_back.head[1], in_front.head[1], flow)
        if first.place == ENDLESS and flow.flowed:
            return (yield from self.look_at_rows(level))
        if first.word.state == CLAIMED:
            return AT_CLAIM
        if not first.is_entry or first.place == ENDLESS:
            return (yield from self.end(level, seen, in_back.position))
        return (yield from self.offer(level, first, seen))

    def look_plainly(self, level: Level) -> Steps[Offer | End | str]:
        first = yield from self.walk(level.back, ENDLESS)
        if first.word.state == CLAIMED:
            return AT_CLAIM
        seen = Seen(first.head[1], 0, NEVER)
        if not first.is_entry:
            return (yield from self.end(level, seen, first.position))
        return (yield from self.offer(level, first, seen))

    def look_at_rows(self, level: Level) -> Steps[Offer | End | str]:
        """A taker that wants all but others' groups has them brought in order first, while there is room for that."""
        if not self.is_choosy:
            turn = yield from self.bring(level)
            if turn != STARVED or self.is_fault("in_order_only"):
                return AT_LOCK if turn == BUSY else WITHOUT_FRONT if turn == STARVED else AGAIN
        result: Offer | End | Seen | str = AT_LOCK
        if (yield from self.lock()):
            # As a whole: nothing is on its way then, and rows neither come nor go.
            result = yield from self.search(level)
            yield from self.unlock()
        if result in (AT_LOCK, WITHOUT_FRONT):
            self.seen = self.version + STARVED_TOO + self.chances
        if isinstance(result, Seen):
            return (yield from self.take_late(level, result))
        return result

    def search(self, level: Level) -> Steps[Offer | End | Seen | str]:
        while True:
            yield STEP
            flow = level.flow
            if not flow.flowed:
                return AGAIN
            in_back = yield from self.walk(level.back, ENDLESS)
            in_front = yield from self.look_in_front(level, ENDLESS)
            first = in_front if in_front.place < in_back.place else in_back
            seen = Seen(in_back.head[1], in_front.head[1], flow)
            turn = yield from self.search_rows(level, min(first.place, flow.p), seen.back)
            if turn == DONE:
                continue
            over = (yield from self.overtaking(level, in_back, in_front)) if turn == STARVED else None
            if over is not None:
                first = over
            elif turn == STARVED:
                return WITHOUT_FRONT
            if not level.live_rows():
                yield from self.pull(level)
                return AGAIN
            if first.word.state == CLAIMED:
                return AT_CLAIM
            if self.is_fault("search_unlocked"):
                return seen
            if not first.is_entry:
                return (yield from self.end(level, seen, in_back.position))
            result = yield from self.offer(level, first, seen)
            if isinstance(result, Offer):
                return result._replace(overtakes=over is not None)
            if result != AGAIN:
                return result

    def search_rows(self, level: Level, end: int, epoch: int) -> Steps[int | None]:
        """The first that it wants, below this place, comes in by itself. Those that were looked at once are passed."""
        began = self.judge.clock
        at, last = self.searches.get(level.number, (0, 0))
        if self.queue.groups and not self.is_fault("search_once"):
            at = min(at, level.back.lowest_released(last, epoch))
        at = max(at, level.low)
        passed = {group: max(place, level.low) for group, place in self.passed.get(level.number, {}).items()}
        passed = {group: place for group, place in passed.items() if place < at}
        self.passed[level.number] = passed
        for place in level.live_rows():
            if not at <= place < end:
                continue
            message = level.rows[place]
            group = self.queue.group_of(message)
            is_open = yield from self.considers(level.number, message, place)
            if not is_open and not (self.is_fault("fetch_blind") and self.wants(message)):
                if self.wants(message):
                    passed.setdefault(group, place)
                continue
            if group in passed and not self.is_fault("fetch_behind"):
                # It has become free since an earlier one was passed: that one is next.
                self.queue.count("searched again")
                self.searches[level.number] = (passed[group], last)
                return DONE
            before = [level.rows[row] for row in level.live_rows() if row < place]
            turn = yield from self.fetch(level, place, not self.is_choosy)
            if turn == DONE:
                self.judge.fetches(message, before, self.number, began, self.wants)
                self.searches[level.number] = (place + 1, epoch)
            return turn
        self.searches[level.number] = (max(at, end), epoch)
        return None

    def overtaking(self, level: Level, in_back: Found, in_front: Found) -> Steps[Found | None]:
        """Fetched entries that came back may have all slots: one goes first, or an earlier one of its group."""
        if in_front.place == ENDLESS or self.is_fault("no_overtaking"):
            return None
        front, back = level.front, level.back
        slot = in_front.position % front.slots
        if not front.is_next[slot] and not self.is_fault("overtake_any"):
            return None
        group = self.queue.group_of(front.message[slot])
        for index in range(back.slots if in_back.place < in_front.place and not self.is_fault("overtake_blind") else 0):
            yield STEP
            is_there = back.words[index].state in (AVAILABLE, OFFERED) and back.position[index] < in_front.place
            if is_there and self.queue.group_of(back.message[index]) == group:
                first = back.message[in_back.position % back.slots] if in_back.is_entry else None
                if first is None or self.queue.group_of(first) != group:
                    return None
                self.queue.count("overtook in memory")
                return in_back
        self.queue.count("overtook")
        return in_front

    def take_late(self, level: Level, seen: Seen) -> Steps[Offer | End | str]:
        """Takes an entry above the rows, when the lock has been left: a fault."""
        in_back = yield from self.walk(level.back, ENDLESS)
        if not in_back.is_entry:
            return AGAIN
        return (yield from self.offer(level, in_back, seen))

    # ---- the offer

    def offer(self, level: Level, first: Found, seen: Seen) -> Steps[Offer | str]:
        """G1 and G2, T9, then the second looks: the flow word, its own ring, the owner of the group, the other ring."""
        ring, position, place, word = first.ring, first.position, first.place, first.word
        message = ring.message[position % ring.slots]
        group = self.queue.group_of(message)
        if group != NOTHING and (yield from self.own(group, level.number, place)) != OURS:
            return AGAIN
        offered = Word(OFFERED, word.lap, self.number, word.tag + 1, word.carried)
        yield STEP
        if not ring.swap(position, word, offered):
            if group != NOTHING:
                yield from self.leave_group(group)
            return AGAIN
        offer = Offer(level, ring, position, offered.tag, first.head, group=group)
        is_good = yield from self.has_flow(level, seen)
        is_good = is_good and (yield from self.is_unreleased(level, ring, seen, first))
        if is_good and group != NOTHING:
            offer = offer._replace(wrong=self.judge.comes_too_soon(message, self.number, self.wants))
            is_good = yield from self.confirm(group)
        other = level.front if ring is level.back else level.back
        if is_good and seen.flow != NEVER:
            is_good = yield from self.is_unreleased(level, other, seen, first)
        if is_good and first.is_scattered:
            is_good = yield from self.is_unreleased(level, ring, seen, first)
        if is_good:
            return offer  # the get happened in these looks
        yield from self.withdraw(offer)
        return AGAIN

    def is_unreleased(self, level: Level, ring: Ring, seen: Seen, first: Found) -> Steps[bool]:
        """A release behind the first entry does not matter."""
        yield STEP
        if ring is level.back:
            return ring.lowest_released(seen.back) >= first.place or self.is_fault("no_back_epoch")
        is_in_order = first.ring is ring and not first.is_scattered
        released = ring.lowest_released(seen.front)
        return released >= (first.position if is_in_order else ENDLESS) or self.is_fault("no_front_epoch")

    def end_offer(self, offer: Offer) -> Steps[None]:
        if offer.group != NOTHING:
            yield from self.leave_group(offer.group)

    def end_held(self, held: Held) -> Steps[None]:
        if held.group != NOTHING:
            yield from self.leave_group(held.group)

    def took(self, offer: Offer) -> None:
        if not self.is_scattered(offer):
            self.cursors[offer.ring] = (offer.position + 1, offer.head[1])

    def is_scattered(self, offer: Offer) -> bool:
        return offer.ring is offer.level.front and offer.level.scattered != 0

    # ---- a get

    def take(self) -> Steps[str]:
        self.seen = NOTHING
        yield STEP
        self.version = self.queue.version()
        return (yield from super().take())

    def says_end(self) -> None:
        self.seen = self.version


class Seeker(Searcher, Consumer):
    """One that never sleeps."""


class SleepingSeeker(Searcher):
    """Gets for ever. It says what it has looked at before it sleeps, and is not woken for that."""

    works_on = False  # it keeps what it has for ever

    def publish(self) -> Steps[None]:
        if self.seen >= STARVED_TOO and self.is_fault("chances_late"):
            self.seen = self.version + STARVED_TOO + self.queue.chances
        yield STEP
        self.queue.progress[self.number] = self.seen

    def pass_on(self) -> Steps[None]:
        """The entry that it was woken for may be another one's."""
        yield from self.publish()
        yield STEP
        if self.queue.idle:
            yield from self.notify()

    def run(self) -> Steps[None]:
        queue = self.queue
        queue.progress[self.number] = NOTHING
        while True:
            result = yield from self.take()
            while result:
                result = yield from self.wait_round()
            for _ in range(queue.chance.choice((1, 1, 40))):
                yield STEP
            while self.happens(queue.working) or self.works_on:
                self.works_on = True
                yield ASLEEP
            yield from self.give_up(queue.releasing)
            if self.happens(queue.leaving):
                return

    def wait_round(self) -> Steps[str]:
        queue = self.queue
        queue.awake.discard(self.number)
        queue.idle.add(self.number)
        yield STEP
        result = yield from self.take()
        yield from self.publish()
        if result in ASLEEP_AFTER:
            queue.count("slept starved" if self.seen >= STARVED_TOO else "slept")
            queue.asleep.add(self.number)
            while self.number not in queue.awake:
                yield ASLEEP
            queue.asleep.discard(self.number)
        was_told = self.number not in queue.idle
        queue.idle.discard(self.number)
        if not result:
            if was_told:
                yield from self.notify()
            return result
        result = yield from self.take()
        if result and was_told:
            yield from self.pass_on()
        return result
