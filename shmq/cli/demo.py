"""shmq demo: a real job, a worker killed in the middle of it, and the proof that nothing is missing."""

from __future__ import annotations

import logging
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shmq.cli.session import Session, pass_session, say
from shmq.cli.text import table
from shmq.quantity import quantity

if TYPE_CHECKING:
    from typing import Self

    from shmq.demo.comparison import Comparison
    from shmq.demo.definitions import Definitions
    from shmq.demo.outcome import Outcome, Progress
    from shmq.demo.sources import SourceTree

__all__ = ["demo"]

_LINES = 3.0  # seconds between lines where there is no bar


@contextmanager
def _shown(title: str, total: int, look: Callable[[], None]) -> Iterator[Progress]:
    """How far a step is, on stderr: a bar on a terminal, lines otherwise. look: called each time."""
    if sys.stderr.isatty():
        with _bar(title, total, look) as progress:
            yield progress
        return
    say(f"{title}: {quantity(total, 'file')}")
    due = time.monotonic() + _LINES

    def line(done: int) -> None:
        nonlocal due
        look()
        if time.monotonic() >= due:
            due = time.monotonic() + _LINES
            say(f"{title}: {done:,} of {total:,}")

    yield line


@contextmanager
def _bar(title: str, total: int, look: Callable[[], None]) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description:32}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar, _log_above_the_bar():
        task = bar.add_task(title, total=total)

        def draw(done: int) -> None:
            look()
            bar.update(task, completed=done)

        yield draw


@contextmanager
def _log_above_the_bar() -> Iterator[None]:
    """While a bar is shown, sys.stderr is one that moves it out of the way; the log still writes to the one before."""
    handlers = [handler for handler in logging.getLogger("shmq").handlers if isinstance(handler, logging.StreamHandler)]
    before = [handler.setStream(sys.stderr) for handler in handlers]
    try:
        yield
    finally:
        for handler, stream in zip(handlers, before, strict=True):
            if stream is not None:  # None: it was this one already
                handler.setStream(stream)


def _alone(tree: SourceTree, look: Callable[[], None]) -> tuple[dict[str, Definitions], float]:
    from shmq.demo.definitions import Definitions

    expected = {}
    with _shown("one process alone", len(tree.names), look) as progress:
        began = time.monotonic()
        for name in tree.names:
            expected[name] = Definitions.of(tree.read(name))
            progress(len(expected))
        return expected, time.monotonic() - began


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


_HEAD = ("", "files", "MB", "seconds", "messages/s", "redelivered", "lost", "doubled", "wrong")


class _Run:
    """One call of the command."""

    def __init__(self, tree: SourceTree, workers: int, producers: int, seed: int) -> None:
        self.tree, self.workers, self.producers, self.seed = tree, workers, producers, seed

    def run(self, look: Callable[[], None]) -> None:
        from shmq.demo.comparison import compare
        from shmq.demo.multiprocessing_run import MultiprocessingRun
        from shmq.demo.pool_run import PoolRun

        many = {"workers": self.workers, "producers": self.producers}
        total = len(self.tree.names)
        self.expected, self.alone = _alone(self.tree, look)
        with _shown("multiprocessing.Queue", total, look) as progress:
            self.other = MultiprocessingRun(self.tree, progress=progress, **many).run()
        with _shown("shmq, one worker killed half-way", total, look) as progress:
            self.ours = PoolRun(self.tree, kill=True, progress=progress, **many).run()
        self.theirs_found = compare(self.expected, self.other.results)
        self.found = compare(self.expected, self.ours.results)

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
            _row("shmq", self.tree, self.ours.seconds, self.ours, self.found),
            _row("multiprocessing.Queue", self.tree, self.other.seconds, self.other, self.theirs_found),
            _row("one process alone", self.tree, self.alone, None, None),
        ]
        killed = "no worker was at work half-way, so none was killed"
        if self.ours.killed is not None:
            killed = f"worker {self.ours.killed} was killed (SIGKILL) with a file in hand; in the other runs nobody was"
        return "\n".join(
            [
                table(_HEAD, rows),
                "",
                f"{quantity(self.workers, 'worker')}, {quantity(self.producers, 'producer')}, seed {self.seed}; "
                f"{killed}",
                f"{facts['functions']:,} functions, {facts['classes']:,} classes, {facts['imports']:,} imports in "
                f"{quantity(facts['lines'], 'line')}; not parsed: {quantity(facts['unparsed'], 'file')}",
                "equal to what one process finds alone" if self.found.equal else _difference(self.found),
            ]
        )


def _difference(found: Comparison) -> str:
    lines = ["NOT equal to what one process finds alone"]
    for word in ("lost", "doubled", "wrong"):
        names = getattr(found, word)
        lines += [f"{word}: {name}" for name in names[:10]]
        if len(names) > 10:
            lines.append(f"{word}: and {len(names) - 10:,} more")
    return "\n".join(lines)


class _Ending:
    """Ctrl-C and SIGTERM, noted in a `with` block and raised where the run can be ended in good order."""

    def __init__(self) -> None:
        self._number = 0
        self._before: dict[int, Any] = {}

    def _note(self, number: int, frame: object) -> None:
        self._number = number

    def look(self) -> None:
        """Raises KeyboardInterrupt, or SystemExit with code 143, if one came."""
        if self._number == signal.SIGINT:
            raise KeyboardInterrupt
        if self._number:
            raise SystemExit(128 + self._number)

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)


@click.command()
@click.option(
    "--input",
    "root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory with *.py files; default: the standard library of this Python.",
)
@click.option("--workers", type=click.IntRange(1, 64), help="Processes that parse; default: the CPUs of this process.")
@click.option(
    "--producers", default=2, show_default=True, type=click.IntRange(1, 64), help="Processes that read files."
)
@click.option("--seed", type=int, help="Of the order of files; printed, for a repeat.")
@pass_session
@click.pass_context
def demo(
    context: click.Context, session: Session, root: Path | None, workers: int | None, producers: int, seed: int | None
) -> None:
    """Parse all modules of the standard library in a pool of workers, and kill one of them half-way.

    Producers put the files into a queue, workers count what they define and import, results come back over another
    queue. Then the same over multiprocessing.Queue, without the kill, which it does not survive, and in one process
    alone, whose result all must equal. Exit code 1 if shmq lost a file, had one twice, or counted wrong.

    Needs no broker and leaves nothing behind. Takes about a minute on two CPUs.

    \b
    Example:
      shmq demo
      shmq demo --input ~/src/project --workers 4 --json
    """
    import os

    from shmq.demo.process_server import start_process_server
    from shmq.demo.sources import SourceTree, standard_library

    seed = secrets.randbits(32) if seed is None else seed
    tree = SourceTree.found_in(root or standard_library(), seed)
    if not tree.names:
        raise click.UsageError(f"there is no *.py file below {tree.root}; name another directory")
    run = _Run(tree, workers or len(os.sched_getaffinity(0)), producers, seed)
    with _Ending() as ending:
        start_process_server()
        run.run(ending.look)
        ending.look()
    session.result(run.as_json(), run.as_text())
    if not run.found.equal:
        context.exit(1)
