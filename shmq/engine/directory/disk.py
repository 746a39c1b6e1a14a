"""Messages of queues that flow lie on disk in `disk/<segment>` of the broker's directory. Those of an anonymous broker
lie in `<segment>` of the user's own folder in the system's temporary directory.

With `disk_path=` the broker's `disk` is a link to `shmq-<uuid of the directory>` in that path; the folder of anonymous
brokers lies there.

The core makes it when the first queue flows (native/src/flow/file_backing.c), and in it a directory for each queue.
Nothing there outlives the segment: it is memory by other means. The files of an anonymous broker go with its last
member, or, if that was killed, when the same user opens the next anonymous one.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from shmq.core.segment import SEGMENT_NAME, SHM_DIRECTORY, is_segment_name, shm_device
from shmq.errors import BrokerError

if TYPE_CHECKING:
    from uuid import UUID

__all__ = [
    "disk_bytes",
    "disk_of",
    "file_system",
    "link_disk",
    "linked_disk",
    "mend_linked_disk",
    "private_disk",
    "remove_private_disk",
    "sweep_disk",
    "sweep_private_disk",
    "unlink_disk",
]

_NAME: Final = "disk"
# Below it: segments, directories of queues and their levels, row files (native/src/flow/file_backing.c names them).
_NAMES: Final = (SEGMENT_NAME, re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?"), re.compile(r"[0-9a-f]{16}|unfinished"))


def disk_of(path: str, segment: str) -> str:
    """Returns the directory for the messages of one segment.

    Arguments:
        path: of the broker's directory.
        segment: its name.
    """
    return os.path.join(path, _NAME, segment)


def linked_disk(dir_fd: int) -> str | None:
    """Returns the folder elsewhere for messages that flow to disk. None: they lie in the broker's own directory.

    Arguments:
        dir_fd: of the broker's directory.
    """
    try:
        return os.readlink(_NAME, dir_fd=dir_fd)
    except OSError:
        return None


def link_disk(dir_fd: int, disk_path: str, directory: UUID) -> None:
    """Rows of queues that flow lie in `disk_path` from here on. The caller has swept those elsewhere.

    Arguments:
        dir_fd: of the broker's directory, whose lock is held.
        disk_path: absolute.
        directory: the uuid of the broker's directory.

    Raises BrokerError where that cannot be.
    """
    folder = os.path.join(disk_path, f"shmq-{directory.hex}")
    with suppress(OSError):
        os.rmdir(_NAME, dir_fd=dir_fd)
    try:
        _make_folder(folder, os.fstat(dir_fd))
        os.symlink(folder, _NAME, dir_fd=dir_fd)
    except OSError as error:
        raise BrokerError(
            "messages on disk cannot lie where disk_path= says",
            figures=f"{error.filename}: {error.strerror}",
            remedy="name a directory in which all users of the broker can make files",
            filename=folder,
        ) from None


def mend_linked_disk(dir_fd: int) -> None:
    """Makes the folder again if it has gone, as from a disk that a reboot empties. Not where its path is missing.

    Arguments:
        dir_fd: of the broker's directory, whose lock is held.

    Raises BrokerError where another user has put something in its place.
    """
    folder = linked_disk(dir_fd)
    if folder is None or not os.path.isdir(os.path.dirname(folder)):
        return
    broker = os.fstat(dir_fd)
    with suppress(OSError):
        _make_folder(folder, broker)
    with suppress(FileNotFoundError):
        _check_folder(folder, broker)


def _make_folder(folder: str, broker: os.stat_result) -> None:
    """Makes a folder with group and mode of the broker's directory, whatever umask and group this process has."""
    os.mkdir(folder, 0o700)
    with suppress(PermissionError):
        os.chown(folder, -1, broker.st_gid)
    os.chmod(folder, stat.S_IMODE(broker.st_mode) & 0o770)


def _check_folder(folder: str, broker: os.stat_result) -> None:
    """Checks that the folder is a directory of a user of the broker: other users may make names where it lies."""
    found = os.lstat(folder)
    shared = stat.S_IMODE(broker.st_mode) & 0o070 and found.st_gid == broker.st_gid
    if not stat.S_ISDIR(found.st_mode) or not (shared or found.st_uid in (os.geteuid(), broker.st_uid)):
        raise BrokerError(
            "the folder for messages on disk is not of this broker's users",
            figures=f"user {found.st_uid}, mode {stat.filemode(found.st_mode)}",
            remedy="remove it, or delete the broker and name another disk_path=",
            filename=folder,
        )


def private_disk(disk_path: str | None = None) -> str:
    """Returns the folder of this user's anonymous brokers: one for each /dev/shm, for containers may share its parent.

    Arguments:
        disk_path: what it lies in; None: the directory of temporary files.
    """
    if disk_path is None:
        import tempfile  # imported here: a broker with a directory never needs it

        disk_path = tempfile.gettempdir()
    return os.path.join(disk_path, f"shmq-{os.geteuid()}-{shm_device():x}")


def remove_private_disk(directory: str) -> None:
    """Removes the disk directory of an anonymous broker whose segment is gone."""
    if not os.path.exists(os.path.join(SHM_DIRECTORY, os.path.basename(directory))):
        _remove_named(directory, None, _NAMES[1:])
        with suppress(OSError):
            os.rmdir(os.path.dirname(directory))  # succeeds if no broker's directory is left in it


def _remove_named(directory: str, dir_fd: int | None, names: tuple[re.Pattern[str], ...]) -> None:
    """Removes a directory and the files in it that have names of shmq's. Other files stay, and the folders they lie in.

    Arguments:
        directory: its path, or its name in `dir_fd`. A link is not followed.
        names: a pattern for each depth: of folders in the directory, of folders in those, and at last of files.
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
    """Removes a file, or an empty directory in its place, as the core does."""
    with suppress(OSError):
        try:
            os.unlink(name, dir_fd=dir_fd)
        except IsADirectoryError:
            os.rmdir(name, dir_fd=dir_fd)


def sweep_private_disk(disk_path: str | None = None) -> None:
    """Removes what anonymous brokers have left whose last member was killed."""
    folder = private_disk(disk_path)
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
    """Returns the file system in which the directory lies or will lie, and the part of its path that exists."""
    while True:
        try:
            return directory, os.statvfs(directory)
        except FileNotFoundError:
            directory = os.path.dirname(directory)


def sweep_disk(dir_fd: int) -> None:
    """Removes the disk directories of segments that are gone. A process that makes or deletes a segment calls this.

    Arguments:
        dir_fd: of the broker's directory.
    """
    folder = linked_disk(dir_fd)
    if folder is None:
        _remove_named(_NAME, dir_fd, _NAMES)
        return
    with suppress(OSError):
        for name in filter(is_segment_name, os.listdir(folder)):
            if not os.path.exists(os.path.join(SHM_DIRECTORY, name)):  # whichever process made the link
                _remove_named(os.path.join(folder, name), None, _NAMES[1:])


def unlink_disk(dir_fd: int) -> None:
    """Removes the link of a broker that is gone, and the folder that it leads to if no other files are in it."""
    folder = linked_disk(dir_fd)
    if folder is not None:
        with suppress(OSError):
            os.rmdir(folder)
        with suppress(OSError):
            os.unlink(_NAME, dir_fd=dir_fd)
