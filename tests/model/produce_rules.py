"""The rules of producers."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.model.entry import FAR, Entry
from tests.model.player import Raised
from tests.model.queue_model import MOST, OPEN
from tests.model.world import Scene, delays, headers, picks, players

SLOW = 30.0  # seconds; for a process that has to be scheduled

priorities = st.none() | st.integers(0, 9)
groups = st.sampled_from([None, "a", "b"])
lives = st.sampled_from([None, None, None, FAR, 0])


class ProduceRules(Scene):
    def outgoing(
        self, size: int, headers: dict[str, Any], priority: int | None, delay: float, ttl: float | None,
        group: str | None = None,
    ) -> tuple[bytes, dict[str, Any], dict[str, Any]]:  # fmt: skip
        """The body; the options for the queue; the same for its model. A delay beyond its life a put refuses."""
        ttl = None if self.world.flows and ttl == 0 else ttl
        lives = (ttl, self.model.options["max_ttl"])
        if any(life is not None and life <= delay for life in lives):
            delay = 0
        options: dict[str, Any] = {"headers": headers}
        given: dict[str, Any] = {"headers": headers, "delay": delay, "ttl": ttl}
        if self.model.levels > 1 and priority is not None:
            options["priority"] = given["priority"] = priority
        if self.model.grouping is not None and group is not None:
            options["group"] = given["group"] = group
        if delay:
            options["delay"] = delay
        if ttl is not None:
            options["ttl"] = ttl
        return self.body(size % (self.world.most_bytes + 1)), options, given

    def check_put(self, found: Any, expected: Entry | str) -> None:
        if isinstance(expected, str):
            assert found == Raised(expected), f"{found} instead of {expected}"
        else:
            assert isinstance(found, int), found
            expected.id = found

    @rule(
        player=players, size=st.integers(0, 5000), headers=headers, priority=priorities, delay=delays, ttl=lives,
        group=groups, by_loan=st.booleans(),
    )  # fmt: skip
    @precondition(lambda self: len(self.model.entries) < MOST)
    def put(
        self, player: int, size: int, headers: dict[str, Any], priority: int | None, delay: float, ttl: float | None,
        group: str | None, by_loan: bool,
    ) -> None:  # fmt: skip
        body, options, given = self.outgoing(size, headers, priority, delay, ttl, group)
        if by_loan:
            found = self.ask(player, "put_by_loan", body, options)
        else:  # where there is no room, "reject" does not wait either
            timeout = SLOW if self.model.options["overflow"] == "reject" else 0
            found = self.ask(player, "put", body, options, timeout)
        self.check_put(found, self.model.put(body, **given))

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
        if ttl == 0 or self.model.options["max_ttl"] == 0:
            sizes = sizes[:1]  # of several, the first may be gone before the last one needs its room, or not
        bodies = [self.body(size % (self.world.most_bytes + 1)) for size in sizes]
        found = self.ask(player, "put_many", bodies, options)
        for accepted, body in enumerate(bodies):
            expected = self.model.put(body, **given)
            if isinstance(expected, str):
                assert found == Raised(expected, accepted), f"{found} instead of {expected} after {accepted}"
                return
        assert found is None, found

    @rule(player=players, size=st.integers(0, 5000), headers=headers, immediate=st.sampled_from([True, 0, 0.0005]))
    @precondition(lambda self: self.model.options["max_ttl"] != 0)
    def put_immediate(self, player: int, size: int, headers: dict[str, Any], immediate: float) -> None:
        """Nobody waits, so it comes back. Messages that it has driven out are gone."""
        body, options, given = self.outgoing(size, headers, None, 0, None)
        expected = self.model.put(body, **given)
        if isinstance(expected, Entry):
            self.model.entries.remove(expected)
        found = self.ask(player, "put", body, {**options, "immediate": immediate})
        wanted = Raised(expected if isinstance(expected, str) else "Returned")
        assert found == wanted, f"{found} instead of {wanted}"

    @rule(player=players, number=picks, size=st.integers(0, 5000))
    @precondition(lambda self: self.model.options["overflow"] == "wait" and self.model.held())
    @precondition(lambda self: self.model.service == OPEN and self.model.options["max_ttl"] != 0)
    def wait_for_room(self, player: int, number: int, size: int) -> None:
        """One who puts waits until somebody else has settled a message."""
        body, options, given = self.outgoing(size, {}, None, 0, None)
        held = [entry for entry in self.model.held() if self.model.fits(len(body), entry) and entry.holder]
        held = [entry for entry in held if entry.holder is not None and entry.holder[0] != player]
        if self.model.fits(len(body)) or not held:
            return
        leaves = self.pick(held, number)
        assert leaves.holder is not None
        self.tell(player, "put", body, options, SLOW)
        self.ask(leaves.holder[0], "until_crowd", "producers_waiting", 1)
        found = self.ask(leaves.holder[0], "settle", leaves.place, "ack", {})
        assert found is None, found
        self.model.ack(leaves)
        self.check_put(self.answer(player), self.model.put(body, **given))

    @rule(player=players, count=st.sampled_from([30, 300, 700]))
    @precondition(lambda self: self.model.service == OPEN and self.model.fits(10))
    @precondition(lambda self: self.model.serves_newcomers() and self.model.options["max_ttl"] != 0)
    def turn(self, player: int, count: int) -> None:
        found = self.ask(player, "turn", count)
        assert found is None, found
        self.model.tails[self.model.depth_of(4)] += count
        for name in ("put", "delivered", "acked"):
            self.model.counters[name] += count
