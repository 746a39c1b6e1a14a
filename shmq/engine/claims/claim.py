"""A queue's entries moved into another one, where positions say which they are: what readers of ranges stand on.

The queue of claims has one level and no times, and nobody consumes from it. So the entries between two of its positions
are the same whenever they are looked at, until they are discarded.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from shmq.core import clock
from shmq.core.handles import (
    browse_entry,
    census_of,
    claim_entries,
    directory_entry,
    ends_of,
    purge_at,
    wait_for_newcomers,
)
from shmq.core.handles import discard_below as discard_entries
from shmq.core.queue import Browsed, Subscription, reap
from shmq.engine.broker.broker import broker_membership
from shmq.engine.dead_lettering.upkeep import do_upkeep
from shmq.engine.handle.open_queue import membership_of
from shmq.engine.handle.places import first_of
from shmq.engine.message.selection import WallOf, loaded
from shmq.errors import Empty, Full, OutOfSpace, ShutDown, Timeout
from shmq.wait_time import LEFT_TO_TAKE_LOOK

if TYPE_CHECKING:
    from shmq.engine.broker.broker import Broker
    from shmq.engine.queue.queue import Queue

__all__ = [
    "Claimed",
    "Claimer",
    "bounds_of",
    "discard_at",
    "discard_below",
    "entries_between",
    "identity_of",
    "levels_of",
    "queue_of_claims",
    "settle_the_dead",
    "wall_clock_of",
]

_NEVER: Final = (1 << 64) - 1


class Claimed(NamedTuple):
    """The entries that one call of claim() moved."""

    entries: int
    nbytes: int
    full: bool  # there was no room for more


def queue_of_claims(broker: Broker, name: str, *, create: bool = True) -> Queue[Any]:
    """Declares or opens a queue for claims: what lies there never dies of attempts.

    Raises what Broker.queue() raises.
    """
    return broker.queue(name, create=create, max_attempts=0, max_deaths=0)


class Claimer:
    """Moves entries of one queue into another.

    Arguments:
        source: whose entries are claimed, in the order in which a consumer would get them.
        target: as queue_of_claims() makes it; of the same broker.
        selector: only messages for which it is true; None: all.

    Raises SelectorError.

    Example:
        >>> Claimer(orders, queue_of_claims(broker, "orders.claims")).claim(1000, 1 << 20)
        Claimed(entries=2, nbytes=17, full=False)
    """

    def __init__(self, source: Queue[Any], target: Queue[Any], selector: str | None = None) -> None:
        self._source = source
        self._target = target
        self._subscription = Subscription(found) if (found := loaded(selector)) is not None else None

    def claim(self, entries: int, nbytes: int, *, timeout: float = 0.0) -> Claimed:
        """Moves at most so many entries, and so many bytes of bodies and headers, but one entry at least.

        Entries that are delayed or with a consumer stay. Each entry is in exactly one of the two queues, whenever the
        claimer is killed. Id and time of the put stay; the time to live ends here.

        timeout: in seconds, for the first entry. Raises NotFound, Closed.
        """
        deadline = clock.monotonic() + timeout
        while True:
            ends = ends_of(self._source)  # before the look: what comes after it ends the wait
            do_upkeep(membership_of(self._source))
            claimed = self._claimed(entries, nbytes)
            left = deadline - clock.monotonic()
            if claimed.entries or claimed.full or left <= 0:
                return claimed
            self._wait(ends, left)

    def _claimed(self, entries: int, nbytes: int) -> Claimed:
        try:
            return Claimed(*claim_entries(self._source, self._target, entries, nbytes, self._subscription))
        except (Full, OutOfSpace):  # and no entry was moved before
            return Claimed(0, 0, True)

    def _wait(self, ends: tuple[int, ...], seconds: float) -> None:
        try:
            wait_for_newcomers(self._source, ends, min(seconds, LEFT_TO_TAKE_LOOK))
        except (Empty, Timeout):
            pass
        except ShutDown:  # no producer puts any more, but a consumer may still give a message back
            time.sleep(min(seconds, LEFT_TO_TAKE_LOOK))


def identity_of(queue: Queue[Any]) -> str:
    """Returns a text that no other queue has, not even one of the same name in a broker that was made anew."""
    index, incarnation = directory_entry(queue)
    return f"{membership_of(queue).live().header()['uuid'].hex()}-{index}-{incarnation}"


def wall_clock_of(broker: Broker) -> WallOf:
    """Returns the function that converts the broker's times into times of day."""
    return broker_membership(broker).member.wall_of


def bounds_of(queue: Queue[Any]) -> tuple[int, int]:
    """Returns the position of the first entry, and that of the next newcomer; equal: the queue is empty."""
    census = census_of(queue)
    first = census["first_position"]
    return (census["next_position"] if first == _NEVER else first), census["next_position"]


def levels_of(queue: Queue[Any]) -> list[tuple[int, int]]:
    """Returns of each level, the most important first, its first place and the place behind its last."""
    ends = ends_of(queue)
    return list(zip(first_of(ends), ends, strict=True))


def settle_the_dead(queue: Queue[Any]) -> None:
    """Reaps dead movers: an entry that one had in hand is then visible in one of its two queues."""
    reap(membership_of(queue).live())


def discard_below(queue: Queue[Any], position: int) -> int:
    """Removes the entries before a position of a queue of claims; how many there were. Idempotent."""
    return discard_entries(queue, position)


def discard_at(queue: Queue[Any], position: int) -> bool:
    """Removes one entry, if it is there and with nobody. Idempotent."""
    return purge_at(queue, position)


def entries_between(queue: Queue[Any], begin: int, end: int) -> Iterator[Browsed]:
    """Yields the entries from position `begin` on and before `end`, in order, without taking any."""
    while begin < end:
        begin, seen = browse_entry(queue, begin)
        if seen is None or seen[0] >= end:
            return
        yield seen
