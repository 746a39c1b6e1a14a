"""Processor time of this process and of all that it has started: what a busy machine hardly changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import psutil

__all__ = ["processor_seconds", "processor_times"]

_NONE: Final[Mapping[psutil.Process, float]] = {}


def processor_times() -> Mapping[psutil.Process, float]:
    """Seconds of each process so far."""
    taken = {}
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        taken[process] = times.user + times.system
    return taken


def processor_seconds(since: Mapping[psutil.Process, float] = _NONE) -> float:
    """Of the processes that live, since those times were taken. The time of one that has ended meanwhile is not known:
    nobody waits for the workers that PySpark's daemons start."""
    return sum(max(taken - since.get(process, 0.0), 0.0) for process, taken in processor_times().items())
