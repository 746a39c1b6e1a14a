"""Deleting a broker: its segment, then its files, then its directory.

Without its name in /dev/shm a segment is gone for all its members, whoever removed it: that is the step that counts. A
death before it has changed nothing. One after it leaves a record of a lost segment. The next open makes an empty broker
from it, and the next deletion removes it.

Only what shmq has made is removed: files that hold what it writes, and on disk names that it gives. A directory without
a record is no broker's, whatever its files are called.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from shmq.core import segment
from shmq.core.process_table import processes
from shmq.core.status import ForeignSegment, SegmentInUse
from shmq.engine.directory.broker_directory import BrokerDirectory
from shmq.engine.directory.disk import sweep_disk, unlink_disk
from shmq.engine.directory.lock import LOCK_DRAFT, HeldLock
from shmq.engine.directory.orphans import sweep_orphans
from shmq.engine.directory.ownership import is_directory, open_directory
from shmq.engine.directory.record import (
    LOCK_NAME,
    RECORD_DRAFT,
    RECORD_NAME,
    SegmentRecord,
    is_record,
    read_copy,
    read_record,
    remove_if_ours,
)
from shmq.engine.directory.unrecorded import unrecorded
from shmq.errors import BrokerError, BrokerNotFound, CorruptionError, VersionMismatch

if TYPE_CHECKING:
    from shmq.core.segment import Member
    from shmq.statistics import ProcessInfo

__all__ = ["Removal", "delete_joined", "destroy", "discard_unusable"]

_FILES: Final = (RECORD_DRAFT, LOCK_DRAFT, LOCK_NAME)  # the lock last: a process that waits for it begins anew
_ATTEMPTS: Final = 100


@dataclass(frozen=True, slots=True)
class Removal:
    """The answer of destroy().

    Attributes:
        path: of the directory.
        segment: the name of the segment that was removed; None: there was none any more.
        left: the name of a segment that the record named, and that is not this broker's: it was not touched.
        directory: whether the directory is gone, too; it stays if anything else lies in it.
    """

    path: str
    segment: str | None
    left: str | None
    directory: bool


def delete_joined(member: Member, path: str | None, name: str, *, force: bool) -> None:
    """Deletes the broker of which this process is a member. Raises what Broker.delete() says.

    Arguments:
        path: of its directory; None: anonymous.
        name: for error texts.
        force: although other processes use it.
    """
    if path is None or member.gone():
        _delete_name(member, name, force)
        return
    directory = BrokerDirectory(path)
    with directory.locked() as held:
        if held is None or not _is_here(member, directory.path, held.dir_fd):
            raise BrokerNotFound(
                "the broker does not lie in its directory any more",
                figures="the directory was moved, or made anew",
                remedy="open it where it lies now, and delete it there",
                filename=directory.path,
            )
        _delete_name(member, name, force)
        _remove_files(directory.path, held)


def _is_here(member: Member, path: str, dir_fd: int) -> bool:
    record = read_record(path, dir_fd)
    if record is not None and record.name != member.name:
        return False
    with suppress(BrokerError, PermissionError):
        return segment.inspect(member.name).lies_in(os.fstat(dir_fd))
    return record is not None  # the segment's name is gone already: an earlier deletion was cut off


def _delete_name(member: Member, name: str, force: bool) -> None:
    try:
        member.delete(force)
    except SegmentInUse:
        raise _in_use(
            name, [f"{one.name!r} (pid {one.pid})" for one in processes(member) if _is_another(one)]
        ) from None


def _is_another(process: ProcessInfo) -> bool:
    return process.state != "dead" and process.pid != os.getpid()


def _in_use(name: str, users: list[str]) -> BrokerError:
    """Makes the error of a deletion while other processes use the broker."""
    return BrokerError(
        f"the broker {name} is in use, and was not deleted",
        figures="by " + (", ".join(users) or "processes that cannot be seen from here"),
        remedy="end these processes first, or delete it by force=True (shmq destroy --force): their calls fail then",
    )


def _remove_files(path: str, held: HeldLock) -> bool:
    """Removes the files of a directory that is proven to be a broker's. Returns whether the directory is gone, too."""
    if held.is_named():  # else another process may have made a broker here meanwhile
        os.ftruncate(held.lock_fd, 0)  # so that no process makes the broker anew from the copy
        sweep_disk(held.dir_fd)
        unlink_disk(held.dir_fd)
        remove_if_ours(path, held.dir_fd, RECORD_NAME, anyhow=True)
        for name in _FILES:
            remove_if_ours(path, held.dir_fd, name)
    with suppress(OSError):
        if os.path.samestat(os.stat(path), os.fstat(held.dir_fd)):
            os.rmdir(path)
    return os.fstat(held.dir_fd).st_nlink == 0


