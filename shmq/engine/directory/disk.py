"""Where messages of queues that flow lie on disk: `disk/<segment>` in the broker's directory.

The core makes it when the first queue flows (native/src/flow/file_backing.c), and in it a directory for each queue.
Nothing there outlives the segment: it is memory by other means.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import Final

__all__ = ["disk_bytes", "disk_of", "sweep_disk"]

_NAME: Final = "disk"


def disk_of(path: str, segment: str) -> str:
    """The directory for the messages of one segment.

    Arguments:
        path: of the broker's directory.
        segment: its name.
    """
    return os.path.join(path, _NAME, segment)


def disk_bytes(path: str, segment: str) -> int:
    """Bytes of all files there. Others may write and delete some meanwhile."""
    total = 0
    for directory, _, files in os.walk(disk_of(path, segment)):
        for name in files:
            with suppress(OSError):
                total += os.stat(os.path.join(directory, name)).st_size
    return total


def sweep_disk(path: str) -> None:
    """Removes what is left of segments that are gone; by whoever makes a new one, or deletes the broker."""
    shutil.rmtree(os.path.join(path, _NAME), ignore_errors=True)
