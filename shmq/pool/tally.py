"""The outcomes of one worker's messages, counted so that nothing is missing if it is killed at any instruction.

Each count is one write. The worker writes down a message's id before it handles it, and the reason before the message
dies. The one message that was begun and has no count is that whose outcome the process could not tell any more. The
broker can: it has noted each message that came back because its process died.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Final, Literal, cast

from shmq.death import DeathReason
from shmq.statistics import PoolCounts

__all__ = ["Outcome", "Tally", "counts_of"]

Outcome = Literal["handled", "retried", "returned", "rejected", "max_attempts", "max_deaths"]
_OUTCOMES: Final[tuple[Outcome, ...]] = ("handled", "retried", "returned", "rejected", "max_attempts", "max_deaths")
_NUMBERS: Final = {outcome: number for number, outcome in enumerate(_OUTCOMES)}
_LIVING: Final = 3  # of them say nothing of a death
_BEGUN, _MESSAGE, _INTENT, _COUNTS = 0, 1, 2, 3  # places of the words


class Tally:
    """The counts of one worker. One thread writes.

    Arguments:
        words: zeros, such as those of SharedWords.
    """

    WORDS: Final = _COUNTS + len(_OUTCOMES)

    def __init__(self, words: MutableSequence[int] | memoryview[int]) -> None:
        self._words = words

    def begin(self, message_id: int, intent: Outcome = "handled") -> None:
        """Notes that a message is in hand.

        intent: what has become of it if this process dies now, and the message does not come back.
        """
        words = self._words
        words[_MESSAGE] = message_id
        words[_INTENT] = _NUMBERS[intent]
        words[_BEGUN] += 1  # last: from here on it is open

    def intend(self, intent: Outcome) -> None:
        """Notes the outcome that is about to be."""
        self._words[_INTENT] = _NUMBERS[intent]

    def end(self, outcome: Outcome) -> None:
        """Counts the outcome."""
        self._words[_COUNTS + _NUMBERS[outcome]] += 1

    def ended(self) -> list[int]:
        """Returns how often each outcome was counted."""
        return list(self._words[_COUNTS : _COUNTS + len(_OUTCOMES)])

    def add(self, other: Tally) -> None:
        """Adds the counts of another tally."""
        for place, count in enumerate(other.ended(), start=_COUNTS):
            self._words[place] += count

    def still_open(self) -> tuple[int, Outcome] | None:
        """Returns the message that has no count after the end of the worker, and its intent."""
        if self._words[_BEGUN] <= sum(self.ended()):
            return None
        return self._words[_MESSAGE], _OUTCOMES[self._words[_INTENT]]


def counts_of(ended: list[int]) -> PoolCounts:
    """Converts the counts for the user."""
    handled, retried = ended[0], ended[1]
    dead = {cast(DeathReason, name): n for name, n in zip(_OUTCOMES[_LIVING:], ended[_LIVING:], strict=True) if n}
    return PoolCounts(handled=handled, retried=retried, dead=dead)
