"""One option, as a table of options has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Kind", "Option"]

# count, size (of bytes), switch, choice and seconds are numbers to the core; the name of a queue, delays and alerts are
# not.
Kind = Literal["count", "size", "switch", "choice", "seconds", "name", "delays", "alerts"]


@dataclass(frozen=True, slots=True)
class Option:
    """Where the user's value is None, and that is a value (may_be_none), the default stands for it."""

    name: str
    kind: Kind
    default: Any = None
    least: float = 0
    most: int = 0  # not of seconds; of delays: how many
    step: int = 1
    choices: tuple[str, ...] = ()  # the core's numbers are their places
    fixed: bool = False
    may_be_none: bool = False
    remedy: str = ""
