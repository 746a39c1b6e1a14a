"""WorkerPool: handles the messages of one queue in processes of its own, and outlives them."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.context import BaseContext
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from shmq.core.process_table import processes as members
from shmq.engine.broker.broker import live_membership
from shmq.engine.message.selection import loaded
from shmq.engine.queue.queue import Queue
from shmq.errors import Timeout
from shmq.options import check_bool, check_timeout
from shmq.pool.in_thread import InThread
from shmq.pool.interruption import Interruption
from shmq.pool.job import Job
from shmq.pool.signature import check_arguments, check_handler, check_runs
from shmq.pool.supervisor import Supervisor
from shmq.quantity import quantity
from shmq.wait_time import WORKERS_END

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from shmq.engine.message.message import Message
    from shmq.statistics import PoolCounts, ProcessInfo

__all__ = ["WorkerPool"]

T = TypeVar("T")
R = TypeVar("R")

Runner = Supervisor | InThread


class _Run:
    """One run, from its claim to its end."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.done = threading.Event()
        self.error: BaseException | None = None
        self.thread: threading.Thread | None = None
        self.owner = 0  # the thread that runs it

    def main(self) -> None:
        """Runs the pool in the thread "shmq-pool"."""
        self.owner = threading.get_ident()
        try:
            self.runner.run()
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()


def _end_forgotten(run: _Run) -> None:
    """Ends pools that are still open at the end of the program, before multiprocessing waits for its children."""
    run.runner.kill()
    run.done.wait(WORKERS_END)


