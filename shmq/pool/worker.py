"""The main function of a worker process: takes messages and handles them until it is told to stop.

It prints nothing and ignores Ctrl-C, which a terminal sends to the whole group: that is the pool's affair. SIGTERM asks
it to finish what it has in hand, and ends its wait for a message. So does a word of shared memory, which is looked at
before each message, for a handler may have taken the signal. When the process that owns the pool has gone, it does the
same.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shmq.core.clock import monotonic_ns
from shmq.engine.handle.open_queue import set_pool
from shmq.error_text import text_of
from shmq.errors import Empty, NotFound, ShutDown
from shmq.pool.hand import Hand, LentMessage
from shmq.pool.handling import Handling, ResultsUnusable
from shmq.pool.intake import Intake
from shmq.pool.log_report import tell_of_logs
from shmq.pool.owner import Owner
from shmq.pool.report import Ended, Reports, Sign
from shmq.pool.tally import Tally
from shmq.wait_time import BUSY_LOOK, OWNER_LOOK

if TYPE_CHECKING:
    from shmq.engine.message.message import Message
    from shmq.pool.job import Job, Parcel
    from shmq.pool.shared_words import SharedWords

__all__ = ["work"]


def work(parcel: Parcel, pipe: Connection, counts: SharedWords, owner: Owner) -> None:
    """Runs a worker process, from its start to its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reports = Reports(pipe)
    owner.watch(pipe)
    _call_this_process(f"worker {parcel.queue}")
    try:
        job = parcel.open()
        job.initialize()
        tell_of_logs(reports)
        intake = Intake(job.queue, job.selector)
    except BaseException as error:  # SystemExit, too: the pool has to know why
        reports.send(Ended("start", text_of(error)))
        raise SystemExit(1) from None
    why, text = Worker(job, intake, reports, counts, owner).run()
    reports.send(Ended(why, text, _left()))
    intake.close()


def _call_this_process(name: str) -> None:
    """Names this process for ps and shmq ps. The kernel keeps 15 bytes."""
    with suppress(OSError):
        Path("/proc/self/comm").write_bytes(name.encode()[:15])


def _left() -> str:
    """Names the threads and processes for which Python waits at the end of this process."""
    main, children = threading.main_thread(), multiprocessing.active_children()
    threads = [thread.name for thread in threading.enumerate() if thread is not main and not thread.daemon]
    processes = [f"{child.name} (pid {child.pid})" for child in children if not child.daemon]
    return "; ".join([*(f"thread {name}" for name in threads), *(f"child process {name}" for name in processes)])


class Worker:
    """The loop over messages."""

    def __init__(self, job: Job, intake: Intake, reports: Reports, counts: SharedWords, owner: Owner) -> None:
        self._job = job
        self._intake = intake
        self._reports = reports
        self._owner = owner
        self._look_at = 0
        self._hand = LentMessage.hand = Hand(counts.hand)
        os.register_at_fork(after_in_child=self._hand.forked)
        tally = Tally(counts.tally)
        self._handling = Handling(job, self._is_to_stop, reports.send, in_worker=True, tally=tally, hand=self._hand)
        set_pool(job.queue, self._handling)

    def _is_to_stop(self) -> bool:
        return self._intake.stopping or self._hand.is_to_stop or self._owner.has_gone()

    def _goes_on(self) -> bool:
        """Says after each message whether the worker goes on. It asks the owner only once in BUSY_LOOK."""
        now = monotonic_ns()
        if now < self._look_at:
            return True
        self._look_at = now + round(BUSY_LOOK * 1e9)
        self._hand.look_at_lease(self._job.queue)
        return not self._is_to_stop()

    def _on_sigterm(self, number: int, frame: object) -> None:
        if not self._intake.stopping:
            self._reports.send(Sign.STOPPING)
        self._intake.stop()

    def run(self) -> tuple[str, str]:
        """Handles messages. Returns why it ended, and the error if there was one."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})  # a mask may be inherited
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
            return "error", text_of(error)
        return "stopped", ""

    def _next(self) -> Message[Any] | None:
        limit = 0.0 if self._job.until_empty else OWNER_LOOK
        while self._goes_on():
            try:
                return self._intake.next(limit)
            except Empty:
                if limit == 0.0:
                    self._reports.send(Sign.IDLE)
                limit = OWNER_LOOK
                self._look_at = 0
        return None
