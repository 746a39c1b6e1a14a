"""The base of Consumer: the consumer that has lent a message, as the message knows it."""

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
    """The consumer as a message knows it. Consumer derives from this class."""

    _queue: OpenQueue
    _subscription: Subscription
    _lock: RLock

    def _is_ours(self) -> bool:
        """Says whether its broker is open and this process made the consumer."""
        member = membership_of(self._queue).member
        return not member.closed and not member.forked and member.serial == self._serial


def still_ours(lender: Lender) -> bool:
    """Says whether its broker is open and this process made the consumer."""
    return lender._is_ours()


def refuse(lender: Lender, position: int) -> None:
    """Releases the message for other consumers. This consumer does not get it again."""
    with lender._lock:
        lender._subscription.refuse(lender._queue, position)
