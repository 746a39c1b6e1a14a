"""The outcome of one way of doing the job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shmq.demo.definitions import Result

__all__ = ["Outcome", "Progress"]

# Told many times a second how many files are done. An exception of it ends the run in good order. A caller that wants
# to end the run raises here: an exception at any other place might leave a process behind.
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Outcome:
    """One run over all files.

    Attributes:
        results: as they came.
        seconds: from before the first process was started to the last result.
        messages: put into queues, sources and results together.
        killed: pid of the worker that was killed on the way; None: none was.
    """

    results: list[Result]
    seconds: float
    messages: int
    killed: int | None = None
