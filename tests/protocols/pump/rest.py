"""When nobody moves any more, no taker that wants some messages only sleeps beside one that it could have."""

from __future__ import annotations

from collections.abc import Iterable

from tests.protocols.pump.process import Queue
from tests.protocols.pump.seeker import Searcher
from tests.protocols.pump.words import AVAILABLE, FREE, NOBODY, Fault, Level, Ring

LONG = 4000  # steps in which nothing happens: they wake each other for nothing


class Rest:
    """A queue at rest, with the searchers that sleep there."""

    def __init__(self, queue: Queue, searchers: Iterable[Searcher]) -> None:
        self.queue = queue
        self.searchers = list(searchers)

    def is_for(self, searcher: Searcher, message: int) -> bool:
        group = self.queue.group_of(message)
        is_open = not self.queue.groups or self.queue.owners[group].owner in (NOBODY, searcher.number)
        return is_open and searcher.wants(message)

    def is_left(self, front: Ring, slot: int) -> bool:
        """Of groups, only one that was fetched by a taker of all may go before what lies below it."""
        return front.words[slot].state == AVAILABLE and (not self.queue.groups or front.is_next[slot])

    def is_starved(self, level: Level) -> bool:
        """The slots for what is fetched are all in hands, or their entries are for nobody who sleeps here."""
        front = level.front
        slots = level.fetched_slots()
        if len(slots) < level.most_fetched():
            slots = list(range(front.slots))
            if self.queue.groups or any(word.state == FREE for word in front.words):
                return False
        left = [front.message[slot] for slot in slots if self.is_left(front, slot)]
        return not any(self.is_for(searcher, message) for searcher in self.searchers for message in left)

    def look(self) -> bool:
        """Raises Fault. True: somebody is starved, rightly."""
        judge = self.queue.judge
        starved = False
        for searcher in self.searchers:
            for level in self.queue.levels:
                its = [message for message in judge.since if judge.level[message] == level.number]
                places = [(judge.place[message], message) for message in its if self.is_for(searcher, message)]
                if not places:
                    continue
                place, first = min(places)
                if place not in level.live_rows() or not self.is_starved(level):
                    raise Fault(f"{searcher.number} sleeps beside {first}")
                starved = True
                break
        return starved
