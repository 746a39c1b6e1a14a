"""Consumers come, wait, are handed something, and go; so do their processes."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.model.crowd_model import Subscriber
from tests.model.entry import READY, Entry, Holder, Wants, anything
from tests.model.player import Raised
from tests.model.produce_rules import SLOW, ProduceRules
from tests.model.queue_model import OPEN
from tests.model.world import CONSUMERS, PLAYERS, SELECTORS, headers, picks, players, selectors

# Lower and higher; what get() takes counts as 0.
RANKS = st.sampled_from([(0, 5), (-1, 1), (-5, 0), (1, 2)])


class ConsumerRules(ProduceRules):
    def is_crowded(self, player: int) -> bool:
        return sum(holder[0] == player and holder[1] > 0 for holder in self.model.subscribers) >= CONSUMERS

    def is_out(self, player: int) -> None:
        """Out of the broker, or dead: what it had of the queue is gone."""

    def open(self, player: int, selector: str | None = None, wants: Wants = anything, **options: Any) -> Holder | None:
        """None: refused, as the model expects."""
        self.numbers += 1
        found = self.ask(player, "subscribe", self.numbers, {"selector": selector, **options})
        subscriber = Subscriber(wants, **options)
        refused = self.model.subscribe((player, self.numbers), subscriber)
        assert found == (refused and Raised(refused)), f"{found} instead of {refused}"
        return None if refused else (player, self.numbers)

    @rule(
        player=players, selector=selectors, prefetch=st.sampled_from([None, None, 2]),
        priority=st.sampled_from([0, 0, 0, 7, -7]), exclusive=st.sampled_from([False, False, False, True]),
    )  # fmt: skip
    def subscribe(
        self, player: int, selector: str | None, prefetch: int | None, priority: int, exclusive: bool
    ) -> None:
        if not self.is_crowded(player):
            wants = SELECTORS[selector]
            self.open(player, selector, wants, prefetch=prefetch, priority=priority, exclusive=exclusive)

    @rule(player=players)
    @precondition(lambda self: self.model.admits() and self.model.subscribers)
    def make_exclusive(self, player: int) -> None:
        """All consumers go, and one comes that wants to be alone."""
        for number in range(PLAYERS):
            self.leave(number)
        self.open(player, exclusive=True)

    @rule(number=picks)
    @precondition(lambda self: any(holder[1] > 0 for holder in self.model.subscribers))
    def unsubscribe(self, number: int) -> None:
        opened = sorted(holder for holder in self.model.subscribers if holder[1] > 0)
        opened = [holder for holder in opened if self.model.hands_of(holder)] or opened
        self.close(opened[number % len(opened)])

    def close(self, holder: Holder) -> None:
        found = self.ask(holder[0], "unsubscribe", holder[1])
        assert found == ["SettlementError"] * self.model.hands_of(holder), found
        self.model.close(holder)

    @rule(player=players)
    def leave(self, player: int) -> None:
        if self.model.options.get("temporary") and player == 0:
            return  # the queue would go with it: a rule of its own
        found = self.ask(player, "leave")
        assert found is None, found
        self.model.leave(player)
        self.is_out(player)

    @rule(victim=players, witness=players)
    @precondition(lambda self: self.model.held() or self.model.subscribers)
    def kill(self, victim: int, witness: int) -> None:
        """With what it has in hand; another one notices; a third one takes its place."""
        if not self.model.options.get("temporary") or victim != 0:
            self.murder(victim, witness if witness != victim else (victim + 1) % PLAYERS)
            self.world.replace(victim)

    def murder(self, victim: int, witness: int) -> None:
        dead = self.world.players[victim]
        dead.kill()
        self.model.die(victim, dead.pid)
        self.is_out(victim)
        self.ask(witness, "reap_the_dead")

    # ---- somebody waits, somebody else puts

    @rule(player=players, number=picks, putter=players, headers=headers, immediate=st.booleans())
    @precondition(lambda self: self.model.service == OPEN and self.model.fits(40))
    @precondition(lambda self: self.model.options["max_ttl"] != 0)
    def hand_over(self, player: int, number: int, putter: int, headers: dict[str, Any], immediate: bool) -> None:
        holder = self.taker(player, number)
        subscriber = self.model.subscribers.get(holder) or Subscriber(live=self.model.serves_newcomers())
        ready = [e for e in self.model.entries if e.state == READY and subscriber.wants(e)]
        body, options, given = self.outgoing(8, headers, None, 0, None)
        wanted = subscriber.wants(Entry(0, body, headers))
        admitted = subscriber.exclusive or self.model.admits()
        served = admitted and subscriber.live and self.model.has_credit(holder)
        if putter == player or ready or not wanted or not served:
            return
        self.tell(player, "receive", holder[1], SLOW)
        found = self.ask(putter, "put", body, {**options, "immediate": SLOW} if immediate else options)
        row = self.answer(player)
        self.check_put(found, self.model.put(body, **given))
        self.check_row(row, self.model.receive(holder))

    @rule(low=players, step=st.integers(1, PLAYERS - 1), ranks=RANKS, stay=st.booleans())
    @precondition(lambda self: self.model.service == OPEN and self.model.options["max_ttl"] != 0)
    @precondition(lambda self: self.model.fits(80, count=2) and self.model.admits())
    def serve_by_rank(self, low: int, step: int, ranks: tuple[int, int], stay: bool) -> None:
        """Two wait for the same; the one of higher priority gets it, whoever else takes at that moment."""
        high = (low + step) % PLAYERS
        putter = PLAYERS - low - high
        self.numbers += 1
        rank = self.numbers
        selector, wants = f"rank = {rank}", lambda entry: entry.headers.get("rank") == rank
        holders = [self.open(who, selector, wants, priority=of) for who, of in ((low, ranks[0]), (high, ranks[1]))]
        waiting = [holder for holder in holders if holder is not None and self.model.subscribers[holder].live]
        waiting.sort(key=lambda holder: -self.model.subscribers[holder].priority)
        for holder in waiting:
            self.tell(holder[0], "receive", holder[1], SLOW)
        if waiting:
            self.ask(putter, "until_crowd", "asleep", len(waiting))
        for holder in waiting:
            self.hand_to(holder, putter, rank)
        for opened in holders:
            if opened is not None and not (stay and opened in waiting):
                self.close(opened)

    def hand_to(self, holder: Holder, putter: int, rank: int) -> None:
        body, options, given = self.outgoing(8, {"rank": rank}, None, 0, None)
        nothing_else = all(entry.state != READY for entry in self.model.entries)
        found = self.ask(putter, "put", body, options)
        if nothing_else and self.model.subscribers[holder].priority > 0:
            assert self.ask(putter, "get") == Raised("Empty")
        row = self.answer(holder[0])
        self.check_put(found, self.model.put(body, **given))
        self.check_row(row, self.model.receive(holder))
