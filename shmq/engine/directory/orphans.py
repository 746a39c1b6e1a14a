"""Orphans: segments that no process uses, and that no directory names."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from shmq.core import segment
from shmq.core.segment import SegmentIdentity
from shmq.engine.directory.lock import open_lock
from shmq.engine.directory.ownership import is_directory
from shmq.engine.directory.record import read_record
from shmq.errors import ShmqError

__all__ = ["directory_at_rest", "orphans", "sweep_discarded", "sweep_orphans", "sweep_unjoined"]


@contextmanager
def directory_at_rest(path: str) -> Iterator[int | None]:
    """Yields the directory's descriptor with the broker's lock held; None while another process opens the broker."""
    dir_fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        lock_fd = open_lock(path, dir_fd)
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
def _unused(identity: SegmentIdentity, directory: str | None, deleted: bool) -> Iterator[bool]:
    """Yields whether the segment's directory does not name it; no process can change that within the `with` block.

    One directory may have other paths, and other directories the same path, for processes that share /dev/shm from
    other containers. So a path without a directory, or with another one, proves nothing unless the caller says so.
    The directory that the caller looks at may be the segment's under a new path.
    """
    if identity.anonymous:
        yield True
        return
    path = directory if directory is not None and _lies_in(identity, directory) else identity.path
    if not _lies_in(identity, path):
        yield deleted and not _is_closed(path)
        return
    with ExitStack() as stack:
        dir_fd = None
        with suppress(OSError):
            dir_fd = stack.enter_context(directory_at_rest(path))
        yield dir_fd is not None and identity.lies_in(os.fstat(dir_fd)) and _names_another(identity, path, dir_fd)


def _lies_in(identity: SegmentIdentity, directory: str) -> bool:
    try:
        return identity.lies_in(os.stat(directory))
    except OSError:
        return False


def _is_closed(path: str) -> bool:
    """Says whether this user may not look where the directory lies: then it does not count as gone."""
    try:
        is_directory(path)
    except PermissionError:
        return True
    return False


def _names_another(identity: SegmentIdentity, path: str, dir_fd: int) -> bool:
    """Says whether the next open of the directory would not join this segment. An older record with its uuid does."""
    try:
        record = read_record(path, dir_fd)
    except (ShmqError, OSError):
        return False
    if record is None or record.directory != identity.directory_uuid:
        return True
    return record.name != identity.name and record.name in segment.list_segments()


def _candidates(directory: str | None) -> Iterator[SegmentIdentity]:
    ours = f"shmq-{os.geteuid()}-"
    for name in segment.list_segments():
        if not name.startswith(ours):
            continue
        try:
            identity = segment.inspect(name)
        except (ShmqError, OSError):
            continue  # the segment has gone meanwhile, or this version does not understand it
        # Under our name there may be another user's file, and what its header says is his word.
        if identity.has_members or identity.owner != os.geteuid():
            continue
        if directory is None or identity.path == directory or _lies_in(identity, directory):
            yield identity


def orphans(directory: str | None = None, *, deleted: bool = False) -> list[SegmentIdentity]:
    """Lists this user's segments that have no member, and are anonymous or no longer named by their directory.

    Arguments:
        directory: only those of this directory, also if it is another one by now; None: of all.
        deleted: True: also those whose directory is not there. Only people can say so: another container may see it.
    """
    found = []
    for identity in _candidates(directory):
        with _unused(identity, directory, deleted) as unused:
            if unused:
                found.append(identity)
    return found


def sweep_orphans(directory: str | None = None) -> list[SegmentIdentity]:
    """Removes the segments that orphans() would list; which these were. A process that joins one meanwhile keeps it."""
    return _sweep(_candidates(directory), directory, deleted=False)


def sweep_unjoined(directory: str) -> None:
    """Removes this user's segments of a directory in which a broker is about to be made: nobody joins them any more.

    Arguments:
        directory: that of the broker, whose lock the caller holds, and in which no segment was found to join.
    """
    for identity in _candidates(directory):
        if _lies_in(identity, directory):
            segment.sweep(identity.name)


def sweep_discarded(identities: list[SegmentIdentity], directory: str | None = None) -> list[SegmentIdentity]:
    """Removes those of the listed segments that orphans(directory, deleted=True) would still list."""
    return _sweep(identities, directory, deleted=True)


def _sweep(identities: Iterable[SegmentIdentity], directory: str | None, *, deleted: bool) -> list[SegmentIdentity]:
    removed = []
    for identity in identities:
        with _unused(identity, directory, deleted) as unused:
            if unused and segment.sweep(identity.name):
                removed.append(identity)
    return removed
