"""Ctrl-C where it can do no harm."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

from shmq.command_start import INTERRUPTED, leave

__all__ = ["Interruption", "loading"]


@contextmanager
def loading() -> Iterator[None]:
    """In a `with` block, in which modules are loaded and nothing else happens, Ctrl-C ends the process at once.

    KeyboardInterrupt is no way out there. It may come within a callback of the import system or of an object that goes,
    where Python prints it and goes on. Or a module takes it for its own failure.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) not in (signal.default_int_handler, leave):
        yield  # ignored, or somebody's own
        return
    signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Interruption:
    """In a `with` block Ctrl-C is noted, and raised only where the program waits or writes: within allowed().

    So it does not come between the print and the ack of a message. Nor does it come while an object is being destroyed,
    where Python would drop it and go on. A child that was forked meanwhile ends at once.
    """

    def __init__(self) -> None:
        self._came = False
        self._allowed = False
        self._pid = os.getpid()

    def check(self) -> None:
        """Raises what came and was dropped."""
        if self._came:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._pid:
            os._exit(INTERRUPTED)
        self._came = True
        if self._allowed:
            raise KeyboardInterrupt

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """A place where the program may be interrupted; also by what came before."""
        try:
            self._allowed = True
            if self._came:
                raise KeyboardInterrupt
            yield
        finally:
            self._allowed = False

    def __enter__(self) -> Self:
        # Ignored (nohup, the background of a script) stays ignored.
        self._before = signal.getsignal(signal.SIGINT)
        if self._before is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._before)
        if self._came and kind is None:
            raise KeyboardInterrupt
