"""Where messages of queues that flow lie on disk: `disk/<segment>` in the broker's directory; of an anonymous broker
`<segment>` in a folder of the user's own in the system's temporary directory.

The core makes it when the first queue flows (native/src/flow/file_backing.c), and in it a directory for each queue.
Nothing there outlives the segment: it is memory by other means. What an anonymous broker has goes with its last member,
or, if that was killed, when the same user opens the next anonymous one.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from typing import Final

from shmq.core.segment import SHM_DIRECTORY, is_segment_name, shm_device

__all__ = [
    "disk_bytes",
    "disk_of",
    "file_system",
    "private_disk",
    "remove_private_disk",
    "sweep_disk",
    "sweep_private_disk",
]

_NAME: Final = "disk"


def disk_of(path: str, segment: str) -> str:
    """The directory for the messages of one segment.

    Arguments:
        path: of the broker's directory.
        segment: its name.
    """
    return os.path.join(path, _NAME, segment)


def private_disk() -> str:
    """The folder of this user's anonymous brokers: one for each /dev/shm, for containers may share what it lies in."""
    import tempfile  # here: a broker with a directory never asks

    return os.path.join(tempfile.gettempdir(), f"shmq-{os.geteuid()}-{shm_device():x}")


def remove_private_disk(directory: str) -> None:
    """Of an anonymous broker whose segment is gone."""
    if not os.path.exists(os.path.join(SHM_DIRECTORY, os.path.basename(directory))):
        shutil.rmtree(directory, ignore_errors=True)
        with suppress(OSError):
            os.rmdir(os.path.dirname(directory))  # if it was the last one


def sweep_private_disk() -> None:
    """Removes what anonymous brokers have left whose last member was killed."""
    folder = private_disk()
    with suppress(OSError):
        found = os.lstat(folder)
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
            for name in filter(is_segment_name, os.listdir(folder)):
                remove_private_disk(os.path.join(folder, name))


def disk_bytes(directory: str) -> int:
    """Bytes of all files there. Others may write and delete some meanwhile.

    Arguments:
        directory: of one segment.
    """
    total = 0
    for place, _, files in os.walk(directory):
        for name in files:
            with suppress(OSError):
                total += os.stat(os.path.join(place, name)).st_size
    return total


def file_system(directory: str) -> tuple[str, os.statvfs_result]:
    """That which the directory lies in, or will: and the part of its path that exists."""
    while True:
        try:
            return directory, os.statvfs(directory)
        except FileNotFoundError:
            directory = os.path.dirname(directory)


def sweep_disk(path: str) -> None:
    """Removes what is left of segments that are gone; by whoever makes a new one, or deletes the broker."""
    shutil.rmtree(os.path.join(path, _NAME), ignore_errors=True)
