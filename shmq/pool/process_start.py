"""Conditions that multiprocessing needs to start processes, or sets without need."""

from __future__ import annotations

import errno
import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from typing import Final

__all__ = ["may_have_children", "served", "sockets_fit"]

_daemonic: Final = threading.Lock()


@contextmanager
def may_have_children() -> Iterator[None]:
    """Allows a daemonic process to start another in this block. multiprocessing forbids it: nothing ends the child.
    Workers end when their owner has gone."""
    process = multiprocessing.current_process()
    with _daemonic:
        if not process.daemon:
            yield
            return
        process.daemon = False
        try:
            yield
        finally:
            process.daemon = True


def served(context: BaseContext) -> BaseContext:
    """Returns the context. In a forked child whose parent has a server it is spawn's: the child cannot use the server.

    Raises OSError as sockets_fit().
    """
    if context.get_start_method(allow_none=True) == "forkserver":
        from multiprocessing.forkserver import ensure_running

        try:
            with sockets_fit():
                ensure_running()
        except ChildProcessError:
            return multiprocessing.get_context("spawn")
    return context


@contextmanager
def sockets_fit() -> Iterator[None]:
    """Around the start of a process by a server, whose socket has its name below the temporary directory.

    Raises OSError (ENAMETOOLONG) with that directory where a name of 107 bytes (unix(7)) does not hold its path.
    """
    try:
        yield
    except OSError as error:
        if str(error) != "AF_UNIX path too long":  # of Python itself, without a number
            raise
        from tempfile import gettempdir

        text = "path too long for a socket; let TMPDIR name a directory with a shorter one"
        raise OSError(errno.ENAMETOOLONG, text, gettempdir()) from None
