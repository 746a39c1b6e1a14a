"""The job of a pool for the tasks of a query, and how they find it: by the same text on every host."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import astuple, dataclass
from pathlib import Path

__all__ = ["Job"]


@dataclass(frozen=True)
class Job:
    """The job as it is sent with the tasks to their hosts.

    Attributes:
        calls: handler, initializer and its arguments, pickled as Spark pickles functions.
        run: of the driver; another driver has pools of its own.
        processes: of the pool.
        memory: of its broker, in bytes.
        idle: seconds without a task after which the pool ends.
        directory: where the pools of the host have their directories; None: below that for temporary files.
        key_file: with the key of what the broker has on disk, on each host; None: that is not encrypted.
        in_flight: batches that a task has in the pool at most.
        schema: of the results, an Arrow schema as Arrow writes it.
    """

    calls: bytes
    run: str
    processes: int
    memory: int
    idle: float
    directory: str | None
    key_file: str | None
    in_flight: int
    schema: bytes

    @property
    def key(self) -> str:
        """The key by which tasks share a pool; it leaves out what only a single task needs."""
        shared = astuple(self)[:7]
        return hashlib.sha256(repr(shared).encode()).hexdigest()[:24]

    @property
    def pools(self) -> Path:
        """The directory of all pools of this user on this host."""
        return Path(self.directory or tempfile.gettempdir()) / f"shmq-pools-{os.geteuid()}"
