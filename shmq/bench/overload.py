"""A producer and a consumer that both go at full speed beside a backlog larger than memory: sustained overload."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shmq.bench.backlog_contestant import BACKLOGS, Backlog, Load, ShmqBatchBacklog, why_not
from shmq.bench.processes import run_together
from shmq.engine.queue.queue import Queue
from shmq.errors import Empty

__all__ = ["OverloadRow", "measure_overload"]

AT_ONCE: Final = 100  # messages a call, or a transaction
_WAIT = 0.1  # seconds of a get that finds nothing

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class OverloadRow:
    """One contestant's result, medians of the rounds; None where it was not measured, and `name` says why."""

    name: str
    put_per_second: float | None
    get_per_second: float | None
    sum_ratio: float | None  # puts and gets of the first one by this one's, of the same rounds
    put_worst_ms: float | None  # p99.9 of its calls
    get_worst_ms: float | None


@dataclass(frozen=True, slots=True)
class Round:
    """The figures of one contestant in one round."""

    put_per_second: float
    get_per_second: float
    put_worst: float
    get_worst: float

    @property
    def sum(self) -> float:
        return self.put_per_second + self.get_per_second


class ShmqOverload(ShmqBatchBacklog):
    """A queue without options: messages for which its ring has no slot flow to disk."""

    name = "shmq"

    def _declare(self) -> Queue[bytes]:
        return self.broker.queue("overload", codec="bytes")

    def put(self, count: int) -> None:
        self.queue.put_many([self.body] * count)

    def get(self, count: int) -> int:
        try:
            return sum(len(body) == self.load.size for body in self.queue.get_many(count, timeout=_WAIT))
        except Empty:
            return 0


_CONTESTANTS: Final[dict[str, Callable[[Path, Load], Backlog]]] = {
    "shmq": ShmqOverload,
    "lmdb": BACKLOGS["lmdb"],
    "redis": BACKLOGS["redis"],
}


def _put(one: Backlog) -> int:
    one.put(AT_ONCE)
    return AT_ONCE


def _get(one: Backlog) -> int:
    return one.get(AT_ONCE)


def _work(move: Callable[[Backlog], int], one: Backlog, seconds: float) -> tuple[float, float]:
    """In a process of its own: messages a second, and milliseconds below which 99.9 % of its calls end."""
    moved, spent = 0, []
    began = before = time.perf_counter()
    while before < began + seconds:
        moved += move(one)
        now = time.perf_counter()
        spent.append(now - before)
        before = now
    spent.sort()
    return moved / (before - began), spent[int(len(spent) * 0.999)] * 1000


def _fill(one: Backlog, count: int) -> int:
    for _ in range(count // AT_ONCE):
        one.put(AT_ONCE)
    return count


def _round(make: Callable[[Path, Load], Backlog], load: Load, seconds: float, directory: str | None) -> Round:
    with tempfile.TemporaryDirectory(prefix="shmq-bench-", dir=directory) as home:
        one = make(Path(home), load)
        try:
            run_together([(_fill, (one, load.messages))])
            _, answers = run_together([(_work, (_put, one, seconds)), (_work, (_get, one, seconds))], seconds + 60)
            (put, put_worst), (get, get_worst) = answers
            return Round(put, get, put_worst, get_worst)
        finally:
            one.close()


def measure_overload(
    load: Load, *, seconds: float, rounds: int, directory: str | None = None, progress: Say = lambda text: None
) -> Iterator[OverloadRow]:
    """All contestants in turn, round by round; those that cannot be measured here have a row that says why.

    Arguments:
        load: the backlog that is there when producer and consumer begin.
        seconds: how long both go on.
        directory: where files go; None: that of temporary files.
    """
    reasons = {key: None if key == "shmq" else why_not(key, load) for key in _CONTESTANTS}
    names = {key: getattr(make, "name", key) for key, make in _CONTESTANTS.items()}
    done: dict[str, list[Round]] = {key: [] for key, reason in reasons.items() if reason is None}
    for number in range(rounds):
        for key, results in done.items():
            progress(f"round {number + 1} of {rounds}: {names[key]}")
            results.append(_round(_CONTESTANTS[key], load, seconds, directory))
    for key, reason in reasons.items():
        yield (
            _row(names[key], done[key], done["shmq"])
            if reason is None
            else OverloadRow(f"{names[key]}: {reason}", *[None] * 5)
        )


def _row(name: str, found: list[Round], first: list[Round]) -> OverloadRow:
    return OverloadRow(
        name=name,
        put_per_second=statistics.median(each.put_per_second for each in found),
        get_per_second=statistics.median(each.get_per_second for each in found),
        sum_ratio=statistics.median(ours.sum / theirs.sum for ours, theirs in zip(first, found, strict=True)),
        put_worst_ms=statistics.median(each.put_worst for each in found),
        get_worst_ms=statistics.median(each.get_worst for each in found),
    )
