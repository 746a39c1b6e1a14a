"""Which options belong to a stage that is not built yet. They are refused, never ignored."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

__all__ = ["LATER_PUT_OPTIONS", "LATER_QUEUE_OPTIONS", "NOT_BUILT", "not_built", "unknown"]

# Types do not know them. An option that is built goes from here into QueueOptions or PutOptions.
LATER_QUEUE_OPTIONS: Final = ("last_value", "sort_by", "durability")
LATER_PUT_OPTIONS: Final = ("durability",)
# With those of a broker.
NOT_BUILT: Final = {*LATER_QUEUE_OPTIONS, *LATER_PUT_OPTIONS}


def not_built(name: object) -> ValueError:
    return ValueError(f"{name} belongs to a later stage of shmq and is not built yet; leave it out")


def unknown(name: object, of: str, known: Sequence[str]) -> TypeError:
    near = ["timeout=0"] if name == "block" else get_close_matches(str(name), known, 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return TypeError(f"{of} has no option {name!r:.60}{meant}; known are {', '.join(known)}")
