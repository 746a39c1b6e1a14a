"""The consumers of a queue, and those of them that it serves, as the documentation has it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.model.entry import Entry, Holder, Wants, anything


@dataclass
class Subscriber:
    """A consumer: what it wants, how many it may hold, its rank, and what it was told to leave to others."""

    wants: Wants = anything
    prefetch: int | None = None
    priority: int = 0
    exclusive: bool = False
    refused: set[int] = field(default_factory=set)
    age: int = 0
    live: bool = True

    @property
    def rank(self) -> tuple[int, int]:
        """The smallest is served first."""
        return -self.priority, self.age


class CrowdModel:
    """Base of QueueModel."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options: dict[str, Any] = {
            "maxsize": 0, "max_bytes": 0, "max_attempts": 20, "max_deaths": 3, "overflow": "wait",
            "retry_delay": (0.0,), "dead_letter_expired": False, "max_ttl": None, "lease": None,
            "live_consumers": None, **options,
        }  # fmt: skip
        self.subscribers: dict[Holder, Subscriber] = {}
        self.opened = 0
        self.owners: dict[str, Holder] = {}  # of sticky groups

    def admits(self, exclusive: bool = False) -> bool:
        """Another consumer, or a get(). An implicit consumer is in the way only with something in hand."""
        if exclusive:
            return not any(holder[1] != 0 or self.held_by(holder) for holder in self.subscribers)
        return not any(s.exclusive for s in self.subscribers.values())

    def held_by(self, holder: Holder) -> list[Entry]:
        raise NotImplementedError

    def subscribe(self, holder: Holder, subscriber: Subscriber) -> str | None:
        """The name of the error, if it is refused."""
        if not self.admits(subscriber.exclusive):
            return "ConsumerRefused"
        self.opened += 1
        subscriber.age = self.opened
        subscriber.live = self.options["live_consumers"] is None
        self.subscribers[holder] = subscriber
        self.choose_live()
        return None

    def choose_live(self) -> None:
        """So many are served. Nobody who is live is displaced."""
        limit = self.options["live_consumers"] or len(self.subscribers)
        ranked = sorted(self.subscribers.values(), key=lambda subscriber: subscriber.rank)
        live = [subscriber for subscriber in ranked if subscriber.live]
        reserve = [subscriber for subscriber in ranked if not subscriber.live]
        for subscriber in reserve[: max(limit - len(live), 0)]:
            subscriber.live = True

    def serves_newcomers(self) -> bool:
        limit = self.options["live_consumers"]
        return self.admits() and (limit is None or len(self.subscribers) < limit)

    def drop(self, holder: Holder) -> None:
        """The consumer is gone, and what was its own with it."""
        self.disown(holder)
        del self.subscribers[holder]
        self.choose_live()

    def disown(self, holder: Holder) -> None:
        self.owners = {group: owner for group, owner in self.owners.items() if owner != holder}
