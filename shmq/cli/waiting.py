"""Tells people what a command waits for while it shows nothing else: on a terminal, on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["waiting"]


@contextmanager
def waiting(text: str) -> Iterator[Callable[[str], None]]:
    """Shows the text until the `with` block ends, and yields a function that changes it."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.markup import escape

    from shmq.cli.text import escaped

    with Console(stderr=True).status(escape(escaped(text))) as status:
        yield lambda text: status.update(escape(escaped(text)))
