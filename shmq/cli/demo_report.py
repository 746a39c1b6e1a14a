"""The ways in which the demo does its job, one after another, and what they came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shmq.cli.demo_progress import shown
from shmq.cli.text import table
from shmq.core import clock
from shmq.quantity import quantity

if TYPE_CHECKING:
    from shmq.demo.comparison import Comparison
    from shmq.demo.definitions import Definitions
    from shmq.demo.outcome import Outcome, Progress
    from shmq.demo.sources import SourceTree
    from shmq.demo.spark_run import SparkOutcome

__all__ = ["PoolReport", "SparkReport"]

_HEAD = ("", "files", "MB", "seconds", "messages/s", "redelivered", "lost", "doubled", "wrong")


def _alone(tree: SourceTree, look: Callable[[], None]) -> tuple[dict[str, Definitions], float]:
    from shmq.demo.definitions import Definitions

    expected = {}
    with shown("one process alone", len(tree.names), look) as progress:
        began = clock.monotonic()
        for name in tree.names:
            expected[name] = Definitions.of(tree.read(name))
            progress(len(expected))
        return expected, clock.monotonic() - began


def _row(name: str, tree: SourceTree, seconds: float, outcome: Outcome | None, found: Comparison | None) -> list[str]:
    row = [name, f"{len(tree.names):,}", f"{tree.size / 1e6:.1f}", f"{seconds:.2f}"]
    if outcome is None or found is None:
        return [*row, "-", "-", "-", "-", "-"]
    counts = (len(found.redelivered), len(found.lost), len(found.doubled), len(found.wrong))
    return [*row, f"{outcome.messages / seconds:,.0f}", *(f"{count:,}" for count in counts)]


def _summary(outcome: Outcome, found: Comparison) -> dict[str, Any]:
    return {
        "seconds": round(outcome.seconds, 3),
        "messages": outcome.messages,
        "messages_per_second": round(outcome.messages / outcome.seconds, 1),
        "redelivered": len(found.redelivered),
        "lost": len(found.lost),
        "doubled": len(found.doubled),
        "wrong": len(found.wrong),
    }


def _difference(found: Comparison) -> str:
    lines = ["NOT equal to what one process finds alone"]
    for word in ("lost", "doubled", "wrong"):
        names = getattr(found, word)
        lines += [f"{word}: {name}" for name in names[:10]]
        if len(names) > 10:
            lines.append(f"{word}: and {len(names) - 10:,} more")
    return "\n".join(lines)


@dataclass
class _Report:
    """One call of the command.

    Arguments:
        tree: the files.
        workers, producers: how many processes of each.
        seed: of the order of files, for a repeat.
    """

    tree: SourceTree
    workers: int
    producers: int
    seed: int

    name = "shmq"
    step = "shmq, one worker killed half-way"
    once = False  # may no file have two results, not even a repeat that says so?

    def run(self, look: Callable[[], None]) -> None:
        """look: is called often, and may raise; then nothing is left."""
        from shmq.demo.comparison import compare
        from shmq.demo.multiprocessing_run import MultiprocessingRun

        total = len(self.tree.names)
        self.expected, self.alone = _alone(self.tree, look)
        with shown("multiprocessing.Queue", total, look) as progress:
            self.other = MultiprocessingRun(self.tree, progress=progress, **self._many()).run()
        with shown(self.step, total, look) as progress:
            self.ours = self._ours(progress)
        self.theirs_found = compare(self.expected, self.other.results)
        self.found = compare(self.expected, self.ours.results, once=self.once)

    def _many(self) -> dict[str, int]:
        return {"workers": self.workers, "producers": self.producers}

    def _ours(self, progress: Progress) -> Outcome:
        raise NotImplementedError

    def _killed(self) -> str:
        raise NotImplementedError

    def as_json(self) -> dict[str, Any]:
        counts = self.expected.values()
        return {
            "equal": self.found.equal,
            "files": len(self.tree.names),
            "bytes": self.tree.size,
            **_summary(self.ours, self.found),
            "killed": self.ours.killed,
            "workers": self.workers,
            "producers": self.producers,
            "seed": self.seed,
            "input": str(self.tree.root),
            "functions": sum(count.functions for count in counts),
            "classes": sum(count.classes for count in counts),
            "imports": sum(count.imports for count in counts),
            "lines": sum(count.lines for count in counts),
            "unparsed": sum(not count.parsed for count in counts),
            "alone": {"seconds": round(self.alone, 3)},
            "multiprocessing": {**_summary(self.other, self.theirs_found), "equal": self.theirs_found.equal},
        }

    def as_text(self) -> str:
        facts = self.as_json()
        rows = [
            _row(self.name, self.tree, self.ours.seconds, self.ours, self.found),
            _row("multiprocessing.Queue", self.tree, self.other.seconds, self.other, self.theirs_found),
            _row("one process alone", self.tree, self.alone, None, None),
        ]
        return "\n".join(
            [
                table(_HEAD, rows),
                "the seconds are those of parsing and of what was killed; shmq bench throughput measures the queues",
                "",
                f"{quantity(self.workers, 'worker')}, {quantity(self.producers, 'producer')}, seed {self.seed}; "
                f"{self._killed()}",
                f"{facts['functions']:,} functions, {facts['classes']:,} classes, {facts['imports']:,} imports in "
                f"{quantity(facts['lines'], 'line')}; not parsed: {quantity(facts['unparsed'], 'file')}",
                "equal to what one process finds alone" if self.found.equal else _difference(self.found),
            ]
        )


class PoolReport(_Report):
    """The job by a WorkerPool."""

    def _ours(self, progress: Progress) -> Outcome:
        from shmq.demo.pool_run import PoolRun

        return PoolRun(self.tree, kill=True, progress=progress, **self._many()).run()

    def _killed(self) -> str:
        if self.ours.killed is None:
            return "no worker was at work half-way, so none was killed"
        return f"worker {self.ours.killed} was killed (SIGKILL) with a file in hand; in the other runs no worker was"


class SparkReport(_Report):
    """The job by Spark."""

    name = "shmq and Spark"
    step = "Spark, killed and killed again"
    once = True
    ours: SparkOutcome

    def _ours(self, progress: Progress) -> SparkOutcome:
        from shmq.demo.spark_run import SparkRun

        return SparkRun(self.tree, kill=True, progress=progress, **self._many()).run()

    def _killed(self) -> str:
        ours = self.ours
        worker = "no worker was at work when it should die, so none was killed"
        if ours.killed is not None:
            worker = f"worker {ours.killed} of Spark was killed (SIGKILL) with a file in hand"
        if ours.driver is None:
            return f"{worker}; the driver was done before it could be killed"
        again = "" if ours.recovery is None else f", and had the next result {ours.recovery:.1f} s later"
        return (
            f"{worker};\ndriver {ours.driver} was killed with all of its {ours.processes} processes when "
            f"{quantity(ours.before, 'file')} had results; another one went on from the checkpoint{again};\n"
            "in the other runs no worker was killed"
        )

    def as_json(self) -> dict[str, Any]:
        ours = self.ours
        figures = {
            "driver": ours.driver,
            "processes": ours.processes,
            "before": ours.before,
            "recovery_seconds": None if ours.recovery is None else round(ours.recovery, 3),
            "batches": ours.batches,
            "parsed": ours.parsed,
        }
        return {**super().as_json(), "spark": figures}
