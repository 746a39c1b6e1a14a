"""Messages a second into and out of a backlog that is larger than memory, beside what else could hold it."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from shmq.bench.backlog_contestant import BACKLOGS, BATCH, Backlog, Load, batches, why_not
from shmq.bench.processes import run_together

__all__ = ["BacklogRow", "measure_backlog", "round_of"]

_SECONDS = 3600.0  # a filling or a draining takes less
_LOOKS = 16  # at a process's memory, while it works

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BacklogRow:
    """One contestant's result, medians of the rounds; None where it was not measured, and `name` says why."""

    name: str
    in_per_second: float | None
    out_per_second: float | None
    turn_per_second: float | None  # pairs of a put and a get, beside the backlog
    in_ratio: float | None  # the first one's rate by this one's, of the same rounds
    out_ratio: float | None
    turn_ratio: float | None
    memory_mib: float | None  # the most that it had taken beside its processes' own
    grown_mib: float | None  # the most by which a process grew
    disk_mib: float | None  # with all messages in it


@dataclass(frozen=True, slots=True)
class Round:
    """The figures of one contestant in one round."""

    in_per_second: float
    out_per_second: float
    turn_per_second: float
    memory: int | None
    grown: int
    disk: int


def own_bytes() -> int:
    """Memory of this process's own: neither shared memory nor pages of files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def _put(one: Backlog, count: int) -> int:
    one.put(count)
    return count


def _get(one: Backlog, count: int) -> int:
    return one.get(count)


def _turn(one: Backlog, count: int) -> int:
    whole = 0
    for some in batches(count):
        one.put(some)
        whole += one.get(some)
    return whole


def _work(move: Callable[[Backlog, int], int], one: Backlog, count: int) -> tuple[int, int]:
    """In a process of its own: how many messages it moved, and by how much it grew."""
    first, grown, moved = own_bytes(), 0, 0
    step = -(-count // _LOOKS // BATCH) * BATCH
    for done in range(0, count, step):
        moved += move(one, min(step, count - done))
        grown = max(grown, own_bytes() - first)
    return moved, grown


def round_of(key: str, load: Load, directory: str | None) -> Round:
    """A process puts all messages, and another one takes half of them. A third one puts and takes, in turn, as many as
    a quarter, and a last one takes the rest. RuntimeError if some are missing.
    """
    half = load.messages // 2
    steps = [(_put, load.messages), (_get, half), (_turn, half // 2), (_get, load.messages - half)]
    rates, disk, grown = [], 0, 0
    with tempfile.TemporaryDirectory(prefix="shmq-bench-", dir=directory) as home:
        one: Backlog = BACKLOGS[key](Path(home), load)
        try:
            for move, count in steps:
                seconds, answers = run_together([(_work, (move, one, count))], _SECONDS)
                moved, more = answers[0]
                if moved != count:
                    raise RuntimeError(f"{key}: {moved:,} of {count:,} messages arrived")
                rates.append(count / seconds)
                disk, grown = max(disk, one.disk()), max(grown, more)
            return Round(rates[0], rates[1], rates[2], one.memory(), grown, disk)
        finally:
            one.close()


def measure_backlog(
    load: Load, *, rounds: int, directory: str | None = None, progress: Say = lambda text: None
) -> Iterator[BacklogRow]:
    """All contestants in turn, round by round; those that cannot be measured here have a row that says why.

    Arguments:
        load: what is put aside.
        directory: where files go; None: that of temporary files.
    """
    reasons = {key: why_not(key, load) for key in BACKLOGS}
    done: dict[str, list[Round]] = {key: [] for key, reason in reasons.items() if reason is None}
    for number in range(rounds):
        for key, results in done.items():
            progress(f"round {number + 1} of {rounds}: {BACKLOGS[key].name}")
            results.append(round_of(key, load, directory))
    first = next(iter(done.values()))
    for key, reason in reasons.items():
        name = BACKLOGS[key].name
        yield _row(name, done[key], first) if reason is None else BacklogRow(f"{name}: {reason}", *[None] * 9)


def _row(name: str, found: list[Round], first: list[Round]) -> BacklogRow:
    pairs = list(zip(first, found, strict=True))
    memory = [each.memory for each in found if each.memory is not None]
    return BacklogRow(
        name=name,
        in_per_second=statistics.median(each.in_per_second for each in found),
        out_per_second=statistics.median(each.out_per_second for each in found),
        turn_per_second=statistics.median(each.turn_per_second for each in found),
        in_ratio=statistics.median(ours.in_per_second / theirs.in_per_second for ours, theirs in pairs),
        out_ratio=statistics.median(ours.out_per_second / theirs.out_per_second for ours, theirs in pairs),
        turn_ratio=statistics.median(ours.turn_per_second / theirs.turn_per_second for ours, theirs in pairs),
        memory_mib=max(memory) / 2**20 if memory else None,
        grown_mib=max(each.grown for each in found) / 2**20,
        disk_mib=max(each.disk for each in found) / 2**20,
    )
