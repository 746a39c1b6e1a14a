"""Filters that Spark hands to the source of a batch read: of queues and positions, which cost nothing to leave out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from shmq.spark.entry_range import EntryRange
from shmq.spark.hosts import HostRange

__all__ = ["Pushdown"]

_END: Final = 1 << 64  # behind every position
# The positions [begin, end) for which a comparison with a whole number is true, by Spark's names of filters.
_COMPARED: Final[Mapping[str, Callable[[int], tuple[int, int]]]] = {
    "EqualTo": lambda number: (number, number + 1),
    "EqualNullSafe": lambda number: (number, number + 1),
    "GreaterThan": lambda number: (number + 1, _END),
    "GreaterThanOrEqual": lambda number: (number, _END),
    "LessThan": lambda number: (0, number),
    "LessThanOrEqual": lambda number: (0, number + 1),
}


class Pushdown:
    """The rest of a batch read when the source applies filters; all of them have to be true.

    Guarantee: a filter that is taken is applied exactly, so Spark need not look again. Only `queue` (equality, a list)
    and `position` (comparisons) are taken: for the others each row would have to be read here, as Spark does.
    """

    def __init__(self) -> None:
        self._queues: frozenset[str] | None = None  # None: all
        self._begin, self._end = 0, _END

    def take(self, kind: str, attribute: tuple[str, ...], value: Any = None) -> bool:
        """Apply a filter from now on; False: it is left to Spark.

        Arguments:
            kind: name of the filter's class in pyspark.sql.datasource.
            attribute: path of its column.
            value: with which it compares; In: several.
        """
        if attribute not in (("queue",), ("position",)):
            return False
        if kind == "IsNotNull":
            return True  # neither ever is
        if attribute == ("position",):
            return self._take_positions(kind, value)
        return self._take_queues(kind, value)

    def _take_positions(self, kind: str, value: Any) -> bool:
        if kind not in _COMPARED or type(value) is not int:
            return False
        begin, end = _COMPARED[kind](value)
        self._begin, self._end = max(self._begin, begin), min(self._end, end)
        return True

    def _take_queues(self, kind: str, value: Any) -> bool:
        if kind in ("EqualTo", "EqualNullSafe") and isinstance(value, str):
            names = frozenset([value])
        elif kind == "In" and all(isinstance(name, str) for name in value):
            names = frozenset(value)
        else:
            return False
        self._queues = names if self._queues is None else self._queues & names
        return True

    def of(self, ranges: Iterable[EntryRange | HostRange]) -> list[EntryRange | HostRange]:
        """Returns the parts of these ranges that are read, without empty ones."""
        found: list[EntryRange | HostRange] = []
        for one in ranges:
            part = self._part_of(one.range if isinstance(one, HostRange) else one)
            if part is not None:
                found.append(HostRange(one.uri, part) if isinstance(one, HostRange) else part)
        return found

    def _part_of(self, one: EntryRange) -> EntryRange | None:
        if self._queues is not None and one.queue not in self._queues:
            return None
        begin, end = max(one.begin, self._begin), min(one.end, self._end)
        if begin >= end:
            return None
        return one if (begin, end) == (one.begin, one.end) else replace(one, begin=begin, end=end, rows=None)
