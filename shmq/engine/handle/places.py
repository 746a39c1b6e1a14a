"""Places of a queue's entries: where an entry stands in the order, what users call its position.

A queue without priorities has one level, and a place is the position in its ring. Of a queue with priorities each level
has places of its own. Those of the most important level are below all others: a lower place is always offered first.
"""

from __future__ import annotations

from typing import Final

__all__ = ["PLACE_BITS", "first_of", "places_from"]

PLACE_BITS: Final = 48  # of the position in a level; 10 million messages a second fill it in 325 days


def first_of(ends: tuple[int, ...]) -> list[int]:
    """Returns the first place of each level; ends: as Queue._ends() has them."""
    return [depth << PLACE_BITS for depth in range(len(ends))]


def places_from(start: int, ends: tuple[int, ...]) -> list[int]:
    """Returns where a reader goes on, level by level, that has seen everything before `start` in the queue's order."""
    if len(ends) == 1:
        return [start]
    own = start >> PLACE_BITS
    return [end if depth < own else start if depth == own else depth << PLACE_BITS for depth, end in enumerate(ends)]