def destroy(path: str, *, force: bool = False) -> Removal:
    """Deletes the broker in this directory, whatever state it is in.

    Arguments:
        path: absolute.
        force: although other processes use it, or its record is damaged.

    Raises BrokerNotFound, BrokerError if it is in use, PermissionError for another user's, CorruptionError if the file
    in place of its record is none.
    """
    directory = BrokerDirectory(path)
    for _ in range(_ATTEMPTS if is_directory(path) else 0):
        swept = sweep_orphans(path)  # what a death has left while it made or replaced the segment
        if not swept and not _is_brokers(path, force):
            break  # before the lock, whose file would stay in a directory that is no broker's
        with directory.locked() as held:
            if held is None:
                continue
            if not swept and not _is_brokers(path, force):
                break
            removed, left = _remove_segment(directory, held.dir_fd, force)
            removed = removed or next((one.name for one in swept), None)
            return Removal(path, removed, left, _remove_files(path, held))
    raise BrokerNotFound(
        "there is no broker",
        figures=f"{path} has no file {RECORD_NAME!r}",
        remedy="check the path; shmq gc --discard removes the segment of a deleted directory",
        filename=path,
    )


def _is_brokers(path: str, force: bool) -> bool:
    """Says whether the files prove a broker's directory. Raises CorruptionError if only `force` could decide that."""
    dir_fd = open_directory(path)
    try:
        record = is_record(path, dir_fd, anyhow=force)
        return record or read_copy(path, dir_fd) is not None or next(unrecorded(os.fstat(dir_fd)), None) is not None
    finally:
        os.close(dir_fd)


def _remove_segment(directory: BrokerDirectory, dir_fd: int, force: bool) -> tuple[str | None, str | None]:
    """Returns two names: of the segment that was removed, and of one that stayed, since it is another broker's."""
    record = _record(directory.path, dir_fd)
    if record is None:
        return _remove_unrecorded(directory.path, dir_fd, force), None
    try:
        member = segment.attach(record.name, record.home(dir_fd))
    except ForeignSegment:
        return None, record.name
    except BrokerNotFound:
        removed = _remove_unrecorded(directory.path, dir_fd, force)
        if not force and removed is None:
            directory.refuse_another_shm(dir_fd, record)
        return removed, None
    except (VersionMismatch, CorruptionError, PermissionError):
        return _remove_unusable(record, dir_fd, force)
    try:
        _delete_name(member, directory.path, force)
    finally:
        member.close()
    return record.name, None


def _record(path: str, dir_fd: int) -> SegmentRecord | None:
    """Returns the record, or its copy if the record is damaged. None: both are lost, and the segment is unknown."""
    try:
        return read_record(path, dir_fd)
    except CorruptionError:
        return read_copy(path, dir_fd)
    except VersionMismatch:
        return None


def _remove_unrecorded(path: str, dir_fd: int, force: bool) -> str | None:
    """Removes a segment that is in use without a record. Returns its name."""
    for identity in unrecorded(os.fstat(dir_fd)):
        member = segment.attach(identity.name, (dir_fd, identity.directory_uuid.bytes))
        try:
            _delete_name(member, path, force)
        finally:
            member.close()
        return identity.name
    return None


def _remove_unusable(record: SegmentRecord, dir_fd: int, force: bool) -> tuple[str | None, str | None]:
    try:
        segment.remove(record.name, record.home(dir_fd), force=force)
    except ForeignSegment:
        return None, record.name
    except SegmentInUse:
        raise _in_use(record.name, [f"pid {pid}" for pid in _mapped_by(record.name)]) from None
    return record.name, None


def discard_unusable(path: str) -> str | None:
    """Removes the record of a broker that this version cannot open, or its segment if nobody has it mapped.

    Returns the path or the name of what was removed. Raises BrokerError if it is in use, CorruptionError if the file in
    place of the record is none that shmq has written.
    """
    directory = BrokerDirectory(path)
    try:
        with directory.locked() as held:
            if held is None:
                return None
            try:
                record = read_record(path, held.dir_fd)
            except (VersionMismatch, CorruptionError):
                if not remove_if_ours(path, held.dir_fd, RECORD_NAME):
                    raise
                return os.path.join(path, RECORD_NAME)
            if record is None or _is_usable(record.name):
                return None
            return _remove_unusable(record, held.dir_fd, force=False)[0]
    except BrokerNotFound:
        return None


def _is_usable(name: str) -> bool:
    try:
        segment.inspect(name)
    except (VersionMismatch, CorruptionError):
        return False
    except (BrokerError, PermissionError):
        return True  # the segment is lost, or another broker's: it stays
    return True


def _mapped_by(name: str) -> list[int]:
    """Lists the processes that have a segment mapped whose own table of members cannot be read."""
    import re

    found = []
    needle = re.compile(rf"{segment.SHM_DIRECTORY}/{re.escape(name)}$", re.MULTILINE)
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/maps", errors="replace") as maps:
                    if needle.search(maps.read()):
                        found.append(int(entry))
            except OSError:
                continue
    return sorted(found)
