"""The file `lock` in a broker's directory: who opens, deletes or tidies up the broker holds it.

Whoever may write to the directory may put anything in its place, a link to a private file of ours among it. So it is
never followed, never waited for at its opening, and given other rights only on the descriptor of a file that was made
here.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from shmq.engine.directory.ownership import file_mode, mode_of
from shmq.errors import BrokerError

__all__ = ["LOCK_DRAFT", "LOCK_NAME", "locked", "locked_anew", "open_lock"]

LOCK_NAME: Final = "lock"
LOCK_DRAFT: Final = f"{LOCK_NAME}.new"
_FLAGS: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def _no_file(path: str) -> BrokerError:
    return BrokerError(
        "the file 'lock' of the broker is not a regular file",
        figures="something else was put in its place",
        remedy="remove it; the next open makes it anew",
        filename=os.path.join(path, LOCK_NAME),
    )


def open_lock(path: str, dir_fd: int) -> int:
    """The lock file that is there. Raises FileNotFoundError, BrokerError if it is not a regular file.

    Arguments:
        path: of the directory, for error texts.
        dir_fd: its descriptor.
    """
    try:
        descriptor = os.open(LOCK_NAME, _FLAGS, dir_fd=dir_fd)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise _no_file(path) from None
        error.filename = os.path.join(path, LOCK_NAME)  # the name alone says nothing to who reads it
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _no_file(path)
    return descriptor


def _make(dir_fd: int, name: str, mode: int) -> int:
    """A new file: of a group's broker it is the group's; in a private one it is only ours already."""
    descriptor = os.open(name, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=dir_fd)
    with suppress(PermissionError):
        os.fchown(descriptor, -1, os.fstat(dir_fd).st_gid)
    os.fchmod(descriptor, file_mode(mode))
    return descriptor


def _open_or_make(path: str, dir_fd: int) -> int | None:
    while True:
        with suppress(FileNotFoundError):
            return open_lock(path, dir_fd)
        try:
            return _make(dir_fd, LOCK_NAME, mode_of(os.fstat(dir_fd)))
        except FileExistsError:
            continue  # another process was faster
        except FileNotFoundError:
            return None  # the directory itself has been deleted
        except OSError as error:
            error.filename = os.path.join(path, LOCK_NAME)
            raise


@contextmanager
def locked(path: str, dir_fd: int) -> Iterator[bool]:
    """Holds the lock. False: directory or lock were deleted while we waited for it, so it excludes nobody.

    Arguments:
        path: of the directory, for error texts.
        dir_fd: its descriptor.
    """
    lock_fd = _open_or_make(path, dir_fd)
    if lock_fd is None:
        yield False
        return
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX)
        yield os.fstat(dir_fd).st_nlink > 0 and os.fstat(lock_fd).st_nlink > 0
    finally:
        # Not left to close(): a fork in another thread may have copied the descriptor.
        fcntl.flock(lock_fd, fcntl.LOCK_UN)
        os.close(lock_fd)


@contextmanager
def locked_anew(dir_fd: int, mode: int) -> Iterator[None]:
    """Puts a lock file with the rights of this mode, held, in the place of the one that the caller holds.

    Those who wait for the old one find out that it was deleted.
    """
    with suppress(FileNotFoundError):
        os.unlink(LOCK_DRAFT, dir_fd=dir_fd)
    lock_fd = _make(dir_fd, LOCK_DRAFT, mode)
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX)
        os.rename(LOCK_DRAFT, LOCK_NAME, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        yield
    finally:
        fcntl.flock(lock_fd, fcntl.LOCK_UN)
        os.close(lock_fd)
