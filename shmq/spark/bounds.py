"""Where a batch read begins and ends: positions of each queue, and times of the puts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from shmq.spark.entry_range import EntryRange

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ALL_TIMES", "is_bounded", "positions_of", "put_between", "times_of", "within"]

_END: Final = 1 << 64  # behind every position
ALL_TIMES: Final = (0, 1 << 62)
_OPEN: Final = {"earliest": 0, "latest": _END}


def positions_of(starting: str | None, ending: str | None, queues: Sequence[str]) -> Mapping[str, tuple[int, int]]:
    """Returns of each named queue the first position and the one behind the last.

    Arguments:
        starting, ending: a whole number, for the only queue; or JSON, `{"orders": 4096}`; None: all there is.
        queues: that are read; none: those that match a pattern.

    Raises ValueError that names the option.
    """
    first = _positions("startingPosition", starting, queues, "earliest")
    last = _positions("endingPosition", ending, queues, "latest")
    found = {name: (first.get(name, 0), last.get(name, _END)) for name in {**first, **last}}
    for name, (begin, end) in found.items():
        if begin > end:
            raise ValueError(f"option endingPosition={end} of queue {name!r} lies before startingPosition={begin}")
    return found


def _positions(option: str, text: str | None, queues: Sequence[str], default: str) -> dict[str, int]:
    if text is None or not text.strip() or text.strip().lower() == default:
        return {}
    wanted = f"{default}, a position, or those of several queues as {json.dumps({'orders': 4096})}"
    try:
        given = json.loads(text)
    except json.JSONDecodeError:
        given = None
    if isinstance(given, int) and len(queues) != 1:
        example = json.dumps({"orders": given})
        raise ValueError(f"option {option}={text!r}: positions are of one queue; name it, as in {example}")
    found = given if isinstance(given, dict) else dict.fromkeys(queues, given)
    for name, position in found.items():
        if type(position) is not int or position < 0:
            raise ValueError(f"option {option}={text!r}: {wanted} is expected")
        if queues and name not in queues:
            raise ValueError(f"option {option}={text!r}: {name!r} is not among the queues that are read")
    return found


def times_of(starting: str | None, ending: str | None) -> tuple[int, int]:
    """When the first may have been put, and from when on none, in microseconds of the epoch.

    Arguments:
        starting, ending: milliseconds of the epoch, or a time of ISO 8601, without a zone UTC; None: all there is.

    Raises ValueError that names the option.
    """
    begin = ALL_TIMES[0] if starting is None else _time("startingTimestamp", starting)
    end = ALL_TIMES[1] if ending is None else _time("endingTimestamp", ending)
    if begin > end:
        raise ValueError(f"option endingTimestamp={ending!r} lies before startingTimestamp={starting!r}")
    return begin, end


def _time(option: str, text: str) -> int:
    try:
        if text.strip().isdecimal():
            return int(text) * 1000
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"option {option}={text!r}: milliseconds of the epoch are expected, or a time such as 2026-11-28T06:30:00Z"
        ) from None
    since = found.replace(tzinfo=found.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def within(ranges: Iterable[EntryRange], positions: Mapping[str, tuple[int, int]]) -> Iterator[EntryRange]:
    """Yields the parts of these ranges that lie between the positions, without empty ones."""
    for one in ranges:
        first, last = positions.get(one.queue, (0, _END))
        begin, end = max(one.begin, first), min(one.end, last)
        if begin < end:
            yield one if (begin, end) == (one.begin, one.end) else replace(one, begin=begin, end=end, rows=None)


def put_between(
    batches: Iterable[pyarrow.RecordBatch], times: tuple[int, int], names: Sequence[str]
) -> Iterator[pyarrow.RecordBatch]:
    """Yields the rows that were put in this time.

    Arguments:
        batches: with `enqueued_at`.
        times: as times_of() has them.
        names: of the columns that are wanted.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    begin, end = (pa.scalar(time, pa.timestamp("us", tz="UTC")) for time in times)
    for batch in batches:
        put = batch.column("enqueued_at")
        yield batch.filter(pc.and_(pc.greater_equal(put, begin), pc.less(put, end))).select(list(names))


def is_bounded(options: Any) -> bool:
    """Says whether a read with these options leaves entries out by position or time."""
    return bool(options.positions) or options.times != ALL_TIMES
