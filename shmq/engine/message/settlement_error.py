"""Errors about a message that was taken from its consumer, or was never its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shmq.core import clock
from shmq.core.handles import settings_of
from shmq.errors import SettlementError
from shmq.options.queue import OVERFLOWS

if TYPE_CHECKING:
    from shmq.engine.handle.open_queue import OpenQueue

__all__ = ["only_browsed", "taken_away"]

_NEVER_NS: Final = (1 << 64) - 1


def only_browsed(queue: OpenQueue, number: int) -> SettlementError:
    """Makes the error for a call that settles the message of this id, which was only browsed."""
    return SettlementError(
        f"message {number} of queue {queue.name!r} was only browsed",
        remedy="receive() lends a message; browse() only shows it",
    )


def taken_away(queue: OpenQueue, number: int, position: int, expires_ns: int, outcome: str) -> SettlementError:
    """Makes the error for a call that settles or touches a message too late.

    Arguments:
        queue: where it was received.
        number: the message's id.
        position: in the queue.
        expires_ns: monotonic; 0: never.
        outcome: what was to be done: "acked", "touched" ...
    """
    why, remedy = "", "its consumer was closed, or its queue had other options then; the work may be done twice"
    settings = settings_of(queue)
    if expires_ns and clock.monotonic_ns() >= expires_ns:
        why, remedy = ": it had expired", "put it with a longer ttl, or work faster; its work is done all the same"
    elif settings["lease"] != _NEVER_NS:
        why = f": its lease of {settings['lease'] / 1e9:g} s was over"
        remedy = "others may have it by now; touch() it while you work, or give the queue a longer lease"
    elif settings["overflow"] == OVERFLOWS.index("drop_oldest"):
        why = ": its queue was full, and drops its oldest for the newest"
        remedy = "its work is done all the same; give the queue a larger maxsize or max_bytes, or take messages faster"
    return SettlementError(
        f"message {number} of queue {queue.name!r} was taken away before it was {outcome}{why}",
        figures=f"position {position}",
        remedy=remedy,
    )
