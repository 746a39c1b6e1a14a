"""How far a long input has got: on a terminal, after a second, on stderr."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shmq.core import clock
from shmq.quantity import quantity

__all__ = ["progress"]

_SHORT = 1.0  # seconds; what is over before needs no bar


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """Yields a function that is told of messages and bytes that are done."""
    if sys.stdin.isatty() or not sys.stderr.isatty():
        yield lambda messages, size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[messages]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        auto_refresh=False,  # no thread: it is drawn when something was done
    )
    found = os.fstat(0)
    task = bar.add_task(
        title, total=found.st_size if stat.S_ISREG(found.st_mode) else None, messages=quantity(0, "message")
    )
    began, drawn = clock.monotonic(), 0.0
    done = 0

    def advance(messages: int, size: int) -> None:
        nonlocal done, drawn
        done += messages
        bar.update(task, advance=size + messages, messages=quantity(done, "message"))
        now = clock.monotonic()
        if now - began >= _SHORT and now - drawn >= 0.1:
            drawn = now
            bar.start()
            bar.refresh()

    try:
        yield advance
    finally:
        bar.stop()
