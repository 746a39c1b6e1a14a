"""A queue as its documentation describes it: a list of messages, and what each call does to it. Nothing is clever."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shmq.headers import encode_headers

READY, HELD, DELAYED = "ready", "held", "delayed"
OPEN, DRAINING, STOPPED = "open", "draining", "stopped"
PLACE_BITS = 48
USUAL_PRIORITY = 4
SLOTS = 1024  # of a ring of these tests
MOST = 40  # messages, roughly: each step looks at all of them

# Who holds a message: player and number of its consumer; 0: the implicit one of Queue.receive; GETTER: its get().
Holder = tuple[int, int]
GETTER = -1
# What is seen of a message: position, id, body, headers, priority, redelivered, delivery count, mortal, group
Row = tuple[int, int, bytes, Mapping[str, Any], int, bool, int, bool, str | None]


@dataclass(eq=False)
class Entry:
    place: int
    body: bytes
    headers: Mapping[str, Any]
    priority: int = USUAL_PRIORITY
    group: str | None = None
    state: str = READY
    holder: Holder | None = None
    attempts: int = 0
    deaths: int = 0
    pids: tuple[int, ...] = ()  # of the processes that died with it
    redelivered: bool = False
    mortal: bool = False
    expired: bool = False
    known: bool = False
    id: int | None = None  # put_many does not tell: learned at the first look, and then the place, too

    @property
    def depth(self) -> int:
        return self.place >> PLACE_BITS

    @property
    def size(self) -> int:
        return len(encode_headers(self.headers, group=self.group)) + len(self.body)

    def row(self, being_delivered: bool = False) -> Row:
        count = self.attempts + self.deaths + being_delivered
        return (
            self.place, self.id or 0, self.body, self.headers,
            self.priority, self.redelivered, count, self.mortal, self.group,
        )  # fmt: skip


Wants = Callable[[Entry], bool]


def anything(_: Entry) -> bool:
    return True


@dataclass
class Subscriber:
    """A consumer: what it wants, how many it may hold, and what it was told to leave to others."""

    wants: Wants = anything
    prefetch: int | None = None
    refused: set[int] = field(default_factory=set)


class QueueModel:
    """What a queue of these options holds, and what its statistics have to say."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.levels: int = options.get("priorities", 1)
        self.options: dict[str, Any] = {
            "maxsize": 0, "max_bytes": 0, "max_deliveries": 20, "max_deaths": 3,
            "overflow": "wait", "retry_delay": (0.0,), "dead_letter_expired": False, **options,
        }  # fmt: skip
        self.entries: list[Entry] = []
        self.lost: list[Entry] = []  # dropped while somebody held them, who has not found out yet
        self.dead: list[tuple[bytes, str, tuple[int, ...]]] = []  # body, reason, pids
        self.tails = [0] * self.levels
        self.service = OPEN
        self.grouping: str | None = options.get("groups")
        self.owners: dict[str, Holder] = {}  # of sticky groups
        self.subscribers: dict[Holder, Subscriber] = {}
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

    def load_of(self, holder: Holder) -> int:
        """What counts against its prefetch."""
        return sum(entry.holder == holder for entry in self.entries + self.lost)

    def next_place(self, depth: int) -> int:
        return (depth << PLACE_BITS) + self.tails[depth]

    def statistics(self) -> dict[str, Any]:
        def count(state: str) -> int:
            return sum(entry.state == state for entry in self.entries)

        return {
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

    def learn(self, entry: Entry, row: Row) -> None:
        """What a put does not tell: the id, and the place where the ring has turned over older messages."""
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

    def fits(self, size: int) -> bool:
        maxsize, max_bytes = self.options["maxsize"], self.options["max_bytes"]
        used = sum(entry.size for entry in self.entries)
        few = maxsize == 0 or len(self.entries) < maxsize
        light = max_bytes == 0 or used == 0 or used + size <= max_bytes
        return few and light

    def put(
        self, body: bytes, headers: Mapping[str, Any], priority: int = USUAL_PRIORITY, delayed: bool = False,
        ttl: float | None = None, group: str | None = None,
    ) -> Entry | str:  # fmt: skip
        """The new entry, or the name of the error."""
        if self.service != OPEN:
            return "ShutDown"
        depth = self.depth_of(priority)
        entry = Entry(0, body, headers, priority, group)
        while not self.fits(entry.size):
            if self.options["overflow"] != "drop_oldest":
                return "Full"
            least = max(entry.depth for entry in self.entries)
            victim = next(entry for entry in self.in_order() if entry.depth == least)
            self.entries.remove(victim)
            self.lost += [victim] if victim.holder is not None else []
            self.counters["dropped"] += 1
        entry.place = self.next_place(depth)
        entry.state = DELAYED if delayed else READY
        entry.mortal, entry.expired = ttl is not None, ttl == 0
        self.tails[depth] += 1
        self.counters["put"] += 1
        self.entries.append(entry)
        return entry

    def expire(self) -> None:
        """What is past its time is nobody's any more."""
        for entry in self.in_order():
            if entry.expired:
                self.counters["expired"] += 1
                if self.options["dead_letter_expired"]:
                    self.bury(entry, "expired")
                else:
                    self.entries.remove(entry)

    # ---- take

    def is_poisoned(self, entry: Entry) -> bool:
        deaths: int = self.options["max_deaths"]
        deliveries: int = self.options["max_deliveries"]
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
            if entry.group is not None:
                if self.owner_of(entry.group) not in (None, holder):
                    continue
                self.owners[entry.group] = holder
            self.counters["delivered"] += 1
            self.counters["redelivered"] += entry.redelivered
            if not self.is_poisoned(entry):
                return entry
            deaths = self.options["max_deaths"]
            self.bury(entry, "max_deaths" if deaths and entry.deaths >= deaths else "max_deliveries")
        return None

    def get(self, player: int) -> Entry | str:
        entry = self.take((player, GETTER))
        if entry is None:
            return "Empty" if self.service == OPEN else "ShutDown"
        self.entries.remove(entry)
        self.counters["acked"] += 1
        return entry

    def receive(self, holder: Holder) -> Entry | str:
        subscriber = self.subscribers.setdefault(holder, Subscriber())
        if subscriber.prefetch is not None and self.load_of(holder) >= subscriber.prefetch:
            return "Empty"
        entry = self.take(holder, lambda entry: entry.place not in subscriber.refused and subscriber.wants(entry))
        if entry is None:
            return "Empty" if self.service == OPEN else "ShutDown"
        entry.state, entry.holder = HELD, holder
        return entry

    # ---- settle

    def ack(self, entry: Entry) -> None:
        self.entries.remove(entry)
        self.counters["acked"] += 1

    def release(self, entry: Entry, delayed: bool = False, elsewhere: bool = False) -> None:
        assert entry.holder is not None
        if elsewhere:
            self.subscribers[entry.holder].refused.add(entry.place)
        entry.holder, entry.redelivered = None, True
        entry.state = DELAYED if delayed else READY

    def retry(self, entry: Entry, delayed: bool | None = None) -> None:
        limit, steps = self.options["max_deliveries"], self.options["retry_delay"]
        if limit != 0 and entry.attempts + 1 >= limit:
            self.bury(entry, "max_deliveries")
            return
        if delayed is None:
            delayed = steps[min(entry.attempts, len(steps) - 1)] > 0
        entry.attempts += 1
        self.release(entry, delayed)

    def bury(self, entry: Entry, reason: str) -> None:
        self.entries.remove(entry)
        self.dead.append((entry.body, reason, entry.pids))
        self.counters["dead_lettered"] += 1

    # ---- consumers and processes

    def close(self, holder: Holder) -> None:
        for entry in self.held_by(holder):
            self.release(entry)
        self.lost = [entry for entry in self.lost if entry.holder != holder]
        self.disown(holder)
        del self.subscribers[holder]

    def disown(self, holder: Holder) -> None:
        self.owners = {group: owner for group, owner in self.owners.items() if owner != holder}

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
