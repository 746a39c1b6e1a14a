"""The part of the job that Spark's Python workers do: one file in, what it defines and imports out."""

from __future__ import annotations

import os
from typing import Any, Final

import shmq
from shmq.demo.definitions import kinds_in, lines_of
from shmq.demo.spark_desk import begin, done, notes_of

__all__ = ["PARSED", "Parser"]

PARSED: Final = "lines int, parsed boolean, repeated boolean, found array<string>"  # as Spark names what comes out

_notes: dict[int, shmq.Queue[Any]] = {}  # of this process, by its pid: workers are forked, and live on


class Parser:
    """A function for Spark's udf().

    Arguments:
        path: of the demo's broker.
        repeated: number of the batch that an earlier driver has begun; None: there is none.
    """

    def __init__(self, path: str, repeated: int | None) -> None:
        self._path = path
        self._repeated = repeated

    def __call__(self, file: str, source: bytes) -> tuple[int, bool, bool, list[str]]:
        """The fields of PARSED."""
        notes = self._noted()
        begin(notes, file)
        kinds = kinds_in(bytes(source))
        done(notes, file)
        return lines_of(source), kinds is not None, self._is_repeated(), kinds or []

    def _noted(self) -> shmq.Queue[Any]:
        pid = os.getpid()
        if pid not in _notes:
            _notes[pid] = notes_of(shmq.open(self._path, create=False))
        return _notes[pid]

    def _is_repeated(self) -> bool:
        """May somebody who died have parsed it before?"""
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None:
            return False
        batch = context.getLocalProperty("streaming.sql.batchId")
        return context.attemptNumber() > 0 or (self._repeated is not None and batch == str(self._repeated))
