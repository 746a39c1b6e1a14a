"""Keeps the workers of a pool: starts and replaces them, hears them, ends them.

Nothing here looks around in a loop. The supervisor sleeps until a worker reports or ends, or a thread calls it. It
wakes by itself only while there is a reason: a worker that has not heard yet, a start to be tried again, a bar to draw,
a lease or a time limit that may be over.
"""

from __future__ import annotations

import itertools
import logging
import os
import signal
import threading
from dataclasses import replace
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from typing import TYPE_CHECKING, Any

from shmq.core import clock
from shmq.core.queue import death_record_signal, reap
from shmq.death import killed_by
from shmq.engine.handle.open_queue import membership_of, set_pool
from shmq.errors import NotFound, ShmqError, WorkerError
from shmq.pool.failure_log import FailureLog
from shmq.pool.handling import Finding
from shmq.pool.importable import UNGUARDED, WORKER, check_importable, imports_unguarded, remedy_at_the_start
from shmq.pool.job import Job, Parcel
from shmq.pool.others import Others
from shmq.pool.overdue import Overdue, say
from shmq.pool.progress import INTERVAL, Progress
from shmq.pool.report import Dead, Failed, Logged, Report, Sign, Stalled
from shmq.pool.total import Total
from shmq.pool.worker_process import WorkerProcess
from shmq.wait_time import OTHERS_LOOK_OF_A_POOL, RESTART, STALL_AGAIN

if TYPE_CHECKING:
    from shmq.engine.queue.queue import Queue
    from shmq.statistics import PoolCounts

__all__ = ["STALL_AGAIN", "Supervisor"]

_LOG = logging.getLogger("shmq.pool")
_GIVE_UP = 5  # workers that die as they start, one after the other, before the pool gives up
_numbers = itertools.count(1)


