"""A descriptor for select, epoll and event loops: readable while a receive without waiting is worth a try."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from shmq.core import clock
from shmq.core.queue import peek_any, peek_pass_on
from shmq.core.true_thread import SimpleQueue, start_true_thread, thread_id
from shmq.errors import ShmqError
from shmq.wait_time import CREDIT_LOOK, THREAD_END

if TYPE_CHECKING:
    from collections.abc import Callable

    from shmq.core.queue import Part, Row
    from shmq.engine.membership.membership import Membership

__all__ = ["Readiness", "Taker"]

# Signals that the thread leaves to the main one; not those that its own mistakes would raise.
_SIGNALS: Final = signal.valid_signals() - {
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGSEGV,
    signal.SIGTRAP,
}


class Taker(Protocol):
    """The object for which a Readiness waits: a consumer, or another taker of messages."""

    @property
    def takers(self) -> int:
        """Returns how many threads are taking just now."""

    def parts(self) -> tuple[Part, ...]:
        """Returns the queues and rows on which the taker waits."""

    @property
    def can_take(self) -> bool:
        """Says whether the taker's credit allows one more message."""


class _Event:
    """An eventfd that is closed with the last reference, so that nobody uses a number that is another file's by now."""

    def __init__(self) -> None:
        self.number = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def set(self) -> None:
        os.eventfd_write(self.number, 1)

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.number)

    def __del__(self) -> None:
        if hasattr(self, "number"):
            os.close(self.number)


class Readiness:
    """The descriptor, and the thread that makes it readable.

    The thread is the taker's sleeper, announced on the queues. From the moment it is told of something it counts as one
    that was woken. It takes nothing. The program gets the patience to come for the message, as any slow taker does. A
    program that does not come by then is passed by, and is announced again when it has found nothing.

    Nobody holds a lock that the thread needs. So close() may wait for it wherever it is called, in a signal handler or
    a finalizer, too.

    Arguments:
        taker: answers for whom it waits, if that one is not garbage yet: it is not kept from here.
        membership: whose close ends the thread.
        name: of the thread, "shmq-fileno-" before it.
        own_rows: the thread sleeps on the rows of the parts; False: it borrows some.
        rows: of the parts; as long as the thread may sleep there nobody else gets them, also if the taker is garbage.
    """

    def __init__(
        self,
        taker: Callable[[], Taker | None],
        membership: Membership,
        name: str,
        own_rows: bool,
        rows: tuple[Row, ...],
    ) -> None:
        self._taker = taker
        self._patience = membership.live().header()["patience_ns"] / 1e9
        self._own_rows, self._rows = own_rows, rows
        self._pid = os.getpid()
        self._event = _Event()
        self._raised: deque[None] = deque()  # one element while the thread rests; its taker calls the thread
        self._resets = 0  # a counter of resets, compared only for a change
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._starved = False
        self._stopping = False
        self._ended: SimpleQueue[None] = SimpleQueue()  # one element from the end of the thread on
        self._thread = 0
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # the thread inherits it
        try:
            start_true_thread(self._run, f"shmq-fileno-{name}")
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        membership.readiness.add(self)

    def fileno(self) -> int:
        """The descriptor, open until the taker's close."""
        return self._event.number

    def is_ours(self) -> bool:
        """False in a forked child: there the thread is missing, and the descriptor is the parent's."""
        return self._pid == os.getpid()

    # ---- called by the taker -----------------------------------------------------------------------------------

    def reset(self) -> None:
        """Makes the descriptor unreadable: the taker found nothing, or may take nothing more."""
        if not self.is_ours():
            return
        self._event.clear()  # also if the thread is only about to rest
        self._resets += 1
        if self._lower():
            self._calls.put(None)

    def has_credit(self) -> None:
        """Tells the thread that a message was settled, so that the taker has credit again."""
        if self._starved:
            self._calls.put(None)

    def stop(self) -> None:
        """Asks the thread to end. It does so as soon as it is woken, for it may sleep in the native core."""
        self._stopping = True
        self._calls.put(None)

    def join(self) -> bool:
        """Waits for the end of the thread after stop(). False: the thread does not end."""
        if thread_id() == self._thread:
            return True  # in a finalizer; it uses no row any more
        try:
            self._ended.get(timeout=THREAD_END)
        except queue.Empty:
            return False
        self._ended.put(None)
        return True

    # ---- the thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._thread = thread_id()
        owed: tuple[Part, ...] | None = None
        try:
            while (parts := self._parts()) is not None:
                if not self._can_take():
                    owed = self._pass_on(owed)
                    self._starve(parts)
                    continue
                resets = self._resets
                owed = parts if self._wait(parts) else None
                if not self._stopping and not self._raise(resets):
                    continue
                if owed is not None and self._is_late():
                    owed = self._pass_on(owed)
                while self._raised and not self._stopping:
                    self._calls.get()
        finally:
            self._raised.clear()  # from now on nothing resets it: the next receive raises the reason
            self._event.set()
            self._pass_on(owed)
            self._ended.put(None)

    def _raise(self, resets: int) -> bool:
        """Makes the descriptor readable. False: the taker has looked again since, and may have found nothing more.

        A thread that resets does so in the order event, resets, element, so that one of the two sees the other. No
        reset leaves a thread that rests beside a descriptor that is not readable. The model is
        tests/protocols/readiness.pml.
        """
        if self._resets != resets:
            return False
        self._event.set()
        self._raised.append(None)
        if self._resets != resets and self._lower():
            self._event.clear()
            return False
        return True

    def _lower(self) -> bool:
        """Makes the descriptor unreadable. False: another thread has done so."""
        try:
            self._raised.pop()
        except IndexError:
            return False
        return True

    def _parts(self) -> tuple[Part, ...] | None:
        """Returns the taker's parts; None: the thread shall end. It keeps no reference to the taker while it sleeps."""
        taker = self._taker() if not self._stopping else None
        return None if taker is None else taker.parts()

    def _can_take(self) -> bool:
        taker = self._taker()
        return taker is None or taker.can_take

    def _starve(self, parts: tuple[Part, ...]) -> None:
        self._starved = True
        if not self._stopping and not self._can_take():  # else it was settled in between
            try:
                self._calls.get(timeout=CREDIT_LOOK)
            except queue.Empty:
                self._pass_on(parts)  # it looks for what is due, too
        self._starved = False

    def _wait(self, parts: tuple[Part, ...]) -> bool:
        """Sleeps until there is a message. False: there is none, but the taker shall hear why."""
        try:
            peek_any(parts, self._own_rows)
        except (ShmqError, OSError):
            return False
        return True

    def _is_late(self) -> bool:
        """Says whether no thread came for the message within the patience, or one waits in a receive by itself."""
        until = clock.monotonic() + (0 if self._is_inside() else self._patience)
        while self._raised and not self._stopping:
            left = until - clock.monotonic()
            if left <= 0:
                return True
            with contextlib.suppress(queue.Empty):
                self._calls.get(timeout=left)
        return False

    def _is_inside(self) -> bool:
        taker = self._taker()
        return taker is not None and taker.takers > 0

    @staticmethod
    def _pass_on(owed: tuple[Part, ...] | None) -> None:
        if owed is not None:
            with contextlib.suppress(ShmqError):
                peek_pass_on(owed)
