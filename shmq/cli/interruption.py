"""Ctrl-C where it can do no harm."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

__all__ = ["Interruption"]


class Interruption:
    """In a `with` block Ctrl-C is noted, and raised only where the program waits or writes: within allowed().

    So it comes neither between the print and the ack of a message, nor while an object is being destroyed, where Python
    would drop it and go on.
    """

    def __init__(self) -> None:
        self._came = False
        self._allowed = False

    def _note(self, number: int, frame: FrameType | None) -> None:
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
