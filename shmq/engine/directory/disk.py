"""Where messages of queues that flow lie on disk: `disk/<segment>` in the broker's directory; of an anonymous broker
`<segment>` in a folder of the user's own in the system's temporary directory.

The core makes it when the first queue flows (native/src/flow/file_backing.c), and in it a directory for each queue.
Nothing there outlives the segment: it is memory by other means. What an anonymous broker has goes with its last member,
or, if that was killed, when the same user opens the next anonymous one.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from typing import Final

from shmq.core.segment import SEGMENT_NAME, SHM_DIRECTORY, is_segment_name, shm_device

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
# Below it: segments, directories of queues and their levels, row files (native/src/flow/file_backing.c names them).
_NAMES: Final = (SEGMENT_NAME, re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?"), re.compile(r"[0-9a-f]{16}|unfinished"))


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
        _remove_named(directory, None, _NAMES[1:])
        with suppress(OSError):
            os.rmdir(os.path.dirname(directory))  # if it was the last one


def _remove_named(directory: str, dir_fd: int | None, names: tuple[re.Pattern[str], ...]) -> None:
    """Removes a directory as far as it holds what shmq names: other files, and what they lie in, stay.

    Arguments:
        directory: its path, or its name in `dir_fd`. A link is not followed.
        names: of what lies in it, of what lies in that, and so on; the last ones are files.
    """
    try:
        found = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    except OSError:
        return
    try:
        for name in filter(names[0].fullmatch, os.listdir(found)):
            if len(names) > 1:
                _remove_named(name, found, names[1:])
            else:
                _remove_file(name, found)
    finally:
        os.close(found)
    with suppress(OSError):
        os.rmdir(directory, dir_fd=dir_fd)


def _remove_file(name: str, dir_fd: int) -> None:
    """Or an empty directory in its place, as the core does."""
    with suppress(OSError):
        try:
            os.unlink(name, dir_fd=dir_fd)
        except IsADirectoryError:
            os.rmdir(name, dir_fd=dir_fd)


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


def sweep_disk(dir_fd: int) -> None:
    """Removes what is left of segments that are gone; by whoever makes a new one, or deletes the broker.

    Arguments:
        dir_fd: of the broker's directory.
    """
    _remove_named(_NAME, dir_fd, _NAMES)
