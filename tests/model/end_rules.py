"""The end of a queue, in each way that there is; then there is a new one of the same kind."""

import time

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.model.player import Player, View
from tests.model.queue_model import QueueModel
from tests.model.queue_rules import QueueRules
from tests.model.world import PLAYERS, SOON, players

ENOUGH = 2  # messages, for an end that says something

outcomes = st.sampled_from(["ack", "release"])


class EndRules(QueueRules):
    def __init__(self) -> None:
        super().__init__()
        self.ended = False  # once is enough, else no queue grows old

    @rule(player=players, outcome=outcomes)
    @precondition(lambda self: not self.ended and len(self.model.entries) >= ENOUGH)
    def delete(self, player: int, outcome: str) -> None:
        assert self.ask(player, "delete") is None
        self.go_over_to_a_new_one(list(range(PLAYERS)), outcome)

    @rule(player=players, by_death=st.booleans())
    @precondition(lambda self: not self.ended and len(self.model.entries) >= ENOUGH)
    @precondition(lambda self: not self.model.options.get("temporary"))
    def let_expire(self, player: int, by_death: bool) -> None:
        """expires=0: it goes with its last consumer."""
        for number in range(PLAYERS):
            self.leave(number)
        last = self.open(player)
        assert last is not None
        assert self.ask(player, "alter", {"expires": 0}) is None
        if by_death:
            self.murder(player, (player + 1) % PLAYERS)
            self.world.players[player] = Player(self.world.path, self.world.make)
        else:
            self.close(last)
        self.go_over_to_a_new_one([number for number in range(PLAYERS) if number != player], "ack")

    @rule(by_death=st.booleans(), outcome=outcomes)
    @precondition(lambda self: not self.ended and len(self.model.entries) >= ENOUGH)
    @precondition(lambda self: self.model.options.get("temporary"))
    def lose_the_maker(self, by_death: bool, outcome: str) -> None:
        """A temporary queue goes with the process that made it."""
        if by_death:
            self.murder(0, 1)
            self.world.players[0] = Player(self.world.path, self.world.make)
        else:
            assert self.ask(0, "part") is None
            self.model.leave(0)
        self.go_over_to_a_new_one(list(range(1, PLAYERS)), outcome)

    def wait_for(self, player: int, name: str, model: QueueModel | None) -> View | None:
        """The processes that look do the work, at one of their next looks."""
        end = time.monotonic() + SOON
        while True:
            view: View | None = self.ask(player, "look_at", name)
            is_there = view is None if model is None else view and view.statistics["put"] == model.counters["put"]
            if is_there or time.monotonic() > end:
                return view

    def go_over_to_a_new_one(self, present: list[int], outcome: str) -> None:
        """Everybody knows; what is in hand can be settled as ever; the rest is where it was to go."""
        self.ended = True
        self.model.delete()
        for player in present:
            assert self.wait_for(player, self.world.jobs, None) is None, f"player {player} still sees it"
        for entry in self.model.held():
            assert entry.holder is not None
            found = self.ask(entry.holder[0], "settle", entry.place, outcome, {})
            assert found is None, found
            if outcome == "ack":
                self.model.ack(entry)
            else:
                self.model.give_up(entry)
        for name, model in self.models().items():
            if model is not None and name != self.world.jobs:
                self.compare(name, model, [self.wait_for(player, name, model) for player in present])
        for player in range(PLAYERS):
            assert self.ask(player, "forget") is None
        self.begin()
