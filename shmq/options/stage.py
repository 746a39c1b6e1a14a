"""Which options belong to a stage that is not built yet. They are refused, never ignored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["NOT_BUILT", "not_built", "unknown"]

# Whoever builds what an option says takes its name out; nothing else about it has to be changed here.
NOT_BUILT: Final = {
    # of a queue
    "last_value",
    "sort_by",
    "max_memory",
    "alerts",
    # of both, and of a broker
    "durability",
    "disk",
    "encryption_key",
}


def not_built(name: object) -> ValueError:
    return ValueError(f"{name} belongs to a later stage of shmq and is not built yet; leave it out")


def unknown(name: object, of: str, known: Sequence[str]) -> TypeError:
    return TypeError(f"{of} has no option {name!r:.60}; known are {', '.join(known)}")
