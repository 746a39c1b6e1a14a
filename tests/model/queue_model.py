"""A queue as its documentation describes it: a list of messages, and what each call does to it. Nothing is clever."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.model.crowd_model import CrowdModel, Subscriber
from tests.model.entry import (
    DELAYED,
    GETTER,
    HELD,
    PLACE_BITS,
    READY,
    TINY,
    USUAL_PRIORITY,
    Death,
    Entry,
    Holder,
    Row,
    Wants,
    anything,
)

OPEN, DRAINING, STOPPED = "open", "draining", "stopped"
SLOTS = 1024  # of a ring of these tests
MOST = 40  # messages, roughly: each step looks at all of them


@dataclass(eq=False)
class Taken:
    """A message that was taken from its consumer, who has not found out yet."""

    holder: Holder
    place: int


class QueueModel(CrowdModel):
    """The messages of a queue of these options, and the figures that its statistics must have."""

    def __init__(self, options: Mapping[str, Any], dead: "QueueModel | None" = None) -> None:
        """dead: where dead messages go; None: into a queue made for them, when the first one dies."""
        super().__init__(options)
        self.levels: int = options.get("priorities", 1)
        self.grouping: str | None = options.get("groups")
        self.entries: list[Entry] = []
        self.taken: list[Taken] = []
        self.dead = dead
        self.tails = [0] * self.levels
        self.service = OPEN
        self.waits = False  # something becomes due by itself, soon
        self.counters = dict.fromkeys(
            ("put", "delivered", "acked", "redelivered", "deaths", "dead_lettered", "expired", "dropped"), 0
        )

    # ---- look

    def in_order(self) -> list[Entry]:
        return sorted(self.entries, key=lambda entry: entry.place)

    def held_by(self, holder: Holder) -> list[Entry]:
        return [entry for entry in self.in_order() if entry.holder == holder]

    def held(self) -> list[Entry]:
        return [entry for entry in self.in_order() if entry.holder is not None]

    def hands_of(self, holder: Holder) -> int:
        """Messages that it has, or believes to have."""
        return len(self.held_by(holder)) + sum(taken.holder == holder for taken in self.taken)

    def has_credit(self, holder: Holder) -> bool:
        """A message that was taken from it does not count any more."""
        prefetch = self.subscribers[holder].prefetch if holder in self.subscribers else None
        return prefetch is None or len(self.held_by(holder)) < prefetch

    def next_place(self, depth: int) -> int:
        return (depth << PLACE_BITS) + self.tails[depth]

    def row(self, entry: Entry, being_delivered: bool = False) -> Row:
        return entry.row(being_delivered, self.options["max_ttl"] is not None)

    def statistics(self) -> dict[str, Any]:
        def count(state: str) -> int:
            return sum(entry.state == state for entry in self.entries)

        found = {
            "qsize": count(READY),
            "ready": count(READY),
            "unsettled": count(HELD),
            "delayed": count(DELAYED),
            "bytes": sum(entry.size for entry in self.entries),
            "first_position": min((entry.place for entry in self.entries), default=None),
            "next_position": self.next_place(self.levels - 1),
            "consumers": len(self.subscribers),
            "producers_waiting": 0,
            "shut_down": self.service != OPEN,
            **self.counters,
        }
        if any(entry.death for entry in self.entries):
            del found["bytes"]  # when and where it died is among its headers
        return found

    def learn(self, entry: Entry, row: Row) -> None:
        """Learns what a put does not tell: the id, and the place where the ring has turned over older messages."""
        entry.id = entry.id or row[1]
        if not entry.known and self.is_later(entry.place, row[0]):
            entry.place = row[0]
            self.tails[entry.depth] = max(self.tails[entry.depth], self.index_of(entry.place) + 1)
        entry.known = True

    def learn_next(self, place: int) -> None:
        if self.is_later(self.next_place(self.levels - 1), place):
            self.tails[-1] = self.index_of(place)

    @staticmethod
    def index_of(place: int) -> int:
        return place & ((1 << PLACE_BITS) - 1)

    def is_later(self, expected: int, place: int) -> bool:
        """A place is left out where an older message is in the way: at most one for each, in each turn of the ring."""
        index, skipped = self.index_of(place), place - expected
        turns = index // SLOTS
        return 0 < skipped <= turns * MOST and place >> PLACE_BITS == expected >> PLACE_BITS

    # ---- put

    def depth_of(self, priority: int) -> int:
        """As AMQP 0-10 says: level = priority - (5 - ceil(n / 2)), within 0 to n - 1; the largest level comes first."""
        level = priority - (5 - (self.levels + 1) // 2)
        return self.levels - 1 - min(max(level, 0), self.levels - 1)

    def fits(self, size: int, without: Entry | None = None, count: int = 1) -> bool:
        """So many messages, of so many bytes in all."""
        maxsize, max_bytes = self.options["maxsize"], self.options["max_bytes"]
        there = [entry for entry in self.entries if entry is not without]
        used = sum(entry.size for entry in there)
        few = maxsize == 0 or len(there) + count <= maxsize
        light = max_bytes == 0 or (used == 0 and count == 1) or used + size <= max_bytes
        return few and light

    def put(
        self, body: bytes, headers: Mapping[str, Any], priority: int = USUAL_PRIORITY, delay: float = 0,
        ttl: float | None = None, group: str | None = None,
    ) -> Entry | str:  # fmt: skip
        """The new entry, or the name of the error."""
        entry = Entry(0, body, headers, priority, group, state=self.state_for(delay))
        entry.mortal, entry.expired = ttl is not None, ttl == 0
        return self.accept(entry) or entry

    def state_for(self, delay: float) -> str:
        """A tiny delay will be over when all have looked."""
        self.waits |= 0 < delay <= TINY
        return DELAYED if delay > TINY else READY

    def accept(self, entry: Entry) -> str | None:
        """An entry that was made for this queue; the name of the error, if it is not taken."""
        if self.service != OPEN:
            return "ShutDown"
        while not self.fits(entry.size):
            if self.options["overflow"] != "drop_oldest":
                return "Full"
            least = max(entry.depth for entry in self.entries)
            victim = next(entry for entry in self.in_order() if entry.depth == least)
            self.remove(victim)
            self.counters["dropped"] += 1
        depth = self.depth_of(entry.priority)
        entry.place = self.next_place(depth)
        entry.expired |= self.options["max_ttl"] == 0
        self.tails[depth] += 1
        self.counters["put"] += 1
        self.entries.append(entry)
        return None

    def remove(self, entry: Entry) -> None:
        """Its holder will find out."""
        self.entries.remove(entry)
        if entry.holder is not None:
            self.taken.append(Taken(entry.holder, entry.place))

    def expire(self) -> None:
        """A message past its time is nobody's any more."""
        for entry in self.in_order():
            entry.expired |= self.options["max_ttl"] == 0
            if entry.expired:
                self.waits = True
                self.counters["expired"] += 1
                self.remove(entry)
                if self.options["dead_letter_expired"]:
                    self.to_the_dead(entry, "expired")

    # ---- take

    def is_poisoned(self, entry: Entry) -> bool:
        deaths: int = self.options["max_deaths"]
        deliveries: int = self.options["max_attempts"]
        return (deaths != 0 and entry.deaths >= deaths) or (deliveries != 0 and entry.attempts >= deliveries)

    def owner_of(self, group: str) -> Holder | None:
        """A shared group is with whoever has messages of it in hand; a sticky one with who took the first of them."""
        if self.grouping == "sticky":
            return self.owners.get(group)
        return next((entry.holder for entry in self.entries if entry.group == group and entry.holder), None)

    def take(self, holder: Holder, wants: Wants = anything) -> Entry | None:
        """The first that is wanted and not kept by its group; what has died too often is buried on the way."""
        if self.service == STOPPED:
            return None
        for entry in self.in_order():
            if entry.state != READY or entry.expired or not wants(entry):
                continue
            if self.grouping is not None and entry.group is not None:
                if self.owner_of(entry.group) not in (None, holder):
                    continue
                self.owners[entry.group] = holder
            if not self.is_poisoned(entry):
                self.counters["delivered"] += 1
                self.counters["redelivered"] += entry.redelivered
                return entry
            self.end_poisoned(entry)
        return None

    def end_poisoned(self, entry: Entry) -> None:
        deaths = self.options["max_deaths"]
        if deaths and entry.deaths >= deaths:
            who = f"pids {', '.join(map(str, entry.pids))}" if len(entry.pids) > 1 else f"pid {entry.pids[0]}"
            count = "1 process" if len(entry.pids) == 1 else f"{len(entry.pids)} processes"
            self.bury(entry, "max_deaths", f"{count} died with it, {who}")
        else:
            self.bury(entry, "max_attempts")

    def join(self) -> bool:
        """Is nothing left? The caller buries each message that nobody may be given any more."""
        for entry in self.in_order():
            if entry.state == READY and not entry.expired and self.is_poisoned(entry):
                self.end_poisoned(entry)
        return not self.entries

    def nothing(self) -> str:
        return "Empty" if self.service == OPEN else "ShutDown"

    def get(self, player: int) -> Entry | str:
        if self.service != STOPPED and not self.admits():
            return "ConsumerRefused"
        entry = self.take((player, GETTER))
        if entry is None:
            return self.nothing()
        self.entries.remove(entry)
        self.counters["acked"] += 1
        return entry

    def receive(self, holder: Holder) -> Entry | str:
        refused = None if holder in self.subscribers else self.subscribe(holder, Subscriber())
        if refused is not None:
            return refused
        subscriber = self.subscribers[holder]
        if self.service != STOPPED and not subscriber.exclusive and not self.admits():
            return "ConsumerRefused"
        if not self.has_credit(holder):
            return "Empty"
        if not subscriber.live:
            return self.nothing()
        entry = self.take(holder, lambda entry: entry.place not in subscriber.refused and subscriber.wants(entry))
        if entry is None:
            return self.nothing()
        entry.state, entry.holder = HELD, holder
        return entry

    # ---- settle

    def ack(self, entry: Entry) -> None:
        self.entries.remove(entry)
        self.counters["acked"] += 1

    def release(self, entry: Entry, delay: float = 0, elsewhere: bool = False) -> None:
        assert entry.holder is not None
        if elsewhere:
            self.subscribers[entry.holder].refused.add(entry.place)
        entry.holder, entry.redelivered = None, True
        entry.state = self.state_for(delay)

    def retry(self, entry: Entry, delay: float | None = None, error: str | None = None) -> None:
        limit, steps = self.options["max_attempts"], self.options["retry_delay"]
        if limit != 0 and entry.attempts + 1 >= limit:
            self.bury(entry, "max_attempts", error)
            return
        if delay is None:
            delay = steps[min(entry.attempts, len(steps) - 1)]
        entry.attempts += 1
        self.release(entry, delay)

    def overrun(self, entry: Entry) -> None:
        """Its lease is over."""
        assert entry.holder is not None
        self.taken.append(Taken(entry.holder, entry.place))
        entry.attempts += 1
        holder = entry.holder
        self.release(entry)
        self.waits = True
        in_hand = any(other.group == entry.group and other.holder is not None for other in self.entries)
        if entry.group is not None and self.owners.get(entry.group) == holder and not in_hand:
            del self.owners[entry.group]  # a sticky one

    def bury(self, entry: Entry, reason: str, error: str | None = None) -> None:
        self.entries.remove(entry)
        self.to_the_dead(entry, reason, error)

    def to_the_dead(self, entry: Entry, reason: str, error: str | None = None) -> None:
        death: Death = (reason, error, entry.pids)
        dead_letter = entry.elsewhere()
        dead_letter.state, dead_letter.mortal, dead_letter.death = READY, False, death
        self.dead = self.dead or QueueModel({"max_attempts": 0, "max_deaths": 0})
        assert self.dead.accept(dead_letter) is None
        self.counters["dead_lettered"] += 1

    # ---- consumers and processes

    def close(self, holder: Holder) -> None:
        for entry in self.held_by(holder):
            self.release(entry)
        self.taken = [taken for taken in self.taken if taken.holder != holder]
        self.drop(holder)

    def leave(self, player: int) -> None:
        for holder in [holder for holder in self.subscribers if holder[0] == player]:
            self.close(holder)
        self.disown((player, GETTER))

    def die(self, player: int, pid: int) -> None:
        for entry in self.held():
            if entry.holder is not None and entry.holder[0] == player:
                entry.deaths += 1
                entry.pids += (pid,)
                self.counters["deaths"] += 1
        self.leave(player)

    # ---- manage

    def purge(self, wants: Wants = anything) -> int:
        gone = [entry for entry in self.entries if entry.holder is None and wants(entry)]
        self.entries = [entry for entry in self.entries if entry not in gone]
        return len(gone)

    def move(self, to: "QueueModel", wants: Wants, limit: int | None, copy: bool) -> tuple[str | None, int]:
        """The name of the error, if there was one, and how many were moved."""
        moved = 0
        for entry in self.movable(wants, copy):
            there = entry.elsewhere()
            if copy:
                there.state = READY
            error = to.accept(there)
            if error is not None:
                entry.redelivered |= not copy  # it was in the mover's hand
                return error, moved
            if not copy:
                self.entries.remove(entry)
            moved += 1
            if moved == limit:
                break
        return None, moved

    def movable(self, wants: Wants, copy: bool) -> Iterator[Entry]:
        for entry in self.in_order():
            if wants(entry) and (copy or entry.holder is None):
                yield entry

    def delete(self) -> None:
        """Messages that nobody holds go to the dead letters, if the option dead_letter was given."""
        for entry in self.in_order():
            if entry.holder is None:
                self.give_up(entry)

    def give_up(self, entry: Entry) -> None:
        self.entries.remove(entry)
        if "dead_letter" in self.options:
            self.to_the_dead(entry, "queue_deleted")
