"""A worker's message in hand, and its pool's orders to it: words of memory that both see at any time.

A handler that hangs reports nothing, and may have replaced the process's signal handlers. So the pool reads here since
when it is at work, and writes here that it is to stop.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shmq.core.clock import monotonic_ns
from shmq.core.handles import deaths_of, failed_of, settings_of
from shmq.engine.message.message import Message
from shmq.errors import ShmqError
from shmq.options.value import NEVER

if TYPE_CHECKING:
    from types import TracebackType

    from shmq.core.queue import Delivery
    from shmq.engine.handle.open_queue import OpenQueue

__all__ = ["Hand", "InHand", "LentMessage", "lease_of"]

_NEVER_NS: Final = (1 << 64) - 1
_SINCE, _POSITION, _ATTEMPTS, _LENT, _STOP = range(5)


def lease_of(queue: OpenQueue) -> float:
    """Returns the queue's lease in seconds; NEVER: it has none, or was deleted."""
    try:
        lease = settings_of(queue)["lease"]
    except ShmqError:
        return NEVER
    return NEVER if lease == _NEVER_NS else lease / 1e9


@dataclass(frozen=True, slots=True)
class InHand:
    """The message that a handler is at work on.

    Attributes:
        since_ns: of the monotonic clock; no two are the same.
        position: of the message; for one that is lent, as attempts.
        attempts: failed ones and deaths before this one.
        lent: by a queue with a lease, and the handler has not settled it by itself.
    """

    since_ns: int
    position: int
    attempts: int
    lent: bool


class Hand:
    """The shared words of one worker. The worker's thread writes all of them but the order to stop.

    Arguments:
        words: zeros, such as a part of those of SharedWords.
    """

    def __init__(self, words: MutableSequence[int] | memoryview[int]) -> None:
        self._words = words
        self.is_leased = False  # the queue has a lease, as far as its worker has looked
        self.is_child = False  # this process is no worker, but one that a handler has forked

    def forked(self) -> None:
        """Notes in a forked child of the worker that it is no worker."""
        self.is_child = True

    # ---- by the worker -----------------------------------------------------------------------------------------

    def begin(self, message: Message[Any]) -> None:
        """Notes that the handler begins."""
        words = self._words
        if self.is_leased:
            message.__class__ = LentMessage
            words[_POSITION] = message.position
            words[_ATTEMPTS] = failed_of(message) + deaths_of(message)
            words[_LENT] = 1
        words[_SINCE] = monotonic_ns()  # last: from here on it is seen

    def look_at_lease(self, queue: OpenQueue) -> None:
        """Looks whether the queue has a lease. The worker calls this now and then."""
        self.is_leased = lease_of(queue) != NEVER
        self._words[_LENT] = 0

    def settled(self) -> None:
        """Notes that the handler has settled the message itself."""
        self._words[_LENT] = 0

    def end(self) -> None:
        """Notes that the handler has returned."""
        self._words[_SINCE] = 0

    @property
    def is_to_stop(self) -> bool:
        """Says whether the pool wants the worker to end."""
        return bool(self._words[_STOP])

    # ---- by the pool -------------------------------------------------------------------------------------------

    def stop(self) -> bool:
        """Asks the worker to end. True: it may wait for a message, and only a signal ends that wait at once."""
        self._words[_STOP] = 1
        return self._words[_SINCE] == 0

    def seen(self) -> InHand | None:
        """Returns the message in hand; None: no handler is at work."""
        words = self._words
        since = words[_SINCE]
        found = InHand(since, words[_POSITION], words[_ATTEMPTS], bool(words[_LENT]))
        return found if since != 0 and words[_SINCE] == since else None


class LentMessage(Message[Any]):
    """A message of a queue with a lease: it notes that the handler settles it, which looks from outside as if the lease
    had ended."""

    __slots__ = ()
    hand: Hand  # of the process

    def ack(self) -> None:
        self.hand.settled()
        super().ack()

    def _claimed(self) -> Delivery | None:
        self.hand.settled()
        return super()._claimed()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.hand.settled()
        super().__exit__(kind, error, trace)
