"""Drafts: files under a temporary name, left by a process that died while it wrote a segment or a record."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from shmq.core import clock
from shmq.core.segment import SHM_DIRECTORY
from shmq.engine.directory.orphans import directory_at_rest
from shmq.engine.directory.record import RECORD_DRAFT
from shmq.wait_time import DRAFT_AGE

__all__ = ["drafts", "sweep_drafts"]

_DRAFT_BYTE: Final = (1 << 40) + 1  # of the file: locked by its maker, as native/src/segment/segment_create.c does


def _names() -> list[str]:
    ours = re.compile(rf"shmq-{os.geteuid()}-[0-9a-f]{{32}}\.new-[0-9]+")
    return sorted(name for name in os.listdir(SHM_DIRECTORY) if ours.fullmatch(name))


@contextmanager
def _abandoned(path: str) -> Iterator[bool]:
    """Yields whether no process makes a segment of this file any more; true stays true within the `with` block."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        yield False
        return
    try:
        found = os.fstat(descriptor)
        ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        yield ours and clock.wall() - found.st_mtime > DRAFT_AGE and _is_unlocked(descriptor)
    finally:
        os.close(descriptor)


def _is_unlocked(descriptor: int) -> bool:
    """Takes the lock of the file. Closing the descriptor releases it."""
    lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, _DRAFT_BYTE, 1, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
    except OSError:
        return False
    return True


@contextmanager
def _record_draft(directory: str) -> Iterator[tuple[int, str] | None]:
    """Yields the draft of a broker's record, with its lock held; None: there is none, or another process writes it."""
    with ExitStack() as stack:
        dir_fd = None
        with suppress(OSError):
            dir_fd = stack.enter_context(directory_at_rest(directory))
        yield (dir_fd, os.path.join(directory, RECORD_DRAFT)) if dir_fd is not None and _has_draft(dir_fd) else None


def _has_draft(dir_fd: int) -> bool:
    try:
        return stat.S_ISREG(os.stat(RECORD_DRAFT, dir_fd=dir_fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def drafts(directory: str | None = None) -> list[str]:
    """Returns the paths of this user's drafts whose makers are dead.

    Arguments:
        directory: of a broker, to look there and nowhere else.
    """
    return _look(directory, remove=False)


def sweep_drafts(directory: str | None = None) -> list[str]:
    """Removes what drafts() would list, and returns what was removed."""
    return _look(directory, remove=True)


def _look(directory: str | None, *, remove: bool) -> list[str]:
    return _of_segments(remove) if directory is None else _of_records(directory, remove)


def _of_segments(remove: bool) -> list[str]:
    found = []
    for name in _names():
        path = os.path.join(SHM_DIRECTORY, name)
        with _abandoned(path) as abandoned:
            if abandoned:
                found.append(path)
                if remove:
                    os.unlink(path)
    return found


def _of_records(directory: str, remove: bool) -> list[str]:
    with _record_draft(directory) as draft:
        if draft is None:
            return []
        if remove:
            os.unlink(RECORD_DRAFT, dir_fd=draft[0])
        return [draft[1]]
