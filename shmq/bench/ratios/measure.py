"""How many times as much a variant costs as its baseline: short rounds in turn, CPU time."""

from __future__ import annotations

import logging
import mmap
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from shmq.bench.ratios.scene import Scene, Situation
from shmq.bench.ratios.table import Row
from shmq.bench.ratios.verbs import VERBS, Verb
from shmq.errors import Empty, Full, Timeout

__all__ = ["FAILED", "RUNS", "RatioRow", "measure_ratios"]

RUNS: Final = 4  # a row that is above what is allowed is measured three times more
_ROUNDS: Final = 9
_FEWEST: Final = 3  # rounds, also of what takes long
_SECONDS: Final = 4.0  # after which a row has no more rounds
_ENOUGH: Final = 0.005  # seconds of CPU time of a round
_PLACES: Final = 2**27  # bytes of the places that are copied to, at most
_LONGEST: Final = 0.3  # seconds of a round, with what is not counted
HANGS: Final = 20.0  # seconds after which a round of any row hangs

Say = Callable[[str], None]
Once = Callable[[], tuple[float, int]]  # seconds of CPU time, operations


@dataclass(frozen=True, slots=True)
class RatioRow:
    """The result of a row: CPU time of an operation in microseconds, medians of the rounds; None: it stopped."""

    name: str
    baseline: float
    variant: float | None
    factor: float | None  # median of those of the rounds
    at_most: float | None  # None: no bound yet
    goal: float | None
    verdict: str  # ok, open (above the goal), open: it stops, reached (the goal: at_most may be it), FAILED
    note: str  # why it stopped
    runs: int

    @property
    def failed(self) -> bool:
        return self.verdict == FAILED


FAILED: Final = "FAILED"
_NEVER: Final = float("inf")


class _Side:
    """The baseline or the variant of a row, made once, or for each round if that uses it up."""

    def __init__(self, verb: str, situation: Situation, stack: ExitStack) -> None:
        self._name, self._situation = verb, situation
        self._scene = stack.enter_context(ExitStack())
        self._verb: Verb | None = None
        self._once: Once

    def _make(self) -> Verb:
        self._scene.close()
        scene = Scene(self._situation, self._scene)
        verb = self._verb = VERBS[self._name](scene)
        once = _once(verb, self._situation.copied)
        self._once = scene.child(once) if self._situation.elsewhere else once
        return verb

    def round(self) -> float:
        """Microseconds of CPU time of an operation."""
        made = self._verb
        verb = self._make() if made is None or made.uses_up else made
        spent, operations, began = 0.0, 0, time.monotonic()
        while True:
            with _no_hang():
                verb.before()
                seconds, done = self._once()
                verb.after()
            spent, operations = spent + seconds, operations + done
            if verb.uses_up or spent > _ENOUGH or time.monotonic() - began > _LONGEST:
                return spent / operations * 1e6


@contextmanager
def _no_hang() -> Iterator[None]:
    """Ends a call that waits for ever: measured ones have no timeout, which would cost them something."""

    def stop(number: int, frame: object) -> None:
        raise Timeout("a call hangs", figures=f"no end within {HANGS:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, HANGS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _once(verb: Verb, copied: int) -> Once:
    copy, copies = bytes(copied), verb.times * verb.operations
    # As messages do, each lies in a place of its own, in shared memory. A copy to one place stays in the caches, and
    # costs a quarter to half as much from 256 KiB on.
    places = max(1, min(copies, _PLACES // max(1, copied)))
    memory = memoryview(mmap.mmap(-1, places * copied or 1))
    rooms = [memory[i % places * copied :][:copied] for i in range(copies if copied else 0)]

    def once() -> tuple[float, int]:
        begin = verb.spent()
        for _ in range(verb.times):
            verb.call()
        for room in rooms:
            room[:] = copy
        return verb.spent() - begin, copies

    return once


def _run(row: Row) -> tuple[float, float, float, str]:
    """Baseline, variant, factor, and why the variant stopped, if it did."""
    ours: list[float] = []
    theirs: list[float] = []
    with ExitStack() as stack:
        baseline, variant = (_Side(*side, stack) for side in zip(row.verbs, row.situations, strict=True))
        baseline.round()
        began = time.monotonic()
        try:
            variant.round()
            while len(ours) < _FEWEST or (len(ours) < _ROUNDS and time.monotonic() - began < _SECONDS):
                theirs.append(baseline.round())
                ours.append(variant.round())
        except (Empty, Full, Timeout) as error:
            return statistics.median(theirs or [baseline.round()]), _NEVER, _NEVER, str(error).partition(";")[0]
    factors = [our / max(their, 1e-9) for our, their in zip(ours, theirs, strict=True)]
    return statistics.median(theirs), statistics.median(ours), statistics.median(factors), ""


@contextmanager
def _log_to_nobody() -> Iterator[None]:
    """Log records are made as ever, and written nowhere: a line for each dead letter of a measurement tells nothing."""
    logger = logging.getLogger("shmq")
    handlers, propagate = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [logging.NullHandler()], False
    try:
        yield
    finally:
        logger.handlers, logger.propagate = handlers, propagate


def measure_ratios(rows: Sequence[Row], *, progress: Say = lambda text: None) -> Iterator[RatioRow]:
    """Each row; one above its allowed factor is measured again, up to three times, and its lowest factor counts."""
    for number, row in enumerate(rows, 1):
        best: tuple[float, float, float, str] | None = None
        for run in range(1, RUNS + 1):
            again = f", again ({run} of {RUNS}): {best[2]:,.2f} times, {row.at_most:,g} allowed" if best else ""
            progress(f"{number} of {len(rows)}: {row.name}{again}")
            with _log_to_nobody():
                found = _run(row)
            best = found if best is None else min(best, found, key=lambda one: one[2])
            if best[2] <= row.at_most:
                break
        assert best is not None
        yield _judged(row, best, run)


def _judged(row: Row, found: tuple[float, float, float, str], runs: int) -> RatioRow:
    baseline, variant, factor, note = found
    verdict = "ok" if row.goal is None else "reached" if factor <= row.goal else "open: it stops" if note else "open"
    return RatioRow(
        name=row.name,
        baseline=baseline,
        variant=_or_none(variant),
        factor=_or_none(factor),
        at_most=_or_none(row.at_most),
        goal=row.goal,
        verdict=verdict if factor <= row.at_most else FAILED,
        note=note,
        runs=runs,
    )


def _or_none(value: Any) -> float | None:
    return None if value == _NEVER else float(value)