class Supervisor:
    """One run of a pool. All but stop() and kill() belongs to one thread.

    Arguments:
        job: what the workers do.
        processes: how many of them.
        context: how they are started.
        progress: show how far it is.
    """

    def __init__(self, job: Job, processes: int, context: BaseContext, *, progress: bool = False) -> None:
        check_importable(context)
        self._job = job
        self._parcel = Parcel(job)
        self._wanted = processes
        self._context = context
        self._workers: list[WorkerProcess] = []
        self._stopping = False
        self._killing = False
        self._drained = False  # the queue was shut down and a worker found nothing more in it
        self._error: BaseException | None = None
        self._failures = 0
        self._start_after = 0.0
        self._look_after = 0.0
        self._stall_told = 0.0
        self._total = Total(job.queue)
        self._looking: Job | None = None  # the job, with a queue's handle that is for looks alone
        self._others = Others()
        self._waking = threading.RLock()  # reentrant: signal handlers wake, too
        self._alone = imports_unguarded(context)  # the first worker starts alone: is it the program's fault if it dies?
        self._overdue = Overdue(job.queue.name, job.time_limit)
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_r, False)
        os.set_blocking(self._wake_w, False)
        self._failed = FailureLog(job.queue.name, job.log_tracebacks)
        self._progress = Progress(job) if progress else None

    # ---- called from other threads -----------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends run() after the messages that workers have in hand. Any thread and signal handlers may call this."""
        self._stopping = True
        self._wake()

    def kill(self) -> None:
        """Kills the workers and ends run(); their messages go back. Any thread and signal handlers may call this."""
        self._killing = True
        self.stop()

    def _wake(self) -> None:
        with self._waking:
            try:
                os.write(self._wake_w, b"\0")
            except OSError:
                pass  # full: it is awake already; closed: it has ended

    def _close_wake(self) -> None:
        with self._waking:  # a thread that wakes a run which has just ended must not write into another file
            pair, self._wake_r, self._wake_w = (self._wake_r, self._wake_w), -1, -1
            for descriptor in pair:
                if descriptor >= 0:
                    os.close(descriptor)

    def __del__(self) -> None:
        if hasattr(self, "_wake_w"):
            self._close_wake()

    def pids(self) -> list[int]:
        """Returns the pids of the present workers."""
        return [worker.pid for worker in list(self._workers)]

    # ---- the run -----------------------------------------------------------------------------------------------

    def run(self) -> PoolCounts:
        """Returns when it is done, or was asked to stop. Raises WorkerError, NotFound, TypeError."""
        try:
            if not (self._job.until_empty and not self._workers and self._is_done()):
                self._supervise()
        finally:
            self.close()
        if self._error is not None:
            raise self._error
        return self._total.counts()

    def close(self) -> None:
        """Ends whatever is left. Part of run()."""
        self._kill_all()
        self._close_wake()
        if self._progress is not None:
            self._progress.close()

    def _supervise(self) -> None:
        while True:
            if self._killing:
                return
            self.staff()
            if not self._workers and (self._stopping or self._drained):
                return
            if self._stopping:
                self._ask_to_stop()
            self._sleep()

    def staff(self) -> None:
        """Starts the workers that are missing."""
        while (
            len(self._workers) < self._wanted_now()
            and not self._stopping
            and not self._drained
            and clock.monotonic() >= self._start_after
        ):
            try:
                name = f"{WORKER}-{next(_numbers)}"
                self._workers.append(WorkerProcess(self._parcel, self._context, name))
            except (OSError, EOFError) as error:  # no process left, or no server for them: that may pass
                self._count_failure(0, "could not be started", f"{type(error).__name__}: {error}")

    def _wanted_now(self) -> int:
        return min(1, self._wanted) if self._alone else self._wanted

    def _ask_to_stop(self) -> None:
        now = clock.monotonic()
        for worker in self._workers:
            if not worker.heard and now >= worker.ask_again_at:
                worker.ask_to_stop()

    def _sleep(self) -> None:
        signs: dict[Any, WorkerProcess] = {}
        for worker in self._workers:
            signs[worker.end_sign] = worker
            if worker.report_sign is not None:
                signs[worker.report_sign] = worker
        ready = wait([self._wake_r, *signs], self._sleep_limit())
        if self._wake_r in ready:
            self._clear_wake()
        for worker in {id(signs[sign]): signs[sign] for sign in ready if sign in signs}.values():
            self._hear(worker)
        if self._progress is not None:
            self._progress.tick(len(self._workers))
        if self._job.until_empty and self._look_after and clock.monotonic() >= self._look_after:
            self._look_if_empty()
        self._overdue.look(self._workers, self._looked_at(), waits=self._only_waits())

    def _only_waits(self) -> bool:
        """Says whether the run only waits for messages that workers or other consumers have in hand."""
        return self._stopping or self._look_after != 0.0

    def _clear_wake(self) -> None:
        try:
            os.read(self._wake_r, 4096)
        except BlockingIOError:
            pass

    def _sleep_limit(self) -> float | None:
        now = clock.monotonic()
        limits = []
        if self._stopping:
            limits += [max(0.0, worker.ask_again_at - now) for worker in self._workers if not worker.heard]
        elif not self._drained and len(self._workers) < self._wanted_now():
            limits.append(max(0.0, self._start_after - now))
        if self._progress is not None:
            limits.append(INTERVAL)
        if self._look_after and not self._stopping:
            limits.append(max(0.0, self._look_after - now))
        overdue = self._overdue.due_in(self._workers, self._looked_at(), waits=self._only_waits())
        if overdue is not None:
            limits.append(overdue)
        return min(limits, default=None)

    # ---- what workers say --------------------------------------------------------------------------------------

    def _hear(self, worker: WorkerProcess) -> None:
        over = worker.has_ended()  # looked at first: what it said before its end is in the pipe then
        for report in worker.read():
            self._note(worker, report)
        if over:
            self._workers.remove(worker)
            self._settle_end(worker, worker.collect())

    def _note(self, worker: WorkerProcess, report: Report) -> None:
        if report is Sign.READY:
            self._alone = False
        elif report is Sign.WORKING:
            self._failures = 0
        elif report is Sign.IDLE:
            self._look_if_empty()
        elif isinstance(report, Failed):
            self._failed.tell(worker.pid, report)
        elif isinstance(report, Dead):
            self._failed.tell_dead(worker.pid, report)
        elif isinstance(report, Logged):
            extra = {**report.extra, "pid": worker.pid}
            logging.getLogger(report.name).log(report.level, "%s", report.text, extra=extra)
        elif isinstance(report, Stalled) and clock.monotonic() >= self._stall_told:
            self._stall_told = clock.monotonic() + STALL_AGAIN  # all workers wait for the same room
            say(self._job.queue.name, worker, report.text)

    def _look_if_empty(self) -> None:
        if self._is_done():
            self._stopping = True
        else:  # other consumers hold messages, and send no reports
            self._look_after = clock.monotonic() + OTHERS_LOOK_OF_A_POOL
            self._others.look(self._looks(), busy=any(worker.hand.seen() for worker in self._workers))

    def _is_done(self) -> bool:
        return self._looks().is_done()

    def _looked_at(self) -> Queue[Any] | None:
        try:
            return self._looks().queue
        except ShmqError:  # it was deleted, or the broker closed
            return None

    def _looks(self) -> Job:
        """Returns the job with a handle of the supervisor's own. Its looks may dead-letter messages: these count."""
        if self._looking is None:
            queue = self._job.queue.broker.queue(self._job.queue.name, create=False)
            set_pool(queue, Finding(queue, self._total.found_dead, self._tell_found))
            self._looking = replace(self._job, queue=queue)
        return self._looking

    def _tell_found(self, report: Dead) -> None:
        self._failed.tell_dead(os.getpid(), report)

    # ---- how workers end ---------------------------------------------------------------------------------------

    def _settle_end(self, worker: WorkerProcess, code: int) -> None:
        if code != 0 or worker.ended is None:
            self._tell_of_death(worker.pid, code)
        in_hand = worker.tally.still_open()
        self._total.add(worker.pid, worker.tally, taken=worker.was_robbed)
        name, text = self._job.queue.name, worker.ended.text if worker.ended is not None else ""
        had = "" if in_hand is None else f"; its message {in_hand[0]} goes back"
        if worker.ended is not None and worker.ended.why in ("stopped", "worn", "drained", "deleted", "results"):
            self._note_end(worker)
        elif worker.killed_for is not None:
            self._failures = 0
        elif self._stopping:  # it was asked to end, by SIGTERM, and may have done so before it could say anything
            if code < 0 and (code != -signal.SIGTERM or had):
                say(name, worker, f"{_end_of(code)}{had}")
        elif worker.died_as_it_started:
            self._count_failure(worker.pid, _end_of(code), text, code)
        else:
            self._failures = 0
            say(name, worker, f"{_end_of(code)}{_behind(text)}{had}{', ' if had else '; '}it is replaced")
        if self._job.until_empty and not self._stopping:
            self._look_after = clock.monotonic() + OTHERS_LOOK_OF_A_POOL

    def _tell_of_death(self, pid: int, code: int) -> None:
        """Reaps a dead worker and notes its signal: its messages are back at once, and their Death can say why."""
        member = membership_of(self._job.queue).live()
        reap(member)
        if code < 0:
            death_record_signal(member, pid, -code)

    def _note_end(self, worker: WorkerProcess) -> None:
        assert worker.ended is not None
        why, text = worker.ended.why, worker.ended.text
        name = self._job.queue.name
        if why == "drained":
            self._drained = True
        elif why == "deleted":
            self._stopping = True
            self._error = NotFound(f"queue {name!r} of the pool was deleted", remedy="stop the pool before delete()")
        elif why == "results" and self._error is None:
            self._stopping = True
            self._error = WorkerError(
                f"the pool of queue {name!r} cannot put its results",
                figures=text,
                remedy="keep the results queue in service until the pool has ended; no message is lost",
            )

    def _count_failure(self, pid: int, what: str, text: str, code: int = 0) -> None:
        name = self._job.queue.name
        self._failures += 1
        extra = {"queue": name, "pid": pid}
        if code == UNGUARDED:
            self._failures = _GIVE_UP
        else:
            _LOG.error("a worker of queue %r died as it started: %s%s", name, what, _behind(text), extra=extra)
        if self._failures >= _GIVE_UP:
            self._stopping = True
            last = text.splitlines()[-1] if text else what
            figures = f"{self._failures} in a row, the last one (pid {pid}): {last}"
            if code == UNGUARDED:
                figures = f"the first one (pid {pid}) imports this program, which starts a pool again"
            self._error = WorkerError(
                f"the workers of queue {name!r} die as they start",
                figures=figures,
                remedy=remedy_at_the_start(self._context, code, text),
            )
            if text:
                self._error.add_note(f"in the worker:\n{text}")
        elif self._failures > 1:
            self._start_after = clock.monotonic() + RESTART * 2**self._failures

    def _kill_all(self) -> None:
        for worker in self._workers:
            worker.kill()
        while self._workers:
            worker = self._workers.pop()
            wait([worker.end_sign])
            for report in worker.read():
                if isinstance(report, Failed | Dead | Logged):
                    self._note(worker, report)
            code = worker.collect()
            if code != 0 and not membership_of(self._job.queue).closed:
                self._tell_of_death(worker.pid, code)
            self._total.add(worker.pid, worker.tally, taken=worker.was_robbed)


def _end_of(code: int) -> str:
    return killed_by(-code) if code < 0 else f"ended with exit code {code}"


def _behind(text: str) -> str:
    return f"\n{text}" if text else ""
