"""The job with Spark: producers enqueue the files, Spark parses and counts, results come back over another queue.

One of Spark's Python workers is killed on the way, and then the driver with all of its processes. Another driver goes
on from the checkpoint.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any, Final

import shmq
from shmq.demo.definitions import Definitions, Result
from shmq.demo.outcome import Outcome, Progress
from shmq.demo.producing import BACKLOG, check_producers, producing
from shmq.demo.sources import SourceTree
from shmq.demo.spark_desk import Desk, notes_of
from shmq.demo.spark_driver import COUNTS, SOURCES, Job, batches_in
from shmq.demo.spark_processes import Driver
from shmq.spark.jvm import find_jvm

__all__ = ["SparkFailed", "SparkOutcome", "SparkRun", "check_spark"]

_LOG: Final = logging.getLogger("shmq.demo")
_BATCHES = 8  # about, so that something is done and something is not when somebody dies
_LAST_LINES = 20  # of what the driver wrote, for the error


class SparkFailed(shmq.ShmqError):
    """The driver ended though nobody killed it; the text has the end of what it wrote."""


def check_spark() -> None:
    """Is there all that Spark needs? Raises ShmqError, JvmNotFound with what is missing and the remedy."""
    missing = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    if missing:
        raise shmq.ShmqError(
            f"this Python has no {' and no '.join(missing)}",
            remedy="pip install 'shmq[spark-jvm]' brings it, and a Java; from a checkout: tools/run --spark",
        )
    find_jvm()


@dataclass(frozen=True)
class SparkOutcome(Outcome):
    """One run over all files.

    Attributes:
        driver: pid of the driver that was killed; None: none was.
        processes: how many were killed with it, itself among them.
        before: files that had a result when it was killed.
        recovery: seconds from its death to the next result; None: there was none.
        batches: that Spark has done.
        parsed: files that were begun to be parsed, repeats among them.
    """

    driver: int | None = None
    processes: int = 0
    before: int = 0
    recovery: float | None = None
    batches: int = 0
    parsed: int = 0


def result_of(body: str) -> Result:
    """One row of Spark's."""
    row = json.loads(body)
    counts = Definitions(*(row[name] for name in Definitions._fields))
    return Result(row["file"], counts, row["repeated"])


class SparkRun:
    """One run of the job.

    Arguments:
        tree: the files.
        workers: tasks at a time.
        producers: processes that put files.
        kill: whether a worker and the driver are killed.
        progress: told how many files are done.
    """

    def __init__(self, tree: SourceTree, *, workers: int, producers: int, kill: bool, progress: Progress) -> None:
        self._tree = tree
        self._workers = workers
        self._producers = producers
        self._kill = kill
        self._progress = progress
        self._results: list[Result] = []
        self._files: set[str] = set()
        self._finished = 0.0
        self._worker: int | None = None  # pids of those that were killed
        self._dead: int | None = None
        self._processes = self._before = 0
        self._died = 0.0
        self._recovery: float | None = None

    def run(self) -> SparkOutcome:
        """Raises SparkFailed if the driver ends by itself; RuntimeError if a producer fails."""
        with _folder() as folder:
            job = Job(folder, self._workers, *self._share())
            with shmq.open(job.broker) as broker, (folder / "driver.log").open("w+b") as log:
                try:
                    return self._run(broker, job, log)
                finally:
                    broker.delete(force=True)

    def _share(self) -> tuple[int, int]:
        files = max(math.ceil(len(self._tree.names) / _BATCHES), 1)
        return files, max(self._tree.size // (_BATCHES * self._workers), 1)

    def _run(self, broker: shmq.Broker, job: Job, log: IO[bytes]) -> SparkOutcome:
        self._job, self._log = job, log
        self._sources = broker.queue(SOURCES, codec="bytes", maxsize=BACKLOG)
        self._counts = broker.queue(COUNTS)
        self._desk = Desk(notes_of(broker))
        began = time.monotonic()
        self._driver = Driver(job, log)
        try:
            with producing(self._sources, self._tree, self._producers) as producers:
                self._collect(producers)
                check_producers(producers)
            self._finish()
        finally:
            self._driver.kill()
        return SparkOutcome(
            self._results,
            self._finished - began,
            self._sources.statistics().put + len(self._results),
            self._worker,
            driver=self._dead,
            processes=self._processes,
            before=self._before,
            recovery=self._recovery,
            batches=len(batches_in(job.checkpoint, "commits")),
            parsed=self._desk.parsed,
        )

    def _collect(self, producers: Sequence[BaseProcess]) -> None:
        """Until Spark has all files, and who shall be killed is dead."""
        while True:
            ended = all(process.exitcode is not None for process in producers)
            self._take(self._counts.get_many(64, timeout=0.02))
            self._check()
            self._desk.look()
            if ended and not self._sources.qsize() and (self._is_all_killed() or not self._desk.in_hand):
                return
            if not self._is_all_killed():
                self._kill_who_is_due()

    def _is_all_killed(self) -> bool:
        return not self._kill or self._dead is not None

    def _kill_who_is_due(self) -> None:
        """A worker as soon as there are results, the driver when half of them are there; each amid a file."""
        if not self._files:
            return
        at_work = [(pid, file) for pid, file in self._desk.in_hand.items() if file not in self._files]
        if self._worker is None:
            for pid, file in at_work:
                if self._driver.kill_if(pid, lambda pid=pid: self._still_has_one(pid)):  # type: ignore[misc]
                    self._worker = pid
                    self._desk.in_hand.pop(pid, None)
                    _LOG.warning("worker %d of Spark: killed by SIGKILL with %s in hand", pid, file)
                    return
        elif at_work and 2 * len(self._files) >= len(self._tree.names):
            self._kill_driver()

    def _still_has_one(self, pid: int) -> bool:
        self._desk.look()
        return pid in self._desk.in_hand

    def _kill_driver(self) -> None:
        self._dead = self._driver.pid
        self._processes = self._driver.kill()
        self._died = time.monotonic()
        self._desk.forget()
        self._take(self._counts.get_many(len(self._tree.names), timeout=0))
        self._before = len(self._files)
        _LOG.warning(
            "driver %d of Spark: killed by SIGKILL with its %d processes; another one goes on from the checkpoint",
            self._dead,
            self._processes,
        )
        self._driver = Driver(self._job, self._log)

    def _finish(self) -> None:
        """Spark has the rest in hand; what comes when all is done would be too much, and is found, too."""
        self._driver.finish()
        while self._driver.has_ended() is None:
            self._take(self._counts.get_many(64, timeout=0.02))
        self._check()
        while rest := self._counts.get_many(64, timeout=0):
            self._take(rest)
        self._desk.look()

    def _check(self) -> None:
        """Raises SparkFailed for a driver that has ended, but for one that was asked to."""
        code = self._driver.has_ended()
        if not code:
            return
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()
        raise SparkFailed("\n".join([*lines[-_LAST_LINES:], f"the driver of Spark ended with exit code {code}"]))

    def _take(self, batch: list[Any]) -> None:
        now = time.monotonic()
        if batch:
            self._finished = now
            if self._died and self._recovery is None:
                self._recovery = now - self._died
        for body in batch:
            result = result_of(body)
            self._results.append(result)
            self._files.add(result.file)
        self._progress(len(self._files))


@contextmanager
def _folder() -> Iterator[Path]:
    """Of one run: nothing of it is left."""
    folder = Path(tempfile.mkdtemp(prefix="shmq-demo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
