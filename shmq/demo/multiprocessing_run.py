"""The same job with multiprocessing.Queue, for comparison: same processes, same backlog.

Nobody is killed here: the queue would not survive it.
"""

from __future__ import annotations

import multiprocessing
import queue
import time
from multiprocessing.process import BaseProcess
from typing import Any

from shmq.demo.definitions import Definitions, Result
from shmq.demo.outcome import Outcome, Progress
from shmq.demo.sources import SourceTree
from shmq.pool.quiet_start import QuietStart

__all__ = ["MultiprocessingRun"]

_BACKLOG = 256


def produce(sources: Any, tree: SourceTree, first: int, step: int) -> None:
    """A producer: its share of the files."""
    for name in tree.names[first::step]:
        sources.put((name, tree.read(name)))


def work(sources: Any, counts: Any) -> None:
    """A worker, until None comes."""
    while (task := sources.get()) is not None:
        name, source = task
        counts.put(Result(name, Definitions.of(source), False).to_body())


class MultiprocessingRun:
    """One run of the job. Arguments as for PoolRun."""

    def __init__(self, tree: SourceTree, *, workers: int, producers: int, progress: Progress) -> None:
        self._tree = tree
        self._workers = workers
        self._producers = producers
        self._progress = progress
        self._results: list[Result] = []
        self._finished = 0.0

    def run(self) -> Outcome:
        """Ends early if a process fails; what is missing then is lost."""
        context = multiprocessing.get_context("forkserver")
        sources: Any = context.Queue(_BACKLOG)
        counts: Any = context.Queue()
        began = time.monotonic()
        producers: list[BaseProcess] = [
            context.Process(target=QuietStart(produce), args=(sources, self._tree, number, self._producers))
            for number in range(self._producers)
        ]
        workers: list[BaseProcess] = [
            context.Process(target=QuietStart(work), args=(sources, counts)) for _ in range(self._workers)
        ]
        started: list[BaseProcess] = []
        try:
            for process in [*workers, *producers]:
                process.start()
                started.append(process)
            self._collect(sources, counts, producers, workers)
        finally:
            for process in started:
                process.kill()
                process.join()
            for used in (sources, counts):
                used.close()
                used.cancel_join_thread()
        return Outcome(self._results, self._finished - began, 2 * len(self._tree.names))

    def _collect(self, sources: Any, counts: Any, producers: list[BaseProcess], workers: list[BaseProcess]) -> None:
        ending = False
        while len(self._results) < len(self._tree.names):
            if not ending and all(process.exitcode is not None for process in producers):
                ending = True
                for _ in workers:
                    sources.put(None)
            over = any(process.exitcode for process in [*producers, *workers])
            over = over or all(process.exitcode is not None for process in workers)
            self._progress(len(self._results))
            try:
                self._results.append(Result.of_body(counts.get(timeout=0.05)))
            except queue.Empty:
                if over:
                    return
                continue
            self._finished = time.monotonic()
        self._progress(len(self._results))
