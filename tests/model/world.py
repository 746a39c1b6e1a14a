"""The processes and their queues, with a model of each; what every step of the machine has in common."""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

import shmq
from tests.model.entry import FAR, TINY, Entry, Holder, Wants, anything
from tests.model.player import Actor, Player, Raised, View
from tests.model.queue_model import QueueModel

PLAYERS = 3
CONSUMERS = 3  # at once, of one player, besides the implicit one
SOON = 5.0  # seconds; what is due is done by then
DUE = ("expired", "ready", "delayed")  # figures that change by themselves
SELDOM = 7  # steps
# The second queue of each broker: messages are moved to it and back.
OTHER: Mapping[str, Any] = {"maxsize": 4, "priorities": 2}

SELECTORS: Mapping[str | None, Wants] = {
    None: anything,
    "kind = 'a'": lambda entry: entry.headers.get("kind") == "a",
    "kind IS NULL OR n >= 2": lambda entry: "kind" not in entry.headers or entry.headers.get("n", 0) >= 2,
    "JMSPriority > 4": lambda entry: entry.priority > 4,
    "JMSRedelivered = TRUE": lambda entry: entry.redelivered,
    "JMSXDeliveryCount = 1": lambda entry: entry.attempts + entry.deaths == 0,
}

players = st.integers(0, PLAYERS - 1)
picks = st.integers(0, 11)
selectors = st.sampled_from(list(SELECTORS))
headers = st.fixed_dictionaries({}, optional={"kind": st.sampled_from(["a", "b"]), "n": st.integers(0, 3)})
delays = st.sampled_from([0, 0, 0, FAR, TINY])


class World:
    """The processes, and the kind of queue that they use. Lives as long as the test; each example has a new queue."""

    def __init__(
        self, path: Path, options: Mapping[str, Any], most_bytes: int,
        make: type[Actor] = Actor, model: type[QueueModel] = QueueModel,
    ) -> None:  # fmt: skip
        self.path, self.options, self.most_bytes, self.make, self.model = path, options, most_bytes, make, model
        self.players: list[Player] = []
        self.queues = 0

    @property
    def flows(self) -> bool:
        """To disk, where housekeeping finds a moment later what has expired: no message is given a life of nothing."""
        return self.options.get("max_memory") is not None

    @property
    def jobs(self) -> str:
        return f"jobs{self.queues}"

    @property
    def other(self) -> str:
        return f"other{self.queues}"

    def fresh(self) -> tuple[QueueModel, QueueModel | None]:
        """A queue that nobody has used yet, and all players at it; the second one only if it takes the dead."""
        self.players = [player for player in self.players if player.alive]
        for player in self.players:
            player.ask("reap_the_dead")
        while len(self.players) < PLAYERS:
            self.players.append(Player(self.path, self.make))
        self.queues += 1
        options, other = dict(self.options), None
        if "dead_letter" in options:
            options["dead_letter"] = self.other
            other = self.declare_other({})
        for number in range(PLAYERS):
            self.use(number, options)
        return self.model(self.options, other), other

    def declare_other(self, options: Mapping[str, Any]) -> QueueModel:
        found = self.players[0].ask("declare", self.other, dict(options))
        assert found is None, found
        return self.model(options)

    def use(self, number: int, options: dict[str, Any]) -> None:
        found = self.players[number].ask("use", self.jobs, options)
        assert found is None, found

    def replace(self, number: int) -> None:
        """For who is dead another one comes."""
        self.players[number] = Player(self.path, self.make)
        self.use(number, {})  # the options may have been altered

    def close(self, in_peace: bool) -> None:
        for player in self.players:
            player.end() if in_peace else player.kill()
        if not in_peace:  # what a failure has left would fill the memory while it is made smaller
            with suppress(shmq.BrokerNotFound):
                shmq.open(self.path, create=False).delete(force=True)