class WorkerPool(Generic[T, R]):
    """Handles the messages of one queue, as in `with m:`, but an exception is logged and recorded and the pool goes on.

    A worker that dies is replaced, and only its message is handled again, by any free worker, within milliseconds. A
    message that kills max_deaths workers is among the dead with the signal and the pids; one that fails max_attempts
    times, with the last traceback. A worker that dies between the result and the ack has put a result that comes again.

    Arguments:
        queue: whose messages.
        handler: called with each Message, in a worker. Returning acks, an exception retries; it may settle the message
            itself. With forkserver and spawn it has to stand at the top of a module.
        processes: how many; None: the CPUs that this process may use; 0: none, in the thread that calls run().
        results: gets what the handler returns, put before the ack; nothing of messages it settled as failed.
        initializer, initargs: called in each worker before its first message.
        max_messages: a worker is replaced after so many.
        mp_context: how workers are started: "fork", "spawn" or "forkserver", or a context of multiprocessing; None:
            forkserver.
        progress: show how far it is, on stderr: a bar on a terminal, lines otherwise.
        selector: only messages for which it is true, such as "kind = 'png'"; the others are left in the queue, for
            other consumers.
        time_limit: seconds for one call of the handler; None: as long as it takes. A worker that is over it is killed
            and replaced, and its message goes back, counted as a death.
        log_tracebacks: True: of each failed attempt; False: of the last one.

    A worker whose message was taken away by the queue's lease is killed and replaced, too. A result has a header `job`,
    the id of its message. Workers end when the process that owns the pool has gone.

    A failed message rests before it is tried again, as the queue's retry_delay says. Without one it rests 0.1 s,
    doubled with each attempt up to 30 s, each shortened at random by up to half.

    Failed attempts and deaths of workers are logged to "shmq.pool" in this process. An attempt that is followed by
    another one is a warning; the one that makes the message dead is an error with the traceback.

    Raises TypeError for a handler that cannot be called with one message, or whose call does not run it (a coroutine
    function). Raises SelectorError for a malformed selector, ValueError for other unfit arguments.

    Example:
        >>> def square(m):
        ...     return m.body * m.body
        >>> queue.put_many([1, 2, 3])
        >>> squares = broker.queue("squares")
        >>> shmq.WorkerPool(queue, square, processes=0, results=squares).run(until_empty=True)
        PoolCounts(handled=3, retried=0, dead={})
        >>> squares.get_many(10)
        [1, 4, 9]
    """

    def __init__(
        self,
        queue: Queue[T],
        handler: Callable[[Message[T]], R],
        *,
        processes: int | None = None,
        results: Queue[R] | None = None,
        selector: str | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        max_messages: int | None = None,
        mp_context: BaseContext | Literal["fork", "spawn", "forkserver"] | None = None,
        progress: bool = False,
        log_tracebacks: bool = False,
        time_limit: float | None = None,
    ) -> None:
        for name, value, kind in (("queue", queue, Queue), ("results", results, Queue)):
            if not isinstance(value, kind) and not (name == "results" and value is None):
                raise TypeError(f"{name}={value!r}: a Queue is expected")
        for name, call in (("handler", handler), ("initializer", initializer)):
            if not callable(call) and not (name == "initializer" and call is None):
                raise TypeError(f"{name}={call!r}: a function is expected")
        check_handler(handler)
        if initializer is not None:
            check_runs("initializer", initializer)
        if selector is not None:
            loaded(selector)  # what is malformed is noticed before any process starts
        _check_count("processes", processes, 0)
        _check_count("max_messages", max_messages, 1)
        self._processes = len(os.sched_getaffinity(0)) if processes is None else processes
        self._job = Job(
            queue,
            handler,
            results,
            initializer,
            check_arguments(initargs),
            max_messages,
            selector=selector or None,
            time_limit=_check_time_limit(time_limit, self._processes),
            log_tracebacks=check_bool(log_tracebacks, "log_tracebacks"),
        )
        self._context = _check_context(mp_context)
        self._progress = progress
        self._lock = threading.Lock()
        self._run: _Run | None = None

    def __repr__(self) -> str:
        state = "running" if self._run is not None else "at rest"
        return f"<WorkerPool of {self._job.queue.name!r}, {quantity(self._processes, 'process')}, {state}>"

    # ---- one run -----------------------------------------------------------------------------------------------

    def _claim(self, *, until_empty: bool) -> _Run:
        with self._lock:
            if self._run is not None:
                raise RuntimeError("the pool runs already; stop() it first, or make another one")
            job = replace(self._job, until_empty=until_empty)
            runner: Runner
            if self._processes == 0:
                runner = InThread(job, progress=self._progress)
            else:
                runner = Supervisor(job, self._processes, self._context, progress=self._progress)
            self._run = _Run(runner)
            return self._run

    def _leave(self, run: _Run) -> None:
        with self._lock:
            if self._run is run:
                self._run = None

    def run(self, *, until_empty: bool = False) -> PoolCounts:
        """Handle messages in this thread's time, until the queue is shut down and drained.

        until_empty: until nothing (that is selected) is ready, delayed or unsettled, with whomever it is.

        Returns the counts of all outcomes, also of workers that were killed; messages that others took are not in it.

        In the main thread the first Ctrl-C or SIGTERM lets workers finish the messages in hand, and a line on stderr
        says so. A second one kills them, and their messages go back, counted as a death. A run without until_empty
        returns after the first one. A run with it, or one whose workers were killed, raises KeyboardInterrupt (SIGTERM:
        SystemExit 143), for not all is done. A call of stop() lets it return, too.

        Raises WorkerError if workers keep dying as they start, with the error of the last one, or if results cannot be
        put. Raises NotFound if the queue is deleted; TypeError if the handler cannot be sent to workers. Raises
        RuntimeError if the pool runs already, or in a worker that imports an unguarded program. None of them loses a
        message.

        Example:
            >>> queue.put_many(["a", "b"])
            >>> queue.shutdown()
            >>> shmq.WorkerPool(queue, lambda m: print(m.body), processes=0).run()
            a
            b
            PoolCounts(handled=2, retried=0, dead={})
        """
        run = self._claim(until_empty=until_empty)
        run.owner = threading.get_ident()

        def tell(count: int) -> None:
            if count == 1:
                run.runner.stop()
            else:
                run.runner.kill()

        try:
            with Interruption(tell) as interruption:
                counts = run.runner.run()
        finally:
            run.done.set()
            self._leave(run)
        if interruption.count > 1 or (interruption.count == 1 and until_empty):
            interruption.raise_as_usual()
        return counts

    def stop(self, *, timeout: float | None = None) -> None:
        """Let workers finish what they have in hand, then end the run. Without a run it does nothing. For any thread.

        timeout: seconds after which workers are killed and their messages go back; None: as long as it takes, 0: kill
            at once. With processes=0 nothing can be killed: Timeout, and the run ends after the message in hand.
        Raises Timeout, ValueError for an unfit timeout, and what ended a run that was started by `with`.

        Example:
            >>> queue.put("a")
            1
            >>> with shmq.WorkerPool(queue, lambda m: print(m.body), processes=0) as pool:
            ...     queue.join(timeout=60.0)
            ...     pool.stop(timeout=60.0)
            a
        """
        limit = check_timeout(timeout)
        run = self._run
        if run is None:
            return
        run.runner.stop()
        if run.owner == threading.get_ident():
            return  # by the handler itself, or a signal handler: the run ends when they return
        try:
            finished = run.done.wait(limit)
        except BaseException:  # a second Ctrl-C
            run.runner.kill()
            run.done.wait(WORKERS_END)
            raise
        if not finished:
            run.runner.kill()
            if isinstance(run.runner, InThread):
                raise Timeout(
                    "the handler is still at work",
                    figures=f"after {limit} seconds, in the thread that runs the pool",
                    remedy="wait longer, or use processes, which can be killed",
                )
            run.done.wait()
        if run.thread is not None:
            run.thread.join()
            self._leave(run)
            error, run.error = run.error, None
            if error is not None:
                raise error

    def processes(self) -> list[ProcessInfo]:
        """The workers that are there now; with processes=0 this process. Empty without a run. Raises Closed.

        Example:
            >>> shmq.WorkerPool(queue, print, processes=0).processes()
            []
        """
        run = self._run
        if run is None:
            return []
        pids = set(run.runner.pids())
        return [info for info in members(live_membership(self._job.queue.broker).live()) if info.pid in pids]

    def __enter__(self) -> Self:
        run = self._claim(until_empty=False)
        self._finalizer = Finalize(None, _end_forgotten, args=(run,), exitpriority=10)
        try:
            if isinstance(run.runner, Supervisor):
                run.runner.staff()  # here, so that a handler which cannot be sent is noticed here
            run.thread = threading.Thread(target=run.main, name="shmq-pool", daemon=True)
            run.thread.start()
        except BaseException:  # Python does not call __exit__ then
            if run.owner:
                run.runner.kill()
                run.done.wait(WORKERS_END)
            else:
                run.runner.close()
                run.done.set()
            self._finalizer.cancel()
            self._leave(run)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self._finalizer.cancel()


def _check_context(value: object) -> BaseContext:
    remedy = 'give "fork", "spawn" or "forkserver", or a context of multiprocessing.get_context()'
    if value is None:
        return multiprocessing.get_context("forkserver")
    if isinstance(value, str):
        try:
            return multiprocessing.get_context(value)
        except ValueError as error:
            raise ValueError(f"mp_context={value!r}: {error}; {remedy}") from None
    if not isinstance(value, BaseContext):
        raise TypeError(f"mp_context={value!r} is of the type {type(value).__name__}; {remedy}")
    return value


def _check_time_limit(value: float | None, processes: int) -> float | None:
    if value is None:
        return None
    limit = check_timeout(value, "time_limit")
    if limit == 0:
        raise ValueError(f"time_limit={value!r}: more than 0 seconds are expected, or None")
    if processes == 0:
        raise ValueError(f"time_limit={value!r}: without processes nothing can be killed; use processes, or None")
    return limit


def _check_count(name: str, value: int | None, least: int) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r}: an int is expected, or None")
    if value < least:
        raise ValueError(f"{name}={value!r}: {least} or more, or None")
