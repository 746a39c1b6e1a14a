"""A mover, purger or inhaler, has the lock for one turn. Each word of a level but its slots is its alone."""

from __future__ import annotations

from tests.protocols.pump.process import Process
from tests.protocols.pump.words import (
    AVAILABLE,
    CLAIMED,
    ENTRIES,
    FREE,
    HELD,
    MOVING,
    NOBODY,
    STEP,
    Fault,
    Flow,
    Level,
    Ring,
    Steps,
    Word,
)

BUSY, DONE, STARVED = range(3)


class Mover(Process):
    """A producer that finds no room flushes; a taker that finds nothing in memory pulls."""

    def lock(self) -> Steps[bool]:
        """Tries, and never waits. A process that fails marks that, and tries once more."""
        yield STEP
        if self.queue.is_locked():
            if not self.is_fault("no_missed"):
                self.queue.missed = True
            yield STEP
            if self.queue.is_locked():
                return False
        self.queue.lock = self.number
        yield STEP
        if self.queue.unfinished:
            for level in self.queue.levels:
                yield from self.recover(level)
        yield STEP
        self.queue.unfinished = True
        return True

    def unlock(self) -> Steps[None]:
        for level in self.queue.levels:
            rows = len(level.live_rows()) if level.flow.flowed else 0
            counted = level.flushed - level.pulled - level.fetched
            if counted != rows:
                raise Fault(f"{counted} rows are counted, {rows} are there")
        yield STEP
        self.queue.unfinished = False
        yield STEP
        self.queue.lock = NOBODY
        yield STEP
        if self.queue.missed:
            self.queue.missed = False
            yield from self.notify_starved()

    def recover(self, level: Level) -> Steps[None]:
        """After a turn that was not ended: all of it is repeatable, and none of it needs the disk."""
        self.queue.count("recoveries")
        front, back = level.front, level.back
        while True:
            yield STEP
            tail = front.tail
            if front.is_end(tail, front.word(tail)):
                break
            front.help(tail)
        if tail > 0 and not self.is_fault("low_lost"):
            yield STEP
            last = (tail - 1) % front.slots
            if front.fetched[last]:
                yield from self.end_fetch(level, last)
            elif front.place[last] + 1 >= level.low:
                level.low = front.place[last] + 1
                yield STEP
                level.pulled = front.ordinal[last]
        if level.flow.flowed and level.low > level.flow.p and not self.is_fault("p_lost"):
            yield STEP
            level.flow = Flow(True, level.low)  # of entries that were handed over
        p = level.flow.p
        lowest = p
        for index in range(back.slots):
            while True:
                yield STEP
                word = back.words[index]
                if word.state != MOVING:
                    break
                position = back.position[index]
                if position < p and not self.is_fault("undo"):
                    back.free(index, word)  # T20
                elif back.swap(index, word, word._replace(state=AVAILABLE)):  # T21
                    lowest = min(lowest, position)
        if not self.is_fault("recover_quiet"):
            yield from back.rewind(lowest)
        yield STEP
        if level.flushing[0] == p:
            level.flushed = level.flushing[1]
        if level.low >= p or not level.flow.flowed:
            level.pulled = level.flushed - level.fetched

    def end_fetch(self, level: Level, slot: int) -> Steps[None]:
        """Of a mover that has died behind its T22, perhaps."""
        if not self.is_fault("fetch_uncounted"):
            level.fetched = level.front.ordinal[slot]
        yield STEP
        if not self.is_fault("mark_lost"):
            level.gone.add(level.front.place[slot])

    def make_room(self, level: Level, own: int) -> Steps[int]:
        """A turn of whoever finds no room, or crosses the limit of memory with a put at `own`."""
        if not (yield from self.lock()):
            return BUSY
        yield from self.enter(level, own)
        is_handed = False
        if level.low == level.flow.p and self.happens(
            self.queue.handing
        ):  # there are no rows, and it is the ring that is full
            is_handed = yield from self.hand_over(level)
        if not is_handed:
            yield from self.flush(level)
        yield from self.unlock()
        return DONE

    def bring(self, level: Level) -> Steps[int]:
        """A turn of whoever finds nothing in memory."""
        if not (yield from self.lock()):
            return BUSY
        yield STEP
        result = DONE
        if level.flow.flowed:
            result = yield from self.pull(level)
        yield from self.unlock()
        return result

    def enter(self, level: Level, own: int) -> Steps[None]:
        yield STEP
        flow = level.flow
        if flow.flowed:
            return
        yield STEP
        further = 0 if self.queue.oldest_first else level.back.slots // 2  # it may begin anywhere
        start = min(own, level.back.head[1] + further)
        level.passed |= level.back.in_hands_or_before_head()
        if self.is_fault("x_at_tail"):
            start = own
        if not self.is_fault("x_below_p"):
            start = max(flow.p, start)
        yield STEP
        level.low = start
        yield STEP
        level.flow = Flow(True, start)
        self.queue.count("entered")

    def flush(self, level: Level) -> Steps[None]:
        p = level.flow.p
        end, moving = yield from self.gather(level, p, self.queue.chance.choice((1, 2, 4, 8)))
        if end == p:
            return
        back = level.back
        rows = {position: back.message[position % back.slots] for position in moving}
        if self.is_fault("p_early"):
            yield STEP
            level.flow = Flow(True, end)
        if self.is_fault("free_early"):
            yield from self.free_all(level, moving)
        yield STEP
        if self.happens(self.queue.failing):
            self.queue.count("failed commits")
            yield from self.recover(level)
            return
        if not self.is_fault("garbage"):
            for place in [place for place in level.rows if place >= p]:
                del level.rows[place]
        level.rows.update(rows)  # the commit
        yield STEP
        level.flushing = (end, level.flushed + len(moving))
        yield STEP
        level.flow = Flow(True, end)  # the decision
        yield STEP
        level.flushed = level.flushing[1]
        self.queue.count("flushed", len(moving))
        yield from self.free_all(level, moving)

    def hand_over(self, level: Level) -> Steps[bool]:
        """The oldest entries go into the front, and meet no disk. Each T22 is the decision for its entry."""
        p, front, back = level.flow.p, level.front, level.back
        used = [word.state in ENTRIES and not front.fetched[slot] for slot, word in enumerate(front.words)].count(True)
        free = yield from self.free_slots(level, max(0, max(1, front.slots // 4) - used))
        end, moving = (p, []) if free == 0 else (yield from self.gather(level, p, free))
        if not moving:
            return False
        if self.is_fault("handed_early"):
            yield STEP
            level.flow = Flow(True, end)
        yield STEP
        level.flushing = (end, level.flushed)  # that of a flush that died may name this place, too
        messages = [back.message[position % back.slots] for position in moving]
        yield from self.put_in_front(level, moving, messages, [level.pulled] * len(moving))
        yield STEP
        level.low = end
        yield STEP
        level.flow = Flow(True, end)
        self.queue.count("handed over", len(moving))
        yield from self.free_all(level, moving)
        yield from self.leave(level)
        return True

    def gather(self, level: Level, p: int, most: int) -> Steps[tuple[int, list[int]]]:
        """T19 of the available entries from P on. Entries that are in hand, or held, are passed and stay."""
        back = level.back
        moving: list[int] = []
        position = p
        while position < p + most:
            yield STEP
            word = back.word(position)
            if back.is_end(position, word):
                break
            if back.is_here(position, word):
                if word.state == CLAIMED:
                    if self.clear_claim(back, position, word):
                        continue
                    break
                if word.state == HELD and (yield from self.end_hold(back, position, word)):
                    continue
                if word.state == AVAILABLE:
                    if not back.swap(position, word, word._replace(state=MOVING)):
                        continue
                    moving.append(position)
                elif word.state in ENTRIES:
                    level.passed.add(position)
                    self.queue.count("passed")
            position += 1
        return position, moving

    def free_all(self, level: Level, moving: list[int]) -> Steps[None]:
        """T20."""
        back = level.back
        for position in moving:
            while True:
                yield STEP
                word = back.word(position)
                if word.state != MOVING or back.position[position % back.slots] != position:
                    break
                if back.free(position, word):
                    break

    def pull(self, level: Level) -> Steps[int]:
        """Rows into the front, or out of the flow where there are none."""
        yield from self.look_at_order(level)
        live = level.live_rows()
        if not live:
            yield from self.leave(level)
            return DONE
        result = STARVED
        if live[0] > level.low:
            yield STEP
            level.low = live[0]  # what came back below it needs no slot of the front
            result = DONE
        front = level.front
        most = front.slots if self.is_fault("whole_front") else front.slots // 2
        for _ in range(self.queue.chance.choice((1, 2, 3))):
            free = yield from self.free_slots(level, min(most, len(live), self.in_order_at_most(level)))
            if free == 0:
                break
            yield from self.bring_in(level, live[:free])
            live = live[free:]
            result = DONE
        return result

    def in_order_at_most(self, level: Level) -> int:
        """With groups what comes in order may all be refused: it has a quarter of the front, the fetched another."""
        front = level.front
        if not self.queue.groups or self.is_fault("all_in_order"):
            return front.slots
        words = enumerate(front.words)
        used = [word.state in ENTRIES and not front.fetched[slot] for slot, word in words].count(True)
        return max(0, max(1, front.slots // 4) - used)

    def leave(self, level: Level) -> Steps[None]:
        yield STEP
        p = level.flow.p
        level.low = p
        yield STEP
        level.flow = Flow(False, p)
        self.queue.count("left")

    def free_slots(self, level: Level, most: int) -> Steps[int]:
        """How many slots at the front's tail are free; what is old there is carried (T17)."""
        front = level.front
        free = 0
        while free < most:
            yield STEP
            tail = front.tail
            word = front.word(tail + free)
            if word.lap == front.lap(tail + free) and word.state == FREE:
                free += 1
                continue
            if free > 0 or not (yield from front.has_room_behind(tail)):
                break
            yield STEP
            if word.lap < front.lap(tail):
                self.queue.count("carried", front.swap(tail, word, word._replace(lap=word.lap + 1, carried=True)))
            else:
                front.help(tail)
        return free

    def bring_in(self, level: Level, places: list[int]) -> Steps[None]:
        ordinals = [level.pulled + ahead + 1 for ahead in range(len(places))]
        yield from self.put_in_front(level, places, [level.rows[place] for place in places], ordinals)
        yield STEP
        level.low = places[-1] + 1
        yield STEP
        level.pulled += len(places)
        self.queue.count("pulled", len(places))
        for place in places:
            del level.rows[place]  # at leisure

    def put_in_front(self, level: Level, places: list[int], messages: list[int], ordinals: list[int]) -> Steps[None]:
        """Fills free slots, then makes each of them an entry: T22 is where that one is decided."""
        front = level.front
        tail = front.tail
        for ahead, place in enumerate(places):
            yield from front.write(tail + ahead, messages[ahead], place, self.number, self.judge.dead)
            front.ordinal[(tail + ahead) % front.slots] = ordinals[ahead]
            front.fetched[(tail + ahead) % front.slots] = False
        if self.is_fault("low_early"):
            yield STEP
            level.low = places[-1] + 1
        for position in range(tail, tail + len(places)):
            yield from self.show(front, position)

    def show(self, front: Ring, position: int) -> Steps[None]:
        """T22, and the front's tail."""
        yield STEP
        word = front.word(position)
        if not front.swap(position, word, Word(AVAILABLE, word.lap)):
            raise Fault("somebody else is in the front")
        yield STEP
        front.help(position)

    def look_at_order(self, level: Level) -> Steps[None]:
        """Once all that was fetched has left the front, its positions are in the order of places again."""
        if not level.scattered:
            return
        front = level.front
        for index in range(front.slots):
            yield STEP
            if front.words[index].state in ENTRIES and front.fetched[index]:
                return
        level.scattered = 0

    def fetch(self, level: Level, place: int, is_next: bool = False) -> Steps[int]:
        """One row comes in by itself, before those below it. T22 is the decision."""
        front = level.front
        yield STEP
        if len(level.fetched_slots()) >= level.most_fetched() and not self.is_fault("fetch_endlessly"):
            return STARVED  # else no slot is left to those that lie below
        if (yield from self.free_slots(level, 1)) == 0:
            return STARVED
        tail = front.tail
        yield from front.write(tail, level.rows[place], place, self.number, self.judge.dead)
        front.ordinal[tail % front.slots] = level.fetched + 1
        front.fetched[tail % front.slots] = True
        front.is_next[tail % front.slots] = is_next
        if self.is_fault("mark_early"):
            level.gone.add(place)
        yield STEP
        level.scattered = tail + 1
        yield from self.show(front, tail)
        yield STEP
        level.gone.add(place)
        yield STEP
        level.fetched += 1
        self.queue.count("fetched")
        return DONE

    def purge(self, level: Level) -> Steps[int]:
        """Settles all rows by one store."""
        if not (yield from self.lock()):
            return BUSY
        yield STEP
        if level.flow.flowed:
            for place in level.live_rows():
                self.judge.settles(level.rows[place])
            level.low = level.flow.p
            yield STEP
            level.pulled = level.flushed - level.fetched
        yield from self.unlock()
        if not self.is_fault("purge_quiet"):
            yield from self.notify_starved()  # who slept, since rows came first and the front was full
        return DONE
