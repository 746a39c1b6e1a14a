"""How far a step of the demo is: a bar on a terminal, a few lines elsewhere; on stderr."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shmq.cli.session import say
from shmq.pool.progress import bar
from shmq.quantity import quantity

if TYPE_CHECKING:
    from shmq.demo.outcome import Progress

__all__ = ["shown"]

_PARTS = 4  # of a step, each of which is told where there is no bar


@contextmanager
def shown(title: str, total: int, look: Callable[[], None]) -> Iterator[Progress]:
    """How far a step is, on stderr: a bar on a terminal, lines otherwise. look: called each time."""
    if sys.stderr.isatty():
        with _bar(title, total, look) as progress:
            yield progress
        return
    say(f"{title}: {quantity(total, 'file')}")
    told = 0

    def line(done: int) -> None:
        nonlocal told
        look()
        if (part := done * _PARTS // total) > told:
            told = part
            say(f"{title}: {done:,} of {total:,}")

    yield line


@contextmanager
def _bar(title: str, total: int, look: Callable[[], None]) -> Iterator[Progress]:
    with bar() as shown, _log_above_the_bar():
        task = shown.add_task(f"{title:32}", total=total, said="")

        def draw(done: int) -> None:
            look()
            shown.update(task, completed=done, said=f"{done:,} of {total:,}")

        yield draw


@contextmanager
def _log_above_the_bar() -> Iterator[None]:
    """While a bar is shown, sys.stderr is one that moves it out of the way; the log still writes to the one before."""
    handlers = [handler for handler in logging.getLogger("shmq").handlers if isinstance(handler, logging.StreamHandler)]
    before = [handler.setStream(sys.stderr) for handler in handlers]
    try:
        yield
    finally:
        for handler, stream in zip(handlers, before, strict=True):
            if stream is not None:  # None: it was this one already
                handler.setStream(stream)
