"""The calls of one process of a soak: a line before each call and one after it, in a file that outlives its kill.

A record is one write to a file opened for appending: a SIGKILL leaves whole records in the kernel's cache. A call that
was begun and never ended may have had its effect or not, and the audit has to allow for both.
"""

import os
import struct
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

RECORD = struct.Struct("<BBBBIQ")


class Kind(IntEnum):
    """The kind of a record."""

    PUT = 1  # begun: `amount` messages from `number` on
    PUT_DONE = 2  # `amount` of them were accepted
    TAKE = 3  # begun: at most `amount`; flag SETTLES: as get() does
    TOOK = 4  # `amount` is the producer, `number` its message; flag AGAIN: as redelivered
    TAKE_DONE = 5
    SETTLE = 6  # begun: `outcome` of the producer's message
    SETTLED = 7
    OTHER = 8  # begun: a call that moves no message that is accounted for
    OTHER_DONE = 9
    FORKED = 10  # this process was made by another one of the soak, and ends by itself


SETTLES, AGAIN = 1, 2
OUTCOMES = ("ack", "retry", "release", "reject")


class Record(NamedTuple):
    """One line of a history."""

    kind: int
    queue: int
    flags: int
    outcome: int
    amount: int
    number: int


class History:
    """The file of this process; its number names the process in messages, and is never used again.

    Arguments:
        directory: of all histories of the run.
    """

    def __init__(self, directory: Path) -> None:
        self.number = len(os.listdir(directory))
        while True:
            path = directory / f"{self.number:08}"
            try:
                self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
                return
            except FileExistsError:
                self.number += 1

    def note(
        self, kind: Kind, queue: int = 0, flags: int = 0, outcome: int = 0, amount: int = 0, number: int = 0
    ) -> None:
        os.write(self.descriptor, RECORD.pack(kind, queue, flags, outcome, amount, number))

    def close(self) -> None:
        os.close(self.descriptor)


def read(path: Path) -> Iterator[Record]:
    """All whole records of a process."""
    content = path.read_bytes()
    for at in range(0, len(content) - RECORD.size + 1, RECORD.size):
        yield Record(*RECORD.unpack_from(content, at))
