"""Segments that nobody uses and nobody can find again."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from shmq.core import segment
from shmq.core.segment import SegmentIdentity
from shmq.engine.record import read_record
from shmq.errors import ShmqError

__all__ = ["directory_at_rest", "orphans", "sweep_orphans"]


@contextmanager
def directory_at_rest(path: str) -> Iterator[int | None]:
    """The directory's descriptor with the broker's lock held; None while somebody opens the broker."""
    dir_fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        lock_fd = os.open("lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=dir_fd)
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            try:
                yield dir_fd
            finally:
                fcntl.flock(lock_fd, fcntl.LOCK_UN)
        finally:
            os.close(lock_fd)
    finally:
        os.close(dir_fd)


@contextmanager
def _unused(identity: SegmentIdentity, deleted: bool) -> Iterator[bool]:
    """Whether the segment's directory does not name it; nobody can change that within the `with` block.

    One directory may have other paths, and other directories the same path, for processes that share /dev/shm from
    other containers. So a path without a directory, or with another one, proves nothing unless the caller says so.
    """
    if identity.anonymous:
        yield True
        return
    try:
        found = os.stat(identity.path)
    except OSError:
        yield deleted
        return
    if (found.st_dev, found.st_ino) != identity.directory:
        yield deleted
        return
    with ExitStack() as stack:
        dir_fd = None
        with suppress(OSError):
            dir_fd = stack.enter_context(directory_at_rest(identity.path))
        yield dir_fd is not None and _names_another(identity, dir_fd)


def _names_another(identity: SegmentIdentity, dir_fd: int) -> bool:
    try:
        record = read_record(identity.path, dir_fd)
    except (ShmqError, OSError):
        return False
    return record is None or record.name != identity.name


def _candidates() -> Iterator[SegmentIdentity]:
    ours = f"shmq-{os.geteuid()}-"
    for name in segment.list_segments():
        if not name.startswith(ours):
            continue
        try:
            identity = segment.inspect(name)
        except (ShmqError, OSError):
            continue  # gone meanwhile, or nothing that this version understands
        if not identity.has_members:
            yield identity


def orphans(*, deleted: bool = False) -> list[SegmentIdentity]:
    """This user's segments that have no member, and that are anonymous or no longer named by their directory.

    Arguments:
        deleted: True: also those whose directory is not there. Only people can say so: another container may see it.
    """
    found = []
    for identity in _candidates():
        with _unused(identity, deleted) as unused:
            if unused:
                found.append(identity)
    return found


def sweep_orphans(*, deleted: bool = False) -> list[SegmentIdentity]:
    """Removes what orphans() would list, and returns what was removed. Whoever becomes a member meanwhile keeps his."""
    removed = []
    for identity in _candidates():
        with _unused(identity, deleted) as unused:
            if unused and segment.sweep(identity.name):
                removed.append(identity)
    return removed
