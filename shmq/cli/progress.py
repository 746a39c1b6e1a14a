"""How far a long input has got: on a terminal, after a second, on stderr."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shmq.core import clock
from shmq.pool.progress import bar
from shmq.quantity import quantity

__all__ = ["progress"]

_SHORT = 1.0  # seconds; what is over before needs no bar


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """Yields a function that is told of messages and bytes that are done."""
    if sys.stdin.isatty() or not sys.stderr.isatty():
        yield lambda messages, size: None
        return
    shown = bar(transient=True, auto_refresh=False)  # no thread: it is drawn when something was done
    found = os.fstat(0)
    task = shown.add_task(title, total=found.st_size if stat.S_ISREG(found.st_mode) else None, said="")
    began, drawn = clock.monotonic(), 0.0
    done = 0

    def advance(messages: int, size: int) -> None:
        nonlocal done, drawn
        done += messages
        shown.update(task, advance=size + messages, said=quantity(done, "message"))
        now = clock.monotonic()
        if now - began >= _SHORT and now - drawn >= 0.1:
            drawn = now
            shown.start()
            shown.refresh()

    try:
        yield advance
    finally:
        shown.stop()
