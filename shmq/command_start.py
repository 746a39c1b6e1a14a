"""Ctrl-C while the command starts: ends the process at once, and in silence. Imports next to nothing: it is first."""

import os
import signal

__all__ = ["INTERRUPTED", "guard_the_start", "leave"]

INTERRUPTED = 130  # the exit code after Ctrl-C


def leave(number: int, frame: object) -> None:
    """Handles a signal: ends the process without unwinding and without output."""
    os._exit(INTERRUPTED)


def guard_the_start() -> None:
    """From here to the end of the next loading() in shmq.cli.interruption; before all else is imported."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else ignored, or somebody's own
        signal.signal(signal.SIGINT, leave)
