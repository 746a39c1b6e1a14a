"""The consumer that has lent a message, as the message knows it: the base of Consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shmq.core.queue import ConsumerHandle
from shmq.engine.handle.open_queue import membership_of

if TYPE_CHECKING:
    from threading import RLock

    from shmq.core.queue import Subscription
    from shmq.engine.handle.open_queue import OpenQueue

__all__ = ["Lender", "refuse", "still_ours"]


class Lender(ConsumerHandle):
    """Base of Consumer."""

    _queue: OpenQueue
    _subscription: Subscription
    _lock: RLock

    def _is_ours(self) -> bool:
        """Its broker is open, and this is the process that made it."""
        member = membership_of(self._queue).member
        return not member.closed and not member.forked and member.serial == self._serial


def still_ours(lender: Lender) -> bool:
    """Its broker is open, and this is the process that made it."""
    return lender._is_ours()


def refuse(lender: Lender, position: int) -> None:
    """Never again the message there: it is released for others."""
    with lender._lock:
        lender._subscription.refuse(lender._queue, position)
