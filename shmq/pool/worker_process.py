"""A worker as its pool sees it: a process, its reports, its end."""

from __future__ import annotations

import os
import pickle
import signal
from contextlib import suppress
from multiprocessing.context import BaseContext
from typing import TYPE_CHECKING, Any

from shmq.core import clock
from shmq.pool.hand import Hand
from shmq.pool.importable import NotImportable
from shmq.pool.interruption import no_ctrl_c
from shmq.pool.owner import Owner
from shmq.pool.process_start import may_have_children, served, sockets_fit
from shmq.pool.quiet_start import QuietStart
from shmq.pool.report import Ended, Report, Sign
from shmq.pool.shared_words import SharedWords
from shmq.pool.tally import Tally
from shmq.pool.worker import work
from shmq.wait_time import EARLY_DEATH

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from shmq.pool.job import Parcel

__all__ = ["WorkerProcess"]

_UNKNOWN = 255  # exit code of a process for which other code waited, as with SIGCHLD ignored
_REMIND, _REMIND_MOST = 0.01, 5.0  # seconds until the first reminder, and between later ones at most


class WorkerProcess:
    """Starts a worker. Raises TypeError if the job cannot be sent to it.

    Attributes:
        pid: of the process.
        started_at, ready_at: seconds of the monotonic clock; ready_at: None: it is not.
        has_worked: it had a message.
        ended: the report of its end; None: it has not come.
        ended_at: when that came.
        heard: it knows that it is to stop.
        ask_again_at: when it is to be asked once more.
        tally, hand: what it counts, and what it has in hand.
        killed_for: why the pool has killed it; None: it did not.
        was_robbed: a lease has given to others what it had in hand.
        told: since when it had the message, or which other state, of which the log has a line.
    """

    def __init__(self, parcel: Parcel, context: BaseContext, name: str) -> None:
        context = served(context)
        self.reports, pipe = context.Pipe(duplex=False)
        self.started_at = clock.monotonic()
        self.ready_at: float | None = None
        self.has_worked = False
        self.ended: Ended | None = None
        self.ended_at = 0.0
        self.killed_for: str | None = None
        self.was_robbed = False
        self.told: int | str | None = None
        self._asked = 0
        self.ask_again_at = 0.0
        self.heard = False
        counts = SharedWords()
        owner = Owner()
        self.tally, self.hand = Tally(counts.tally), Hand(counts.hand)
        arguments = (parcel, pipe, counts, owner)
        make: Any = context.Process  # type: ignore[attr-defined]
        self._process: Any = make(target=QuietStart(work), args=arguments, name=name, daemon=False)
        try:
            with may_have_children():
                self._start(context)
        except NotImportable as error:
            self.reports.close()
            raise TypeError(str(error)) from None
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            self.reports.close()
            raise TypeError(
                f"the pool's job cannot be sent to a worker process: {error}; define handler and initializer at the "
                'top of a module, or use processes=0, or mp_context=multiprocessing.get_context("fork")'
            ) from error
        finally:
            pipe.close()
            counts.sent()
            owner.sent()
        self.pid: int = self._process.pid
        self._pidfd = self._open_pidfd()
        self._open_reports: Connection | None = self.reports

    def _start(self, context: BaseContext) -> None:
        if context.get_start_method(allow_none=True) == "forkserver":
            with sockets_fit():
                self._process.start()  # its children inherit from the server, which serves others, too
            return
        with no_ctrl_c():
            self._process.start()

    def _open_pidfd(self) -> int | None:
        """Opens a pidfd: it tells of the worker's end even while children of the worker hold its pipes open."""
        try:
            return os.pidfd_open(self.pid)
        except OSError:
            return None  # it has ended, or the sandbox does not allow it

    # ---- what to wait for --------------------------------------------------------------------------------------

    @property
    def end_sign(self) -> int:
        """A descriptor that is readable when the process has ended."""
        if self._pidfd is not None:
            return self._pidfd
        sentinel: int = self._process.sentinel
        return sentinel

    @property
    def report_sign(self) -> Connection | None:
        """Readable when there are reports; None: there will be no more."""
        return self._open_reports

    def read(self) -> list[Report]:
        """Reads the reports that are there, and notes what they say."""
        found: list[Report] = []
        pipe = self._open_reports
        try:
            while pipe is not None and pipe.poll():
                report = pipe.recv()
                self._note(report)
                found.append(report)
        except (EOFError, OSError):
            self.close_reports()
        return found

    def _note(self, report: Report) -> None:
        if report is Sign.READY:
            self.ready_at = clock.monotonic()
        elif report is Sign.WORKING:
            self.has_worked = True
        elif report is Sign.STOPPING:
            self.heard = True
        elif isinstance(report, Ended):
            self.ended, self.ended_at = report, clock.monotonic()
            self.heard = True

    def close_reports(self) -> None:
        if self._open_reports is not None:
            self._open_reports.close()
            self._open_reports = None

    # ---- how it ends -------------------------------------------------------------------------------------------

    def ask_to_stop(self) -> None:
        """Ask it to finish what it has in hand. To be repeated at ask_again_at, until it was heard: a signal that comes
        just before a wait does not end that wait. Ever more rarely, for code that does not like signals; a handler that
        is at work gets none."""
        self.ask_again_at = clock.monotonic() + min(_REMIND * 2 ** min(self._asked, 16), _REMIND_MOST)
        self._asked += 1
        if self.hand.stop() or self.ready_at is None:
            self._signal(signal.SIGTERM)

    def kill(self, why: str | None = None) -> None:
        """Kills the worker at once. The message in its hand goes back, counted as a death."""
        self.killed_for = why
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(OSError):
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, number)
            elif self._process.is_alive():
                os.kill(self.pid, number)

    def has_ended(self) -> bool:
        """Says whether the process has ended, without waiting."""
        if self._pidfd is None:
            return not self._process.is_alive()
        from multiprocessing.connection import wait

        return bool(wait([self._pidfd], 0))

    def collect(self) -> int:
        """Returns the exit code of the ended worker, negative for a signal. Frees what the pool holds for it."""
        self._process.join()
        exitcode: int | None = self._process.exitcode
        code = _UNKNOWN if exitcode is None else exitcode
        with suppress(ValueError):  # without an exit code it is taken as running
            self._process.close()
        self.close_reports()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        return code

    @property
    def died_as_it_started(self) -> bool:
        """Says whether the worker ended before it was ready, or right after, without having had a message."""
        if self.ended is not None and self.ended.why not in ("start", "error"):
            return False
        if self.ready_at is None:
            return True
        return not self.has_worked and clock.monotonic() - self.ready_at < EARLY_DEATH
