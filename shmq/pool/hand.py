"""What a worker has in hand, and what its pool asks of it: words of memory that both see at any time.

A handler that hangs says nothing any more, and may have taken the signals of its process. So the pool reads here since
when it is at work, and writes here that it is to stop.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shmq.core.clock import monotonic_ns
from shmq.core.handles import deaths_of, failed_of
from shmq.engine.message.message import Message

if TYPE_CHECKING:
    from types import TracebackType

    from shmq.core.queue import Delivery

__all__ = ["Hand", "InHand", "LentMessage"]

_SINCE, _MESSAGE, _POSITION, _ATTEMPTS, _LENT, _STOP, _WAITING = range(7)


@dataclass(frozen=True, slots=True)
class InHand:
    """The message that a handler is at work on.

    Attributes:
        since_ns: of the monotonic clock; no two are the same.
        message_id, position: of the message.
        attempts: failed ones and deaths before this one.
        lent: the handler has not settled it by itself.
    """

    since_ns: int
    message_id: int
    position: int
    attempts: int
    lent: bool


class Hand:
    """Of one worker. Its thread writes all but the wish to stop.

    Arguments:
        words: zeros, such as a part of those of SharedWords.
    """

    WORDS: Final = 7

    def __init__(self, words: MutableSequence[int] | memoryview[int]) -> None:
        self._words = words

    # ---- by the worker -----------------------------------------------------------------------------------------

    def begin(self, message: Message[Any]) -> None:
        """The handler begins."""
        words = self._words
        words[_MESSAGE], words[_POSITION] = message.id, message.position
        words[_ATTEMPTS], words[_LENT] = failed_of(message) + deaths_of(message), 1
        words[_SINCE] = monotonic_ns()  # last: from here on it is seen

    def settled(self) -> None:
        """The handler has settled the message itself."""
        self._words[_LENT] = 0

    def end(self) -> None:
        """The handler has returned."""
        self._words[_SINCE] = 0

    def waits(self, waiting: bool) -> None:
        """It waits for a message from here on, or does no more."""
        self._words[_WAITING] = waiting

    @property
    def is_to_stop(self) -> bool:
        """Its pool wants it to end."""
        return bool(self._words[_STOP])

    # ---- by the pool -------------------------------------------------------------------------------------------

    def stop(self) -> bool:
        """It is to end. True: it waits for a message, and a signal is needed to end that wait at once."""
        self._words[_STOP] = 1
        return bool(self._words[_WAITING])

    def seen(self) -> InHand | None:
        """None: no handler is at work."""
        words = self._words
        since = words[_SINCE]
        found = InHand(since, words[_MESSAGE], words[_POSITION], words[_ATTEMPTS], bool(words[_LENT]))
        return found if since != 0 and words[_SINCE] == since else None


class LentMessage(Message[Any]):
    """A message of a queue with a lease, in a worker: it notes that the handler settles it, which looks from outside
    as if the lease had ended."""

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
