"""Computes how long a message rests after a failed attempt, where its queue has no retry_delay."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = ["FIRST", "MOST", "SEED", "BackOff"]

FIRST = 0.1  # seconds after the first failed attempt, doubled with each further one
MOST = 30.0  # seconds
SEED: int | None = None  # of the jitter; None: each worker has its own
_DOUBLINGS = 64  # more change nothing


@dataclass
class BackOff:
    """Delays that grow with the attempts of a message, so that whatever is down is not hammered. At random a delay is
    shortened by up to half, so that what failed at one time is not tried again at one time.

    Attributes:
        first, most: seconds.
        seed: of the jitter.
    """

    first: float = field(default_factory=lambda: FIRST)
    most: float = field(default_factory=lambda: MOST)
    seed: int | None = field(default_factory=lambda: SEED)
    _dice: random.Random | None = None  # made by each worker for itself

    def delay_ns(self, failed: int) -> int:
        """Returns the time until the next attempt.

        failed: how many attempts had failed before this one.
        """
        if self._dice is None:
            self._dice = random.Random(self.seed)
        seconds = min(self.most, self.first * 2.0 ** min(failed, _DOUBLINGS))
        return round(seconds * (1.0 - self._dice.random() / 2) * 1e9)
