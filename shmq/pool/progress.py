"""Shows on stderr how far a pool is: by a bar on a terminal, else by a line now and then."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shmq.engine.queue.queue import Queue
    from shmq.pool.job import Job

from shmq.core import clock
from shmq.quantity import quantity

__all__ = ["INTERVAL", "Progress", "bar"]

INTERVAL = 0.25  # seconds between updates
_LINES = 5.0  # seconds between lines


def bar(**options: Any) -> Any:
    """Makes a bar on stderr: a title, how much is done, the text of the field `said`. options: of rich's Progress."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"), TimeElapsedColumn()
    return Bar(*columns, console=Console(stderr=True), **options)


class Progress:
    """Shows how many messages of a queue have been settled since it was made, of how many.

    Arguments:
        job: whose queue.
    """

    def __init__(self, job: Job) -> None:
        self._queue: Queue[Any] = job.queue
        self._is_part = job.selector is not None  # no count says how many it selects
        self._began = clock.monotonic()
        self._before = self._settled()
        self._next = self._began
        self._bar: Any = None
        self._task: Any = None
        self._due = self._began + _LINES
        if sys.stderr.isatty():
            self._bar = bar(auto_refresh=False, redirect_stdout=False)
            self._bar.start()
            self._task = self._bar.add_task(self._queue.name, total=None, said="")

    def _settled(self) -> int:
        statistics = self._queue.statistics()
        return statistics.acked + statistics.dead_lettered

    def tick(self, workers: int) -> None:
        """Calls update() at most once in INTERVAL."""
        if clock.monotonic() >= self._next:
            self.update(workers)

    def update(self, workers: int) -> None:
        """Reads the queue's counts, and shows them."""
        statistics = self._queue.statistics()
        done = statistics.acked + statistics.dead_lettered - self._before
        total = None if self._is_part else done + statistics.ready + statistics.unsettled + statistics.delayed
        now = clock.monotonic()
        self._next = now + INTERVAL
        rate = done / max(now - self._began, 1e-3)
        said = f"{done:,}{'' if total is None else f' of {total:,}'}, {rate:,.0f} a second"
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, said=said, refresh=True)
        elif now >= self._due or workers == 0:
            self._due = now + _LINES
            print(f"{self._queue.name}: {said}, {quantity(workers, 'worker')}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Shows the final state."""
        self.update(0)
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
