"""The main function of a worker process: takes messages and handles them until it is told to stop.

It prints nothing and ignores Ctrl-C, which a terminal sends to the whole group: that is the pool's affair. SIGTERM asks
it to finish what it has in hand. When the process that owns the pool has gone, it does the same.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from shmq.engine.handle.open_queue import set_pool
from shmq.errors import Empty, NotFound, ShutDown
from shmq.pool.handling import Handling, ResultsUnusable
from shmq.pool.intake import Intake
from shmq.pool.log_report import tell_of_logs
from shmq.pool.report import Ended, Reports, Sign
from shmq.pool.tally import Tally
from shmq.wait_time import OWNER_LOOK

if TYPE_CHECKING:
    from shmq.engine.message.message import Message
    from shmq.pool.job import Job, Parcel
    from shmq.pool.shared_words import SharedWords

__all__ = ["work"]


def work(parcel: Parcel, pipe: Connection, counts: SharedWords) -> None:
    """What a worker process runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reports = Reports(pipe)
    try:
        job = parcel.open()
        if job.initializer is not None:
            job.initializer(*job.initargs)
        tell_of_logs(reports)
        intake = Intake(job.queue, job.selector)
    except BaseException as error:  # SystemExit, too: the pool has to know why
        reports.send(Ended("start", "".join(traceback.format_exception(error)).rstrip()))
        raise SystemExit(1) from None
    reports.send(Ended(*Worker(job, intake, reports, Tally(counts.words)).run()))
    intake.close()


class Worker:
    """The loop over messages."""

    def __init__(self, job: Job, intake: Intake, reports: Reports, tally: Tally) -> None:
        self._job = job
        self._intake = intake
        self._reports = reports
        self._handling = Handling(job, lambda: intake.stopping, reports.send, in_worker=True, tally=tally)
        set_pool(job.queue, self._handling)

    def _on_sigterm(self, number: int, frame: object) -> None:
        if not self._intake.stopping:
            self._reports.send(Sign.STOPPING)
        self._intake.stop()

    def run(self) -> tuple[str, str]:
        """Handles messages. Returns why it ended, and the error if there was one."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})  # whatever was inherited
        self._reports.send(Sign.READY)
        handled = 0
        try:
            while (message := self._next()) is not None:
                if handled == 0:
                    self._reports.send(Sign.WORKING)
                self._handling.handle(message)
                del message  # what it pins must not wait for the next one
                handled += 1
                if handled == self._job.max_messages:
                    return "worn", ""
        except ShutDown:
            return "drained", ""
        except NotFound as error:
            return "deleted", str(error)
        except ResultsUnusable as error:
            return "results", str(error)
        except Exception as error:
            return "error", "".join(traceback.format_exception(error)).rstrip()
        return "stopped", ""

    def _next(self) -> Message[Any] | None:
        if self._job.until_empty:
            try:
                return self._intake.next(0)
            except Empty:
                self._reports.send(Sign.IDLE)
        while True:
            try:
                return self._intake.next(OWNER_LOOK)
            except Empty:
                owner = multiprocessing.parent_process()
                if owner is not None and not owner.is_alive():
                    return None
