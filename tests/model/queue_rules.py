"""Calls on a queue as a whole: look, follow, purge, move, alter, shut down, delete."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from shmq.alerts import Alerts
from shmq.options.stage import NOT_BUILT
from tests.model.consumer_rules import ConsumerRules
from tests.model.entry import FAR, PLACE_BITS, TINY, Entry, Wants
from tests.model.player import Raised
from tests.model.queue_model import DRAINING, OPEN, STOPPED, QueueModel
from tests.model.take_rules import TakeRules
from tests.model.world import PLAYERS, SELECTORS, headers, picks, players, selectors

# Options that may be altered while the queue is in use. The package says which are not built yet; they are left out.
ALTERED = {
    name: values
    for name, values in {
        "max_attempts": (0, 1, 2, 20),
        "max_deaths": (0, 1, 2, 3),
        "maxsize": (0, 2, 5, 1000),
        "max_bytes": (0, 50, 6000),
        "max_memory": (None, 1, 200, 6000),
        "retry_delay": ((0.0,), (0.0, FAR), (TINY, 0.0)),
        "dead_letter_expired": (False, True),
        "overflow": ("wait", "reject", "drop_oldest"),
        "max_ttl": (None, FAR, None, 0.0),
        "lease": (None, FAR),
        "live_consumers": (None, 1, 2),
        "alerts": (None, Alerts(messages=1, bytes=1, message_bytes=1, age=TINY, repeat=TINY)),
    }.items()
    if name not in NOT_BUILT
}

# Conditions that do not change while a message is there: a browser does not come back to one that it has passed.
FOLLOWED = [None, "kind = 'a'", "kind IS NULL OR n >= 2", "JMSPriority > 4"]


@dataclass
class Follower:
    """A browser that goes on: its next place on each level, and what it wants."""

    places: list[int]
    wants: Wants

    def seen(self, queue: QueueModel) -> list[Entry]:
        """The entries that it sees now, until it has to wait. It has passed all that are there then."""
        found = [e for e in queue.in_order() if e.place >= self.places[e.depth] and self.wants(e)]
        self.places = [queue.next_place(depth) for depth in range(queue.levels)]
        return found


class QueueRules(ConsumerRules, TakeRules):
    def begin(self) -> None:
        super().begin()
        self.followers: dict[int, Follower] = {}

    def is_out(self, player: int) -> None:
        super().is_out(player)
        self.followers.pop(player, None)

    @rule(player=players, selector=selectors, number=st.none() | picks)
    def browse(self, player: int, selector: str | None, number: int | None) -> None:
        places = [entry.place for entry in self.model.in_order()]
        start: int | str = "first" if number is None or not places else places[number % len(places)]
        found = self.ask(player, "browse", start, selector)
        first = 0 if isinstance(start, str) else start
        wants = SELECTORS[selector]
        assert found == [self.model.row(e) for e in self.model.in_order() if e.place >= first and wants(e)], found

    @rule(player=players)
    def join(self, player: int) -> None:
        found = self.ask(player, "join")
        assert found == (None if self.model.join() else Raised("Timeout")), found

    # ---- a browser that goes on

    @rule(player=players, start=st.sampled_from(["first", "next"]), selector=st.sampled_from(FOLLOWED))
    def follow(self, player: int, start: str, selector: str | None) -> None:
        found = self.ask(player, "follow", start, selector)
        assert found is None, found
        levels = range(self.model.levels)
        places = [depth << PLACE_BITS if start == "first" else self.model.next_place(depth) for depth in levels]
        self.followers[player] = Follower(places, SELECTORS[selector])

    @rule(number=picks, headers=headers, step=st.integers(1, PLAYERS - 1))
    @precondition(lambda self: self.followers)
    def go_on_following(self, number: int, headers: dict[str, Any], step: int) -> None:
        """It sees each message that has come since, once, in order; at the end it waits for the next one."""
        player = sorted(self.followers)[number % len(self.followers)]
        follower = self.followers[player]
        if self.model.service != OPEN:  # to the end
            self.check_followed(self.ask(player, "followed", None), follower.seen(self.model))
            del self.followers[player]
            return
        expected = follower.seen(self.model)
        self.check_followed(self.ask(player, "followed", len(expected)), expected)
        if self.model.fits(40) and follower.wants(Entry(0, b"", headers)) and self.model.options["max_ttl"] != 0:
            body, options, given = self.outgoing(8, headers, None, 0, None)
            self.tell(player, "followed", 1)
            self.check_put(self.ask((player + step) % PLAYERS, "put", body, options), self.model.put(body, **given))
            found = self.answer(player)
            self.model.learn(self.model.entries[-1], found[0])
            self.check_followed(found, follower.seen(self.model))

    def check_followed(self, found: Any, expected: list[Entry]) -> None:
        rows = [self.model.row(entry) for entry in expected]
        assert found == rows, f"{found} instead of {rows}"

    # ---- manage

    @rule(player=players, selector=selectors)
    def purge(self, player: int, selector: str | None) -> None:
        found = self.ask(player, "purge", selector)
        expected = self.model.purge(SELECTORS[selector])
        assert found == expected, f"{found} instead of {expected}"

    @rule(
        player=players, back=st.booleans(), selector=selectors, limit=st.sampled_from([None, None, 1, 2]),
        copy=st.booleans(),
    )  # fmt: skip
    @precondition(lambda self: self.model.entries or (self.other is not None and self.other.entries))
    def move(self, player: int, back: bool, selector: str | None, limit: int | None, copy: bool) -> None:
        """To the second queue, or from there; what was dead lives again."""
        sides = [(self.world.jobs, self.model), (self.world.other, self.second())]
        self.transfer(player, sides[back], sides[not back], selector, limit, copy)

    @rule(player=players, selector=selectors, limit=st.sampled_from([None, 1]), copy=st.booleans())
    @precondition(lambda self: self.model.dead is not None and self.model.dead is not self.other)
    def revive(self, player: int, selector: str | None, limit: int | None, copy: bool) -> None:
        assert self.model.dead is not None
        dead, jobs = (f"{self.world.jobs}.dead", self.model.dead), (self.world.jobs, self.model)
        self.transfer(player, dead, jobs, selector, limit, copy)

    def transfer(
        self, player: int, source: tuple[str, QueueModel], to: tuple[str, QueueModel], selector: str | None,
        limit: int | None, copy: bool,
    ) -> None:  # fmt: skip
        options = {"selector": selector, "limit": limit, "copy": copy}
        found = self.ask(player, "move", (source[0], to[0]), options)
        error, moved = source[1].move(to[1], SELECTORS[selector], limit, copy)
        wanted = moved if error is None else Raised(error, moved if error == "Full" else 0)
        assert found == wanted, f"{found} instead of {wanted}"

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
        fixed = "max_ttl" if self.world.flows else "max_memory"  # on disk what has expired is found a moment later
        values: tuple[Any, ...] = ALTERED[option][:1] if option == fixed else ALTERED[option]
        change = {option: values[number % len(values)]}
        found = self.ask(player, "alter", change)
        assert found is None, found
        self.model.options.update(change)
        self.model.choose_live()
