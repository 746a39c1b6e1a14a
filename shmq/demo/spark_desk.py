"""Files that Spark's workers have in hand: each says so before it parses a file, and when it has done so.

Spark itself does not tell which process is amid which file. The notes lie in a queue of the demo's broker.
"""

from __future__ import annotations

import os
from typing import Any

import shmq

__all__ = ["Desk", "begin", "done", "notes_of"]

_QUEUE = "desk"
_AT_ONCE = 256


def notes_of(broker: shmq.Broker) -> shmq.Queue[Any]:
    """The queue of the notes."""
    return broker.queue(_QUEUE)


def begin(notes: shmq.Queue[Any], file: str) -> None:
    """This process has this file in hand."""
    notes.put([os.getpid(), file, True])


def done(notes: shmq.Queue[Any], file: str) -> None:
    """It has no longer."""
    notes.put([os.getpid(), file, False])


class Desk:
    """The reader of the notes.

    Attributes:
        in_hand: the file of each process that has one, by its pid.
        parsed: how many files were begun, repeats included.
    """

    def __init__(self, notes: shmq.Queue[Any]) -> None:
        self._notes = notes
        self.in_hand: dict[int, str] = {}
        self.parsed = 0

    def look(self) -> None:
        """Reads what has been noted since the last time."""
        while True:
            found = self._notes.get_many(_AT_ONCE, timeout=0)
            for pid, file, begins in found:
                if begins:
                    self.in_hand[pid] = file
                    self.parsed += 1
                else:
                    self.in_hand.pop(pid, None)
            if not found:
                return

    def forget(self) -> None:
        """All who had something in hand are dead."""
        self.look()
        self.in_hand.clear()
