"""A message in a queue, as the model keeps it, and what a process sees of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from shmq.headers import encode_headers

READY, HELD, DELAYED = "ready", "held", "delayed"
PLACE_BITS = 48
USUAL_PRIORITY = 4
FAR = 1e6  # seconds; nothing becomes due while a test runs
TINY = 1e-6  # seconds; due at one of the next looks

# The holder of a message: player and number of its consumer; 0: the implicit one of Queue.receive; GETTER: its get().
Holder = tuple[int, int]
GETTER = -1
# Of a dead one: reason, error, the processes that died with it.
Death = tuple[str, str | None, tuple[int, ...]]
# A process sees of it: position, id, body, headers, priority, redelivered, delivery count, mortal, group, death
Row = tuple[int, int, bytes, Mapping[str, Any], int, bool, int, bool, str | None, Death | None]


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
    mortal: bool = False  # has a time to live of its own
    expired: bool = False
    death: Death | None = None
    known: bool = False
    id: int | None = None  # put_many does not tell: learned at the first look, and then the place, too

    @property
    def depth(self) -> int:
        return self.place >> PLACE_BITS

    @property
    def size(self) -> int:
        return len(encode_headers(self.headers, group=self.group)) + len(self.body)

    def elsewhere(self) -> "Entry":
        """The message as another queue gets it, without its history."""
        fresh = Entry(0, self.body, self.headers, self.priority, self.group, mortal=self.mortal)
        return replace(fresh, state=self.state if self.holder is None else READY)

    def row(self, being_delivered: bool = False, bounded: bool = False) -> Row:
        """bounded: its queue has a limit for times to live."""
        count = self.attempts + self.deaths + being_delivered
        return (
            self.place, self.id or 0, self.body, self.headers, self.priority,
            self.redelivered, count, self.mortal or bounded, self.group, self.death,
        )  # fmt: skip


Wants = Callable[[Entry], bool]


def anything(_: Entry) -> bool:
    return True
