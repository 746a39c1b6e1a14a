"""What a way of doing the job came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shmq.demo.definitions import Result

__all__ = ["Outcome", "Progress"]

Progress = Callable[[int], None]  # told now and then how many files are done


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
