"""Lets a worker notice that the process that owns its pool has gone."""

from __future__ import annotations

import multiprocessing
import os
import select
from multiprocessing.connection import Connection
from multiprocessing.reduction import DupFd
from typing import Any

__all__ = ["Owner"]


class Owner:
    """Goes to a worker that is being started, by each start method.

    By its pidfd, since another process may have its pid by then, and a forked child of it an end of its pipe. Where a
    sandbox has no pidfd, by the pipe that multiprocessing keeps. And by the pipe of reports: an owner that runs another
    program (exec) is the same process, and hears none.
    """

    def __init__(self) -> None:
        try:
            self._descriptor = os.pidfd_open(os.getpid())
        except OSError:
            self._descriptor = -1
        self._poll: select.poll | None = None

    def __getstate__(self) -> Any:
        return None if self._descriptor < 0 else DupFd(self._descriptor)

    def __setstate__(self, descriptor: Any) -> None:
        self._descriptor = -1 if descriptor is None else descriptor.detach()
        self._poll = None

    def sent(self) -> None:
        """Closes the owner's descriptor, once the worker has its own."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def watch(self, reports: Connection) -> None:
        """Prepares the look in the worker, before the first has_gone()."""
        self._poll = select.poll()
        parent = multiprocessing.parent_process()
        if self._descriptor >= 0:
            self._poll.register(self._descriptor, select.POLLIN)
        elif parent is not None:
            self._poll.register(parent.sentinel, select.POLLIN)
        self._poll.register(reports.fileno(), 0)  # poll() reports an error, too: the reader has gone

    def has_gone(self) -> bool:
        """Says whether the owner has gone: one call of the system, some 500 ns."""
        return self._poll is not None and bool(self._poll.poll(0))
