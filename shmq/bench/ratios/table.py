"""The rows of the table: what is measured beside what, and how many times as much it may cost."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from shmq.bench.ratios.scene import Situation
from shmq.bench.ratios.verbs import VERBS

__all__ = ["TABLE", "Row", "read_rows"]

TABLE: Final = Path(__file__).with_name("ratios.toml")
_OF_THE_ROW: Final = {"both", "baseline", "at_most", "goal", "on_demand"}
_KEYS: Final = {each.name for each in fields(Situation)}


@dataclass(frozen=True, slots=True)
class Row:
    """A verb in two situations.

    Attributes:
        name: VERB.ROW, as in the table.
        beside: what the baseline has that is not the comfortable case; variant: what the variant has.
        at_most: times the baseline's cost that the variant may have; inf: it stops altogether, or has no bound yet.
        goal: what shall be allowed one day, if that is less.
        on_demand: needs more depth, memory, processes or time than a run in passing has.
    """

    name: str
    verbs: tuple[str, str]  # of baseline and variant
    beside: str
    variant: str
    situations: tuple[Situation, Situation]
    at_most: float
    goal: float | None = None
    on_demand: bool = False


def read_rows(path: Path = TABLE) -> list[Row]:
    """All rows of a table. ValueError for one that makes no sense."""
    try:
        table = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    return [_row(verb, f"{verb}.{name}", entry) for verb, rows in table.items() for name, entry in rows.items()]


def _row(verb: str, name: str, entry: Mapping[str, Any]) -> Row:
    both, baseline = entry.get("both", {}), dict(entry.get("baseline", {}))
    beside = _words(baseline)
    verbs = baseline.pop("verb", verb), verb
    for one in verbs:
        if one not in VERBS:
            raise ValueError(f"{name}: there is no verb {one!r}; there are {', '.join(sorted(VERBS))}")
    own = {
        key: value for key, value in entry.items() if key not in {"both", "baseline", "at_most", "goal", "on_demand"}
    }
    unknown = (both.keys() | baseline.keys() | own.keys()) - _KEYS
    if unknown:
        raise ValueError(f"{name}: there is no {', '.join(sorted(unknown))}; there are {', '.join(sorted(_KEYS))}")
    at_most, goal = entry.get("at_most"), entry.get("goal")
    if at_most is None or (goal is not None and goal >= at_most):
        raise ValueError(f"{name}: a row has at_most, and a goal only below that")
    situations = Situation(**(both | baseline)), Situation(**(both | own))
    return Row(name, verbs, beside, _words(both | own), situations, at_most, goal, entry.get("on_demand", False))


def _words(situation: Mapping[str, Any]) -> str:
    """As one reads it: "depth 100,000, queue priorities 10"."""
    parts = []
    for key, value in situation.items():
        if isinstance(value, dict):
            parts.append(f"{key} {_words(value)}")
        elif isinstance(value, bool):
            parts.append(key if value else f"no {key}")
        else:
            parts.append(f"{key} {value:,}" if isinstance(value, int) else f"{key} {value}")
    return ", ".join(parts)