class Scene(RuleBasedStateMachine):
    """Base of the machine: both sides of a step, and what is compared after it."""

    world: World

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0  # of bodies and of consumers
        self.begin()

    def begin(self) -> None:
        self.model, self.other = self.world.fresh()
        self.pictures: dict[str, Any] = {}  # what each queue looked like when it was last compared
        self.steps = 0
        self.agreed = False

    def ask(self, player: int, command: str, *arguments: Any) -> Any:
        self.agreed = False
        return self.world.players[player].ask(command, *arguments)

    def tell(self, player: int, command: str, *arguments: Any) -> None:
        self.agreed = False
        self.world.players[player].tell(command, *arguments)

    def answer(self, player: int) -> Any:
        return self.world.players[player].answer()

    def body(self, size: int) -> bytes:
        self.numbers += 1
        return f"{self.numbers}:".encode().ljust(size, b".")[:size]

    def pick(self, entries: list[Entry], number: int) -> Entry:
        return entries[number % len(entries)]

    def taker(self, player: int, number: int) -> Holder:
        """One of the player's consumers, the implicit one among them."""
        own = sorted({holder for holder in self.model.subscribers if holder[0] == player} | {(player, 0)})
        return own[number % len(own)]

    def second(self) -> QueueModel:
        """The model of the second queue, which is made when it is first needed."""
        if self.other is None:
            self.other = self.world.declare_other(OTHER)
        return self.other

    def check_row(self, row: Any, expected: Entry | str) -> None:
        if isinstance(expected, str):
            assert row == Raised(expected), f"{row} instead of {expected}"
            return
        assert not isinstance(row, Raised), f"{row} instead of {expected}"
        self.model.learn(expected, row)
        wanted = self.model.row(expected, True)
        assert row == wanted, f"{row} instead of {wanted}"

    # ---- afterwards

    def models(self) -> dict[str, QueueModel | None]:
        """All queues that there may be."""
        dead = None if self.model.dead is self.other else self.model.dead
        return {self.world.jobs: self.model, self.world.other: self.other, f"{self.world.jobs}.dead": dead}

    @invariant()
    def all_processes_see_the_model(self) -> None:
        there = [model for model in self.models().values() if model is not None]
        for model in there:
            model.expire()
        waits = any(model.waits for model in there)
        for model in there:
            model.waits = False
        if waits:
            self.wait_for_what_is_due()
        self.steps += 1
        models = {name: model for name, model in self.models().items() if self.is_worth_a_look(name, model)}
        for player in range(PLAYERS):
            self.tell(player, "look", list(models))
        views: list[list[View | None]] = [self.answer(player) for player in range(PLAYERS)]
        for place, name in enumerate(models):
            self.compare(name, models[name], [seen[place] for seen in views])
        self.agreed = True

    def wait_for_what_is_due(self) -> None:
        """Messages that expired, or are due, go at one of the next looks, not at once; all else is there at once."""
        end = time.monotonic() + SOON
        expected, found = self.model.statistics(), None
        while found != expected and time.monotonic() < end:
            view = self.ask(PLAYERS - 1, "look_at", self.world.jobs)
            found = {name: expected[name] if name not in DUE else view.statistics[name] for name in expected}

    def is_worth_a_look(self, name: str, model: QueueModel | None) -> bool:
        """Players look at an unchanged queue now and then only, but always at the one that all of this is about."""
        picture = None if model is None else (model.statistics(), [model.row(entry) for entry in model.in_order()])
        is_new = self.pictures.get(name) != picture
        self.pictures[name] = picture
        return is_new or name == self.world.jobs or self.steps % SELDOM == 0

    def compare(self, name: str, model: QueueModel | None, views: list[View | None]) -> None:
        if model is None:
            assert views == [None] * PLAYERS, f"there is a queue {name}: {views}"
            return
        first = views[0]
        assert first is not None, f"there is no queue {name}"
        for row, entry in zip(first.rows, model.in_order(), strict=False):
            model.learn(entry, row)
        model.learn_next(first.statistics["next_position"])
        rows = [model.row(entry) for entry in model.in_order()]
        statistics = model.statistics()
        for number, view in enumerate(views):
            who = f"player {number}, queue {name}"
            assert view is not None, who
            assert view.faults == [], f"{who}: {view.faults}"
            assert view.rows == rows, f"{who} sees {view.rows} instead of {rows}"
            seen = {key: view.statistics[key] for key in statistics}
            if self.world.flows and seen["first_position"] is not None and statistics["first_position"] is not None:
                # Of what is on disk it is not known which has gone: no message lies before it.
                assert seen["first_position"] <= statistics["first_position"], who
                seen["first_position"] = statistics["first_position"]
            differ = {key: (seen[key], value) for key, value in statistics.items() if seen[key] != value}
            assert not differ, f"{who}: (statistics, model) differ: {differ}"

    def teardown(self) -> None:
        if not self.agreed:
            self.world.close(in_peace=False)  # the failure is what counts; the next example has processes of its own
            return
        for player in self.world.players:
            assert player.ask("forget") is None
        left = self.world.players[0].ask("remains")
        assert left == (0, 0), f"(blocks in use, damage) are {left} when all queues are deleted"
