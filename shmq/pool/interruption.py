"""Ctrl-C and SIGTERM while a pool runs in the main thread: counted, told to the pool, and put back as they were."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

__all__ = ["Interruption", "no_ctrl_c"]

_WHAT_HAPPENS = {
    1: "finishing the messages in hand; Ctrl-C or SIGTERM once more ends at once and gives them back",
    2: "ends at once; the messages in hand go back",
}


def _say_what_happens(count: int) -> None:
    """Writes to stderr past Python's buffers, for the signal handler may have interrupted a write into these."""
    if count in _WHAT_HAPPENS and sys.stderr is not None:
        newline = "\n" if sys.stderr.isatty() else ""  # behind ^C, or a bar
        with suppress(OSError, ValueError):
            os.write(2, f"{newline}{_WHAT_HAPPENS[count]}\n".encode())


@contextmanager
def no_ctrl_c() -> Iterator[None]:
    """Blocks SIGINT here and in processes started here: no child gets one before its own code has set a handler."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Interruption:
    """In a `with` block of the main thread, tells each Ctrl-C and SIGTERM, and says on stderr what happens then. In
    other threads it does nothing.

    Arguments:
        tell: called by the signal handler with how many came so far; what it raises is raised where the program is.

    An ignored signal stays ignored (nohup, jobs in the background of a script).
    """

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._before: dict[int, Any] = {}
        self.count = 0
        self.first: int | None = None

    def _handle(self, number: int, frame: object) -> None:
        self.count += 1
        if self.first is None:
            self.first = number
        _say_what_happens(self.count)
        self._tell(self.count)

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.getsignal(number)
                if before not in (
                    signal.SIG_IGN,
                    None,
                ):  # None: set by other than Python, nothing that we could restore
                    self._before[number] = before
                    signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()

    def raise_as_usual(self) -> None:
        """Raises as the first signal would in a program that does not handle it: KeyboardInterrupt, or an exit with
        code 143."""
        if self.first == signal.SIGTERM:
            raise SystemExit(128 + signal.SIGTERM)
        raise KeyboardInterrupt
