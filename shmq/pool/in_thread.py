"""A pool without processes: the messages are handled in the thread that runs it."""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING

from shmq.engine.handle.open_queue import set_pool
from shmq.errors import Empty, ShutDown, WorkerError
from shmq.pool.failure_log import FailureLog
from shmq.pool.handling import Handling, ResultsUnusable
from shmq.pool.intake import Intake
from shmq.pool.job import Job
from shmq.pool.others import Others
from shmq.pool.progress import INTERVAL, Progress
from shmq.pool.report import Dead, Failed, Logged, Stalled
from shmq.pool.tally import Tally, counts_of
from shmq.wait_time import OTHERS_LOOK

if TYPE_CHECKING:
    from shmq.statistics import PoolCounts

__all__ = ["InThread"]

_LOG = logging.getLogger("shmq.pool")


class InThread:
    """One run of a pool with processes=0. It has the methods of Supervisor. Any thread makes it, one thread runs it."""

    def __init__(self, job: Job, *, progress: bool = False) -> None:
        self._job = job
        self._stopping = False
        self._others = Others()
        self._intake: Intake | None = None
        self._thread = 0
        self._tally = Tally([0] * Tally.WORDS)
        self._handling = Handling(job, lambda: self._stopping, self._tell, in_worker=False, tally=self._tally)
        self._failures = FailureLog(job.queue.name, job.log_tracebacks)
        self._progress = Progress(job) if progress else None

    def _tell(self, report: Failed | Dead | Stalled | Logged) -> None:
        pid, name = os.getpid(), self._job.queue.name
        if isinstance(report, Failed):
            self._failures.tell(pid, report)
        elif isinstance(report, Dead):
            self._failures.tell_dead(pid, report)
        else:
            _LOG.warning("pool of queue %r: %s", name, report.text, extra={"queue": name, "pid": pid})

    def stop(self) -> None:
        """Ends run() after the message in hand. Any thread and signal handlers may call this."""
        self._stopping = True
        if self._intake is not None:
            self._intake.stop()

    def kill(self) -> None:
        """Ends the handler if a signal handler of its thread calls this: its message goes back. Other threads ask."""
        if threading.get_ident() == self._thread:
            self._stopping = True
            raise KeyboardInterrupt
        self.stop()

    def close(self) -> None:
        """Does nothing: a run holds no resources before run()."""

    def pids(self) -> list[int]:
        """Returns the pid of this very process."""
        return [os.getpid()]

    def run(self) -> PoolCounts:
        """Raises what the handler raises that is no Exception, WorkerError, NotFound."""
        job = self._job
        job.initialize()
        self._thread = threading.get_ident()
        self._intake = Intake(job.queue, job.selector)
        set_pool(job.queue, self._handling)
        if self._stopping:  # asked before there was anything to stop
            self._intake.stopping = True
        try:
            self._handle_all(self._intake)
        except ShutDown:
            pass
        except ResultsUnusable as error:
            raise WorkerError(
                f"the pool of queue {job.queue.name!r} cannot put its results",
                figures=str(error),
                remedy="keep the results queue in service until the pool has ended; no message is lost",
            ) from error
        finally:
            set_pool(job.queue, None)
            self._intake.close()
            if self._progress is not None:
                self._progress.close()
        return counts_of(self._tally.ended())

    def _handle_all(self, intake: Intake) -> None:
        until_empty = self._job.until_empty
        wait = 0.0 if until_empty else None
        if self._progress is not None and not until_empty:
            wait = INTERVAL
        while True:
            try:
                message = intake.next(wait)
            except Empty:
                if until_empty:
                    if self._job.is_done():
                        return
                    wait = OTHERS_LOOK
                    self._others.look(self._job, busy=False)
                if self._progress is not None:
                    self._progress.update(1)
                continue
            if message is None:
                return
            self._handling.handle(message)
            if until_empty:
                wait = 0.0
            if self._progress is not None:
                self._progress.tick(1)
            del message
