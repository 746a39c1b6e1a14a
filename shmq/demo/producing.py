"""The producers of the job: processes that put files into the queue of sources."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

import shmq
from shmq.demo.sources import SourceTree
from shmq.pool.quiet_start import QuietStart

__all__ = ["BACKLOG", "check_producers", "producing"]

BACKLOG = 256  # files on their way at most; then producers wait
_WAIT_SECONDS = 3600.0  # for room: more than enough; a put without any limit would tell the log that it waits for long


def produce(queue: shmq.Queue[bytes], tree: SourceTree, first: int, step: int) -> None:
    """A producer: its share of the files."""
    for name in tree.names[first::step]:
        queue.put(tree.read(name), headers={"file": name}, timeout=_WAIT_SECONDS)


@contextmanager
def producing(sources: shmq.Queue[bytes], tree: SourceTree, producers: int) -> Iterator[Sequence[BaseProcess]]:
    """So many producers, in a `with` block; none of them is left behind it."""
    context = multiprocessing.get_context("forkserver")
    processes: list[BaseProcess] = []
    try:
        for number in range(producers):
            process: BaseProcess = context.Process(
                target=QuietStart(produce), args=(sources, tree, number, producers), name=f"producer-{number}"
            )
            processes.append(process)
            process.start()
        yield processes
    finally:
        for process in processes:
            if process.pid is not None:
                process.kill()
                process.join()


def check_producers(processes: Sequence[BaseProcess]) -> None:
    """Raises RuntimeError if one of them, all of which have ended, has failed."""
    failed = [process.exitcode for process in processes if process.exitcode != 0]
    if failed:
        raise RuntimeError(f"producers failed with exit codes {failed}; read their errors on stderr")
