"""The state machine: what several processes do to a queue is done to its model, too, and both agree after each step."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from shmq.options.stage import NOT_BUILT
from tests.model.player import Actor, Player, Raised
from tests.model.queue_model import (
    DRAINING,
    MOST,
    OPEN,
    READY,
    STOPPED,
    Entry,
    Holder,
    QueueModel,
    Row,
    Subscriber,
    Wants,
    anything,
)

PLAYERS = 3
CONSUMERS = 3  # at once, of one player, besides the implicit one
FAR = 1e6  # seconds; nothing becomes due while a test runs
LOOKS = 200

SELECTORS: Mapping[str | None, Wants] = {
    None: anything,
    "kind = 'a'": lambda entry: entry.headers.get("kind") == "a",
    "kind IS NULL OR n >= 2": lambda entry: "kind" not in entry.headers or entry.headers.get("n", 0) >= 2,
    "JMSPriority > 4": lambda entry: entry.priority > 4,
    "JMSRedelivered = TRUE": lambda entry: entry.redelivered,
    "JMSXDeliveryCount = 1": lambda entry: entry.attempts + entry.deaths == 0,
}

# What may be altered while the queue is in use. The package says which options are not built yet; they are left out.
ALTERED = {
    name: values
    for name, values in {
        "max_deliveries": (0, 1, 2, 20),
        "max_deaths": (0, 1, 2, 3),
        "maxsize": (0, 2, 5, 1000),
        "max_bytes": (0, 50, 6000),
        "retry_delay": ((0.0,), (0.0, FAR)),
        "dead_letter_expired": (False, True),
        "overflow": ("wait", "reject", "drop_oldest"),
    }.items()
    if name not in NOT_BUILT
}

players = st.integers(0, PLAYERS - 1)
picks = st.integers(0, 11)
selectors = st.sampled_from(list(SELECTORS))
headers = st.fixed_dictionaries({}, optional={"kind": st.sampled_from(["a", "b"]), "n": st.integers(0, 3)})
priorities = st.none() | st.integers(0, 9)
delays = st.sampled_from([0, 0, 0, FAR])
groups = st.sampled_from([None, "a", "b"])
lives = st.sampled_from([None, None, None, FAR, 0])


class World:
    """The processes, and the kind of queue that they use. Lives as long as the test; each example has a new queue."""

    def __init__(
        self, path: Path, options: Mapping[str, Any], most_bytes: int,
        make: type[Actor] = Actor, model: type[QueueModel] = QueueModel,
    ) -> None:  # fmt: skip
        self.path, self.options, self.most_bytes, self.make, self.model = path, options, most_bytes, make, model
        self.players: list[Player] = []
        self.queues = 0

    def fresh(self) -> QueueModel:
        """A queue that nobody has used yet, and all players at it."""
        self.players = [player for player in self.players if player.alive]
        for player in self.players:
            player.ask("bury_the_dead")
        while len(self.players) < PLAYERS:
            self.players.append(Player(self.path, self.make))
        self.queues += 1
        for number in range(PLAYERS):
            self.use(number, dict(self.options))
        return self.model(self.options)

    def use(self, number: int, options: dict[str, Any]) -> None:
        found = self.players[number].ask("use", f"jobs{self.queues}", options)
        assert found is None, found

    def close(self, in_peace: bool) -> None:
        for player in self.players:
            player.end() if in_peace else player.kill()


class QueueMachine(RuleBasedStateMachine):
    """Rules and invariant; a subclass gives it the world."""

    world: World

    def __init__(self) -> None:
        super().__init__()
        self.model = self.world.fresh()
        self.numbers = 0  # of bodies and of consumers
        self.agreed = False

    # ---- the two sides of a step

    def ask(self, player: int, command: str, *arguments: Any) -> Any:
        self.agreed = False
        return self.world.players[player].ask(command, *arguments)

    def body(self, size: int) -> bytes:
        self.numbers += 1
        return f"{self.numbers}:".encode().ljust(size, b".")[:size]

    def pick(self, entries: list[Entry], number: int) -> Entry:
        return entries[number % len(entries)]

    def taker(self, player: int, number: int) -> Holder:
        """One of the player's consumers, the implicit one among them."""
        own = sorted({holder for holder in self.model.subscribers if holder[0] == player} | {(player, 0)})
        return own[number % len(own)]

    def check_row(self, row: Row | Raised, expected: Entry | str) -> None:
        if isinstance(expected, str):
            assert row == Raised(expected), f"{row} instead of {expected}"
            return
        assert not isinstance(row, Raised), f"{row} instead of {expected}"
        self.model.learn(expected, row)
        assert row == expected.row(True), f"{row} instead of {expected.row(True)}"

    # ---- produce

    @rule(
        player=players, size=st.integers(0, 5000), headers=headers, priority=priorities, delay=delays, ttl=lives,
        group=groups,
    )  # fmt: skip
    @precondition(lambda self: len(self.model.entries) < MOST)
    def put(
        self, player: int, size: int, headers: dict[str, Any], priority: int | None, delay: float, ttl: float | None,
        group: str | None,
    ) -> None:  # fmt: skip
        body, options, given = self.outgoing(size, headers, priority, delay, ttl, group)
        found = self.ask(player, "put", body, options)
        expected = self.model.put(body, **given)
        if isinstance(expected, str):
            assert found == Raised(expected), f"{found} instead of {expected}"
        else:
            assert isinstance(found, int), found
            expected.id = found

    @rule(
        player=players, sizes=st.lists(st.integers(0, 5000), min_size=1, max_size=7),
        headers=headers, priority=priorities, delay=delays, ttl=lives, group=groups,
    )  # fmt: skip
    @precondition(lambda self: len(self.model.entries) < MOST)
    def put_many(
        self, player: int, sizes: list[int], headers: dict[str, Any], priority: int | None, delay: float,
        ttl: float | None, group: str | None,
    ) -> None:  # fmt: skip
        _, options, given = self.outgoing(0, headers, priority, delay, ttl, group)
        if ttl == 0:
            sizes = [0]  # of several, the first may be gone before the last one needs its room, or not
        bodies = [self.body(size % (self.world.most_bytes + 1)) for size in sizes]
        found = self.ask(player, "put_many", bodies, options)
        for accepted, body in enumerate(bodies):
            expected = self.model.put(body, **given)
            if isinstance(expected, str):
                assert found == Raised(expected, accepted), f"{found} instead of {expected} after {accepted}"
                return
        assert found is None, found

    def outgoing(
        self, size: int, headers: dict[str, Any], priority: int | None, delay: float, ttl: float | None,
        group: str | None = None,
    ) -> tuple[bytes, dict[str, Any], dict[str, Any]]:  # fmt: skip
        """The body; the options for the queue; the same for its model."""
        options: dict[str, Any] = {"headers": headers}
        given: dict[str, Any] = {"headers": headers, "delayed": delay > 0, "ttl": ttl}
        if self.model.levels > 1 and priority is not None:
            options["priority"] = given["priority"] = priority
        if self.model.grouping is not None and group is not None:
            options["group"] = given["group"] = group
        if delay:
            options["delay"] = delay
        if ttl is not None:
            options["ttl"] = ttl
        return self.body(size % (self.world.most_bytes + 1)), options, given

    @rule(player=players, count=st.sampled_from([30, 300, 700]))
    @precondition(lambda self: self.model.service == OPEN and self.model.fits(10))
    def turn(self, player: int, count: int) -> None:
        found = self.ask(player, "turn", count)
        assert found is None, found
        self.model.tails[self.model.depth_of(4)] += count
        for name in ("put", "delivered", "acked"):
            self.model.counters[name] += count

    # ---- take

    @rule(player=players)
    def get(self, player: int) -> None:
        found = self.ask(player, "get")
        expected = self.model.get(player)
        wanted = Raised(expected) if isinstance(expected, str) else expected.body
        assert found == wanted, f"{found!r:.60} instead of {wanted!r:.60}"

    @rule(player=players, limit=st.integers(1, 8))
    def get_many(self, player: int, limit: int) -> None:
        found = self.ask(player, "get_many", limit)
        bodies: list[bytes] = []
        while len(bodies) < limit:
            expected = self.model.get(player)
            if isinstance(expected, str):
                if expected == "ShutDown" and not bodies:
                    assert found == Raised("ShutDown"), found
                    return
                break
            bodies.append(expected.body)
        assert found == bodies, f"{found!r:.200} instead of {bodies!r:.200}"

    @rule(player=players, number=picks)
    def receive(self, player: int, number: int) -> None:
        holder = self.taker(player, number)
        self.check_row(self.ask(player, "receive", holder[1], 0), self.model.receive(holder))

    @rule(player=players, number=picks, limit=st.integers(1, 5))
    def receive_many(self, player: int, number: int, limit: int) -> None:
        holder = self.taker(player, number)
        found = self.ask(player, "receive_many", holder[1], limit)
        entries: list[Entry] = []
        while len(entries) < limit:
            expected = self.model.receive(holder)
            if isinstance(expected, str):
                if expected == "ShutDown" and not entries:
                    assert found == Raised("ShutDown"), found
                    return
                break
            entries.append(expected)
        assert isinstance(found, list), found
        assert len(found) == len(entries), f"{len(found)} messages instead of {len(entries)}"
        for row, entry in zip(found, entries, strict=True):
            self.check_row(row, entry)

    @rule(player=players, number=picks, putter=players, headers=headers)
    @precondition(lambda self: self.model.service == OPEN and self.model.fits(40))
    def hand_over(self, player: int, number: int, putter: int, headers: dict[str, Any]) -> None:
        """Somebody waits, somebody else puts."""
        holder = self.taker(player, number)
        subscriber = self.model.subscribers.get(holder, Subscriber())
        ready = [e for e in self.model.entries if e.state == READY and subscriber.wants(e)]
        credit = subscriber.prefetch is None or self.model.load_of(holder) < subscriber.prefetch
        body, options, given = self.outgoing(8, headers, None, 0, None)
        wanted = subscriber.wants(Entry(0, body, headers))
        if putter == player or ready or not credit or not wanted:
            return
        self.agreed = False
        self.world.players[player].tell("receive", holder[1], 30.0)
        found = self.ask(putter, "put", body, options)
        row = self.world.players[player].answer()
        entry = self.model.put(body, **given)
        assert isinstance(entry, Entry)
        assert isinstance(found, int), found
        entry.id = found
        self.check_row(row, self.model.receive(holder))

    # ---- settle

    def settle(self, entry: Entry, outcome: str, **options: Any) -> None:
        assert entry.holder is not None
        found = self.ask(entry.holder[0], "settle", entry.place, outcome, options)
        assert found is None, found

    @rule(number=picks)
    @precondition(lambda self: self.model.held())
    def ack(self, number: int) -> None:
        entry = self.pick(self.model.held(), number)
        self.settle(entry, "ack")
        self.model.ack(entry)

    @rule(number=picks, delay=delays, elsewhere=st.booleans())
    @precondition(lambda self: self.model.held())
    def release(self, number: int, delay: float, elsewhere: bool) -> None:
        entry = self.pick(self.model.held(), number)
        self.settle(entry, "release", delay=delay, elsewhere=elsewhere)
        self.model.release(entry, delay > 0, elsewhere)

    @rule(number=picks, delay=st.none() | delays)
    @precondition(lambda self: self.model.held())
    def retry(self, number: int, delay: float | None) -> None:
        entry = self.pick(self.model.held(), number)
        self.settle(entry, "retry", delay=delay)
        self.model.retry(entry, None if delay is None else delay > 0)

    @rule(number=picks)
    @precondition(lambda self: self.model.held())
    def reject(self, number: int) -> None:
        entry = self.pick(self.model.held(), number)
        self.settle(entry, "reject")
        self.model.bury(entry, "rejected")

    @rule(number=picks, outcome=st.sampled_from(["ack", "release", "retry", "reject"]))
    @precondition(lambda self: self.model.lost)
    def settle_what_was_dropped(self, number: int, outcome: str) -> None:
        entry = self.pick(self.model.lost, number)
        assert entry.holder is not None
        found = self.ask(entry.holder[0], "settle", entry.place, outcome, {})
        assert found == Raised("SettlementError"), found
        self.model.lost.remove(entry)

    # ---- consumers and processes

    @rule(player=players, selector=selectors, prefetch=st.sampled_from([None, None, 2]))
    def subscribe(self, player: int, selector: str | None, prefetch: int | None) -> None:
        if sum(holder[0] == player and holder[1] > 0 for holder in self.model.subscribers) == CONSUMERS:
            return
        self.numbers += 1
        found = self.ask(player, "subscribe", self.numbers, selector, prefetch)
        assert found is None, found
        self.model.subscribers[player, self.numbers] = Subscriber(SELECTORS[selector], prefetch)

    @rule(number=picks)
    @precondition(lambda self: any(holder[1] > 0 for holder in self.model.subscribers))
    def unsubscribe(self, number: int) -> None:
        opened = sorted(holder for holder in self.model.subscribers if holder[1] > 0)
        opened = [holder for holder in opened if self.model.load_of(holder)] or opened
        holder = opened[number % len(opened)]
        found = self.ask(holder[0], "unsubscribe", holder[1])
        assert found == ["SettlementError"] * self.model.load_of(holder), found
        self.model.close(holder)

    @rule(player=players)
    def leave(self, player: int) -> None:
        found = self.ask(player, "leave")
        assert found is None, found
        self.model.leave(player)

    @rule(victim=players, witness=players)
    @precondition(lambda self: self.model.held())
    def kill(self, victim: int, witness: int) -> None:
        """With what it has in hand; another one notices; a third one takes its place."""
        dead = self.world.players[victim]
        dead.kill()
        self.model.die(victim, dead.pid)
        self.ask(witness if witness != victim else (victim + 1) % PLAYERS, "bury_the_dead")
        self.world.players[victim] = Player(self.world.path, self.world.make)
        self.world.use(victim, {})  # the options may have been altered

    # ---- look and manage

    @rule(player=players, selector=selectors, number=st.none() | picks)
    def browse(self, player: int, selector: str | None, number: int | None) -> None:
        places = [entry.place for entry in self.model.in_order()]
        start: int | str = "first" if number is None or not places else places[number % len(places)]
        found = self.ask(player, "browse", start, selector)
        first = 0 if isinstance(start, str) else start
        wants = SELECTORS[selector]
        assert found == [e.row() for e in self.model.in_order() if e.place >= first and wants(e)], found

    @rule(player=players, selector=selectors)
    def purge(self, player: int, selector: str | None) -> None:
        found = self.ask(player, "purge", selector)
        expected = self.model.purge(SELECTORS[selector])
        assert found == expected, f"{found} instead of {expected}"

    @rule(player=players, immediate=st.booleans())
    @precondition(lambda self: self.model.service == OPEN)
    def shutdown(self, player: int, immediate: bool) -> None:
        self.ask(player, "shutdown", immediate)
        self.model.service = STOPPED if immediate else DRAINING

    @rule(player=players)
    @precondition(lambda self: self.model.service != OPEN)
    def reopen(self, player: int) -> None:
        self.ask(player, "reopen")
        self.model.service = OPEN

    @rule(player=players, option=st.sampled_from(sorted(ALTERED)), number=picks)
    def alter(self, player: int, option: str, number: int) -> None:
        values: tuple[Any, ...] = ALTERED[option]
        change = {option: values[number % len(values)]}
        found = self.ask(player, "alter", change)
        assert found is None, found
        self.model.options.update(change)

    # ---- afterwards

    @invariant()
    def all_processes_see_the_model(self) -> None:
        awaits_expiry = any(entry.expired for entry in self.model.entries)
        self.model.expire()
        look = 0
        while True:
            look += 1
            for player in self.world.players:
                player.tell("look")
            views = [player.answer() for player in self.world.players]
            # What has expired goes at one of the next looks, not at once; everything else is there at once.
            if not awaits_expiry or views[-1].statistics["expired"] == self.model.counters["expired"] or look == LOOKS:
                break
        if awaits_expiry:
            views = [player.ask("look") for player in self.world.players]
        for row, entry in zip(views[0].rows, self.model.in_order(), strict=False):
            self.model.learn(entry, row)
        self.model.learn_next(views[0].statistics["next_position"])
        rows = [entry.row() for entry in self.model.in_order()]
        statistics = self.model.statistics()
        for number, view in enumerate(views):
            assert view.faults == [], f"player {number}: {view.faults}"
            assert view.rows == rows, f"player {number} sees {view.rows} instead of {rows}"
            seen = {name: view.statistics[name] for name in statistics}
            differ = {name: (seen[name], value) for name, value in statistics.items() if seen[name] != value}
            assert not differ, f"player {number}: (statistics, model) differ: {differ}"
            assert view.dead == self.model.dead, f"player {number}: {view.dead} instead of {self.model.dead}"
        self.agreed = True

    def teardown(self) -> None:
        if not self.agreed:
            self.world.close(in_peace=False)  # the failure is what counts; the next example has processes of its own
            return
        for player in self.world.players:
            assert player.ask("forget") is None
        left = self.world.players[0].ask("remains")
        assert left == (0, 0), f"(blocks in use, damage) are {left} when all queues are deleted"
