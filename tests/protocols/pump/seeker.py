"""A taker that wants some messages only: it has a path of its own, and finds them among the rows, too."""

from __future__ import annotations

from tests.protocols.pump.mover import DONE, STARVED
from tests.protocols.pump.taker import AGAIN, AT_CLAIM, AT_LOCK, WITHOUT_FRONT, Consumer, End, Offer, Seen
from tests.protocols.pump.words import CLAIMED, ENDLESS, STEP, Level, Steps


class Seeker(Consumer):
    """Gets those whose numbers are as odd, or even, as its own."""

    has_path = True

    def wants(self, message: int) -> bool:
        return message % 2 == self.number % 2

    def look_at_rows(self, level: Level) -> Steps[Offer | End | str]:
        """Under the lock, as a whole: nothing is on its way then, and rows neither come nor go."""
        if not (yield from self.lock()):
            return AT_LOCK
        result = yield from self.search(level)
        if not isinstance(result, Seen):
            yield from self.unlock()
            return result
        yield from self.unlock()
        return (yield from self.take_late(level, result))

    def search(self, level: Level) -> Steps[Offer | End | Seen | str]:
        while True:
            yield STEP
            back = level.back.epoch
            yield STEP
            front = level.front.epoch
            yield STEP
            seen = Seen(back, front, level.flow)
            if not seen.flow.flowed:
                return AGAIN
            in_back = yield from self.walk(level.back, ENDLESS)
            in_front = yield from self.look_in_front(level, ENDLESS)
            first = in_front if in_front.place < in_back.place else in_back
            turn = yield from self.search_rows(level, min(first.place, seen.flow.p))
            if turn == DONE:
                continue
            if turn == STARVED:
                return WITHOUT_FRONT
            if first.word.state == CLAIMED:
                return AT_CLAIM
            if not level.live_rows():
                yield from self.pull(level)
                return AGAIN
            if self.is_fault("search_unlocked"):
                return seen
            if not first.is_entry:
                return (yield from self.end(level, seen, in_back.position))
            result = yield from self.offer(level, first, seen)
            if result != AGAIN:
                return result

    def search_rows(self, level: Level, end: int) -> Steps[int | None]:
        """The first that it wants, below this place, comes in by itself."""
        for place in level.live_rows():
            if place < end and self.wants(level.rows[place]):
                return (yield from self.fetch(level, place))
        return None

    def take_late(self, level: Level, seen: Seen) -> Steps[Offer | End | str]:
        """What lies above the rows, when the lock has been left: a fault."""
        in_back = yield from self.walk(level.back, ENDLESS)
        if not in_back.is_entry:
            return AGAIN
        return (yield from self.offer(level, in_back, seen))
