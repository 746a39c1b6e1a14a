"""Shortens the traceback of a handler's failure: its author sees no frames of the pool."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Final

from shmq.error_text import chain

__all__ = ["begin_in_the_handler", "shortened", "theirs"]

_PACKAGE: Final = Path(__file__).parent.parent
_TEXT: Final = 32768  # characters of a traceback that are kept


def begin_in_the_handler(error: BaseException, ours: str, bare: type[BaseException]) -> None:
    """Takes the frames of the caller's module from the beginning of tracebacks that have others.

    Arguments:
        error: whose, with all that it leads to.
        ours: the file of that module.
        bare: what is left without a frame, too.
    """
    for link in chain(error):
        trace = link.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == ours:
            trace = trace.tb_next
        if trace is not None or isinstance(link, bare):
            link.__traceback__ = trace


def theirs(trace: TracebackType | None) -> TracebackType | None:
    """Returns the traceback without the frames of this package."""
    kept = []
    while trace is not None:
        if not Path(trace.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE):
            kept.append(trace)
        trace = trace.tb_next
    rest: TracebackType | None = None
    for frame in reversed(kept):
        rest = TracebackType(rest, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return rest


def shortened(text: str) -> str:
    """Returns the beginning and the end of a text that is too long for a report."""
    return text if len(text) <= _TEXT else f"{text[: _TEXT // 2]}\n...\n{text[-_TEXT // 2 :]}"
