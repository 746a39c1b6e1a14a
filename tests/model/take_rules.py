"""Takers take, settle, and find out what was taken from them."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.model.crowd_model import Subscriber
from tests.model.entry import FAR, Entry, Holder
from tests.model.player import Raised
from tests.model.queue_model import QueueModel, Taken
from tests.model.world import SELECTORS, Scene, delays, picks, players, selectors

LEASE = 0.005  # seconds; until it is over the machine looks again and again
ERRORS = st.sampled_from([None, "no carrier"])


class TakeRules(Scene):
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
                if expected != "Empty" and not bodies:
                    assert found == Raised(expected), found
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
                if expected != "Empty" and not entries:
                    assert found == Raised(expected), found
                    return
                break
            entries.append(expected)
        assert isinstance(found, list), found
        assert len(found) == len(entries), f"{len(found)} messages instead of {len(entries)}"
        for row, entry in zip(found, entries, strict=True):
            self.check_row(row, entry)

    @rule(
        player=players, limit=st.integers(1, 6), selector=selectors, prefetch=st.sampled_from([None, None, 2]),
        priority=st.sampled_from([0, 7]), exclusive=st.booleans(),
    )  # fmt: skip
    def sweep(
        self, player: int, limit: int, selector: str | None, prefetch: int | None, priority: int, exclusive: bool
    ) -> None:
        """Through a consumer of both queues, which takes so many, acks them, and goes."""
        self.numbers += 1
        names, both = [self.world.jobs, self.world.other], [self.model, self.second()]
        terms: dict[str, Any] = {"prefetch": prefetch, "priority": priority, "exclusive": exclusive}
        found = self.ask(player, "sweep", names, limit, {"selector": selector, **terms})
        holder, wants = (player, self.numbers), SELECTORS[selector]
        for queue in both:
            refused = queue.subscribe(holder, Subscriber(wants, **terms))
            if refused is not None:
                assert found == Raised(refused), found
                return
        entries, shut = self.take_in_turn(holder, both, min(limit, prefetch or limit))
        for which, entry in entries:
            both[which].ack(entry)
        for queue in both:
            queue.close(holder)
        expected = ([(names[which], entry.body) for which, entry in entries], shut)
        assert found == expected, f"{found!r:.200} instead of {expected!r:.200}"

    def take_in_turn(self, holder: Holder, both: list[QueueModel], limit: int) -> tuple[list[tuple[int, Entry]], bool]:
        """The entries that come, from which queue, and whether all queues were found shut down."""
        turn, taken = 0, []
        for _ in range(limit):
            outcomes = []
            for which in (turn, 1 - turn):
                entry = both[which].receive(holder)
                outcomes.append(entry)
                if isinstance(entry, Entry):
                    taken.append((which, entry))
                    turn = 1 - which
                    break
            if outcomes == ["ShutDown"] * 2:
                return taken, True
        return taken, False

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
        self.model.release(entry, delay, elsewhere)

    @rule(number=picks, delay=st.none() | delays, error=ERRORS)
    @precondition(lambda self: self.model.held())
    def retry(self, number: int, delay: float | None, error: str | None) -> None:
        entry = self.pick(self.model.held(), number)
        self.settle(entry, "retry", delay=delay, error=error)
        self.model.retry(entry, delay, error)

    @rule(number=picks, error=ERRORS)
    @precondition(lambda self: self.model.held())
    def reject(self, number: int, error: str | None) -> None:
        entry = self.pick(self.model.held(), number)
        self.settle(entry, "reject", error=error)
        self.model.bury(entry, "rejected", error)

    @rule(number=picks)
    @precondition(lambda self: self.model.held())
    def touch(self, number: int) -> None:
        entry = self.pick(self.model.held(), number)
        assert entry.holder is not None
        found = self.ask(entry.holder[0], "touch", entry.place)
        assert found is None, found

    @rule(number=picks, outcome=st.sampled_from(["ack", "release", "retry", "reject", "touch"]))
    @precondition(lambda self: self.model.taken)
    def settle_what_was_taken(self, number: int, outcome: str) -> None:
        self.settle_late(self.model.taken[number % len(self.model.taken)], outcome)

    def settle_late(self, taken: Taken, outcome: str) -> None:
        found = self.ask(taken.holder[0], "settle_late", taken.place, outcome)
        assert found == Raised("SettlementError"), found
        self.model.taken.remove(taken)

    @rule(player=players, number=picks)
    @precondition(lambda self: self.model.options["max_ttl"] != 0)
    def overrun(self, player: int, number: int) -> None:
        """A message is held for longer than its lease; those that come after it have a longer one."""
        holder = self.taker(player, number)
        assert self.ask(player, "alter", {"lease": LEASE}) is None
        row = self.ask(player, "receive_briefly", holder[1])
        assert self.ask(player, "alter", {"lease": FAR}) is None
        self.model.options["lease"] = FAR
        expected = self.model.receive(holder)
        if row is not None:
            self.check_row(row, expected)
        if isinstance(expected, Entry):
            self.model.overrun(expected)
            if self.model.grouping is not None:
                # The message counts as in its consumer's hands until that finds out: its group is free within the
                # patience, not at once.
                self.wait_for_what_is_due()
                self.settle_late(self.model.taken[-1], "ack")
