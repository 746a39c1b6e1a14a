"""The job with shmq: producers enqueue the files, a WorkerPool parses them, one worker is killed half-way."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from typing import Any

import shmq
from shmq.demo.definitions import Definitions, Result
from shmq.demo.outcome import Outcome, Progress
from shmq.demo.producing import BACKLOG, check_producers, producing
from shmq.demo.sources import SourceTree

__all__ = ["PoolRun", "parse"]

_LOOKS = 200  # at whether all workers have stopped


def parse(message: shmq.Message[bytes]) -> list[Any]:
    """The handler: one file in, its counts out."""
    result = Result(str(message.headers["file"]), Definitions.of(message.body), message.redelivered)
    return result.to_body()


def kill_one_at_work(pool: shmq.WorkerPool[bytes, Any], sources: shmq.Queue[bytes]) -> int | None:
    """Kill a worker that has a file in hand, and return its pid; None: just now none can be said to have one.

    All are stopped before they are looked at. A worker counts its messages in hand a moment after it takes or settles
    one. When these counts together equal the queue's count, no worker is in such a moment.
    """
    stopped = [worker.pid for worker in pool.processes() if _signal(worker.pid, signal.SIGSTOP)]
    killed = None
    if _have_stopped(pool):
        at_work = {worker.pid: worker.unsettled for worker in pool.processes() if worker.unsettled}
        if at_work and sum(at_work.values()) == sources.statistics().unsettled:
            killed = next(iter(at_work))
            _signal(killed, signal.SIGKILL)
    for pid in stopped:
        _signal(pid, signal.SIGCONT)
    return killed


def _have_stopped(pool: shmq.WorkerPool[bytes, Any]) -> bool:
    """A process stops when it is next scheduled, which on a busy machine takes a while."""
    for _ in range(_LOOKS):
        if all(worker.state == "stopped" for worker in pool.processes()):
            return True
        time.sleep(0.001)
    return False


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


class PoolRun:
    """One run of the job.

    Arguments:
        tree: the files.
        workers, producers: how many processes of each.
        kill: whether a worker is killed half-way.
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
        self._killed: int | None = None

    def run(self) -> Outcome:
        """Raises RuntimeError if a producer fails; what the pool raises."""
        with shmq.open() as broker:
            sources = broker.queue("sources", codec="bytes", maxsize=BACKLOG)
            counts = broker.queue("counts")
            began = time.monotonic()
            pool = shmq.WorkerPool(sources, parse, processes=self._workers, results=counts)
            with producing(sources, self._tree, self._producers) as producers, pool:
                try:
                    self._collect(sources, counts, pool, producers)
                except BaseException:
                    pool.stop(timeout=1.0)
                    raise
                sources.shutdown()
            messages = sources.statistics().put + counts.statistics().put
        return Outcome(self._results, self._finished - began, messages, self._killed)

    def _collect(
        self,
        sources: shmq.Queue[bytes],
        counts: shmq.Queue[Any],
        pool: shmq.WorkerPool[bytes, Any],
        producers: Sequence[BaseProcess],
    ) -> None:
        while True:
            last = all(process.exitcode is not None for process in producers) and _is_drained(sources)
            batch = counts.get_many(64, timeout=0 if last else 0.05)
            self._take(batch)
            if last and not batch:
                break
            if self._kill and self._killed is None and 2 * len(self._files) >= len(self._tree.names):
                self._killed = kill_one_at_work(pool, sources)
        check_producers(producers)

    def _take(self, batch: list[Any]) -> None:
        if batch:
            self._finished = time.monotonic()
        for body in batch:
            result = Result.of_body(body)
            self._results.append(result)
            self._files.add(result.file)
        self._progress(len(self._files))


def _is_drained(queue: shmq.Queue[Any]) -> bool:
    """Nothing ready, nothing in hand: as each result is put before its file is acked, all results are there."""
    try:
        queue.join(timeout=0)
    except shmq.Timeout:
        return False
    return True
