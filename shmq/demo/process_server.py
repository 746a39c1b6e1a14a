"""The server from which the demo's processes are forked."""

from __future__ import annotations

import signal
from multiprocessing import forkserver, resource_tracker

from shmq.pool.process_start import sockets_fit

__all__ = ["start_process_server"]


def start_process_server() -> None:
    """Start it so that Ctrl-C, which a terminal sends to the whole group, reaches neither it nor what it forks.

    It ignores the signal itself, but only when it is up. All processes of this program are ours, so none of them misses
    the signal.
    """
    resource_tracker.ensure_running()  # on its own: starting it unblocks what was blocked
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with sockets_fit():
            forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
