"""The file `lock` in a broker's directory: a process holds it while it opens, deletes or tidies up the broker.

A user who may write to the directory may put anything in its place, such as a link to a private file of ours. So it is
never followed, and never waited for at its opening. Its rights change only on the descriptor of a file that was made
here. It holds a copy of the record; a file with anything else in it is somebody's own.

A file may be removed while it is locked, and then excludes nobody who comes later. So what it is held for counts only
if the name still leads to it (`HeldLock.is_named`).
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from shmq.core import clock
from shmq.core.process_table import state_of
from shmq.engine.directory.ownership import file_mode, mode_of
from shmq.engine.directory.record import LOCK_NAME, is_begun, read_record, remove_if_ours
from shmq.errors import BrokerError, ShmqError
from shmq.options.broker import PATIENCE
from shmq.wait_time import LOCK_HELD, LOCK_LOOK, LONG_WAIT

__all__ = ["LOCK_DRAFT", "LOCK_NAME", "HeldLock", "locked", "locked_anew", "open_lock"]

_LOG: Final = logging.getLogger("shmq.broker")
LOCK_DRAFT: Final = f"{LOCK_NAME}.new"
_FLAGS: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A broker's directory whose lock is held.

    Attributes:
        dir_fd: descriptor of the directory.
        lock_fd: of the lock file.
    """

    dir_fd: int
    lock_fd: int

    def is_named(self) -> bool:
        """Says whether the lock still excludes others: neither directory nor lock file was removed meanwhile."""
        try:
            named = os.stat(LOCK_NAME, dir_fd=self.dir_fd, follow_symlinks=False)
        except OSError:
            return False
        return os.fstat(self.dir_fd).st_nlink > 0 and os.path.samestat(named, os.fstat(self.lock_fd))


def _not_ours(path: str, fault: str, remedy: str) -> BrokerError:
    return BrokerError(
        f"the file {LOCK_NAME!r} of the broker is {fault}",
        figures="another file was put in its place",
        remedy=remedy,
        filename=os.path.join(path, LOCK_NAME),
    )


def _no_file(path: str) -> BrokerError:
    return _not_ours(path, "not a regular file", "remove it; the next open makes it anew")


def _read_only(path: str) -> BrokerError:
    return BrokerError(
        "the broker cannot be used from here",
        figures=f"{path} is on a read-only file system, and all who use a broker write to its directory",
        remedy="mount it writable; shmq check needs the right to read only",
        errno=errno.EROFS,
        filename=os.path.join(path, LOCK_NAME),
    )


def open_lock(path: str, dir_fd: int) -> int:
    """Opens the present lock file. Raises FileNotFoundError, BrokerError if shmq has not made the file.

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
        error.filename = os.path.join(path, LOCK_NAME)  # the name alone does not tell the user where the file is
        if error.errno == errno.EROFS:
            raise _read_only(path) from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _no_file(path)
        if not is_begun(os.pread(descriptor, 1 << 16, 0)):
            raise _not_ours(path, "not shmq's", "move it elsewhere, or name another directory")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _make(dir_fd: int, name: str, mode: int) -> int:
    """Makes a lock file. A group's broker gets a file of the group; in a private one only this user can open it."""
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
            if error.errno == errno.EROFS:
                raise _read_only(path) from None
            raise


def _holders(lock_fd: int) -> list[int]:
    """Returns the processes that hold the lock, as far as this pid namespace shows them."""
    inode, found = str(os.fstat(lock_fd).st_ino), []
    with suppress(OSError), open("/proc/locks", encoding="ascii", errors="replace") as lines:
        for line in lines:
            # "1: FLOCK ADVISORY WRITE 4711 fd:01:132077 0 EOF". A file system on another one (overlay) has no device
            # that both sides name alike: the inode has to do.
            fields = line.split()
            if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode and int(fields[4]) > 0:
                found.append(int(fields[4]))
    return found


def _patience(path: str, dir_fd: int) -> float:
    try:
        record = read_record(path, dir_fd)
    except (ShmqError, OSError):
        record = None
    return PATIENCE if record is None else record.patience


def _wait(path: str, dir_fd: int, lock_fd: int) -> None:
    """Waits for the lock; logs a long wait once. Raises BrokerError naming the process that holds the lock. It was
    stopped for longer than the broker's patience, or at work for longer than any work here takes."""
    patience, began, pause, told = _patience(path, dir_fd), clock.monotonic(), 0.001, False
    stopped_since: dict[int, float] = {}
    while not _is_taken(lock_fd):
        now = clock.monotonic()
        pids = _holders(lock_fd) if now - began > LOCK_LOOK else []
        stopped = {pid for pid in pids if state_of(pid) == "stopped"}
        stopped_since = {pid: stopped_since.get(pid, now) for pid in stopped}
        for pid, since in stopped_since.items():
            if now - since >= patience:
                raise _held(path, f"by a stopped process, pid {pid}", f"let it go on (kill -CONT {pid}), or end it")
        if now - began >= (LOCK_HELD if told else LONG_WAIT):
            by = f"by {', '.join(f'pid {pid}' for pid in pids) or 'a process that cannot be seen from here'}"
            if told:
                raise _held(
                    path, f"for {LOCK_HELD:.0f} seconds {by}", "find out why that process does not go on, or end it"
                )
            _LOG.warning(
                "broker %s: waiting for its lock, held for %.0f seconds %s, which opens or deletes the broker; "
                "after %.0f seconds that is an error",
                path,
                now - began,
                by,
                LOCK_HELD,
            )
            told = True
        time.sleep(pause)
        pause = min(2 * pause, LOCK_LOOK)


def _is_taken(lock_fd: int) -> bool:
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _held(path: str, by: str, remedy: str) -> BrokerError:
    return BrokerError(
        "another process is opening or deleting the broker, and does not finish",
        figures=f"its lock is held {by}",
        remedy=remedy,
        errno=errno.ETIMEDOUT,
        filename=os.path.join(path, LOCK_NAME),
    )


@contextmanager
def locked(path: str, dir_fd: int) -> Iterator[HeldLock | None]:
    """Holds the lock. None: directory or lock were deleted while we waited for it, so it excludes nobody.

    Arguments:
        path: of the directory, for error texts.
        dir_fd: its descriptor.

    Raises BrokerError if another process holds it and does not finish.
    """
    lock_fd = _open_or_make(path, dir_fd)
    if lock_fd is None:
        yield None
        return
    try:
        _wait(path, dir_fd, lock_fd)
        held = HeldLock(dir_fd, lock_fd)
        yield held if held.is_named() else None
    finally:
        # Not left to close(): a fork in another thread may have copied the descriptor.
        fcntl.flock(lock_fd, fcntl.LOCK_UN)
        os.close(lock_fd)


@contextmanager
def locked_anew(path: str, dir_fd: int, mode: int) -> Iterator[HeldLock]:
    """Puts a lock file with the rights of this mode, held, in the place of the one that the caller holds.

    Those who wait for the old one find out that it was deleted.
    """
    if not remove_if_ours(path, dir_fd, LOCK_DRAFT):
        raise _not_ours(path, f"made under the name {LOCK_DRAFT!r} first, which is taken", f"move {LOCK_DRAFT} away")
    lock_fd = _make(dir_fd, LOCK_DRAFT, mode)
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX)
        os.rename(LOCK_DRAFT, LOCK_NAME, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        yield HeldLock(dir_fd, lock_fd)
    finally:
        fcntl.flock(lock_fd, fcntl.LOCK_UN)
        os.close(lock_fd)
