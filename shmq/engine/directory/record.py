"""The file `segment` in a broker's directory: which segment is the broker's, and how it was made.

The file `lock` holds a copy. So one of the two may be removed alone, as cleaners of /tmp do: it is written anew.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shmq.core.segment import MEMORY_MAX, is_segment_name
from shmq.engine.directory.ownership import GROUP_MODE, PRIVATE_MODE
from shmq.errors import BrokerError, CorruptionError, VersionMismatch
from shmq.quantity import quantity

if TYPE_CHECKING:
    from uuid import UUID

    from shmq.core.segment import Home

__all__ = [
    "LOCK_NAME",
    "RECORD_DRAFT",
    "RECORD_NAME",
    "SegmentRecord",
    "has_begun_record",
    "is_begun",
    "is_record",
    "read_copy",
    "read_record",
    "remove_if_ours",
    "write_copy",
    "write_record",
]

RECORD_NAME: Final = "segment"
RECORD_DRAFT: Final = f"{RECORD_NAME}.new"
LOCK_NAME: Final = "lock"
_HEAD: Final = b'{\n "format": '  # how each record begins that shmq has written
_FORMAT: Final = 2
_MAX_BYTES: Final = 4096
_CHECK_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    """Names a segment. The last ones are what it was made with, so that a lost one is made anew in the same way.

    A user who may write to the directory may have written it: a hint that the segment's header has to confirm.
    """

    name: str
    uuid: UUID
    directory: UUID  # the directory's own, and no part of any name: only those who may read this file know it
    boot_id: UUID
    memory: int  # bytes
    patience: float  # seconds
    mode: int  # of the directory
    shm_device: int  # st_dev of the /dev/shm that it lies in: containers may have one each
    disk: int | None = None  # bytes on disk; 0: none; None: as much as leaves a tenth of the file system free
    key_check: bytes = b""  # of the key of what goes to disk; none: that is not encrypted
    epoch: int = 0  # how many segments were lost before it; part of each message id

    def home(self, dir_fd: int) -> Home:
        """Returns the home that the segment's header has to name.

        Arguments:
            dir_fd: of the directory in which this record was found.
        """
        return dir_fd, self.directory.bytes


_REMOVE: Final = "remove the file: the next open writes it anew if the broker is there, and makes an empty one if not"


def _garbage(path: str, fault: str, remedy: str = _REMOVE) -> CorruptionError:
    return CorruptionError(
        f"the file {RECORD_NAME!r} of the broker is damaged, or none of shmq's",
        figures=fault,
        remedy=remedy,
        filename=os.path.join(path, RECORD_NAME),
    )


def _read_bytes(path: str, dir_fd: int, name: str = RECORD_NAME) -> bytes | None:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=dir_fd)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise _garbage(path, "it is not a regular file") from None
        error.filename = os.path.join(path, name)
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _garbage(path, "it is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_MAX_BYTES + 1)


def is_begun(raw: bytes) -> bool:
    """Says whether a file holds what shmq writes into `segment`, `lock` and their drafts, be it cut off by a death.

    Nothing else is shmq's to replace or to remove, whatever its name is.
    """
    return len(raw) <= _MAX_BYTES and (raw.startswith(_HEAD) or _HEAD.startswith(raw))


def has_begun_record(path: str, dir_fd: int) -> bool:
    """Says whether shmq has written the file in place of the record, damaged or not."""
    raw = _read_bytes(path, dir_fd)
    return raw is not None and is_begun(raw)


def remove_if_ours(path: str, dir_fd: int, name: str, *, anyhow: bool = False) -> bool:
    """Removes a file of the broker's directory if shmq has written it. False: it is another's, and stays.

    Arguments:
        path: of the directory, for error texts.
        dir_fd: its descriptor.
        name: of the file; True if there is none.
        anyhow: a file with something else in it, too. A directory stays in any case.
    """
    try:
        raw = _read_bytes(path, dir_fd, name)
        if raw is None:
            return True
        if not anyhow and not is_begun(raw):
            return False
        os.unlink(name, dir_fd=dir_fd)
    except FileNotFoundError:
        return True
    except CorruptionError:  # the name is not that of a regular file
        return False
    return True


def _parse(content: dict[str, Any]) -> SegmentRecord:
    from uuid import UUID

    record = SegmentRecord(
        name=content["name"],
        uuid=UUID(content["uuid"]),
        directory=UUID(content["directory"]),
        boot_id=UUID(content["boot_id"]),
        memory=content["memory"],
        patience=float(content["patience"]),
        mode=int(content["mode"], 8),
        shm_device=int(content["shm_device"]),
        disk=content.get("disk"),  # an older record lacks this field
        key_check=bytes.fromhex(content.get("key_check", "")),
        epoch=content["epoch"],
    )
    if not is_segment_name(record.name) or not record.name.endswith(record.uuid.hex):
        raise ValueError(f"no segment has the name {record.name!r}")
    if type(record.epoch) is not int or record.epoch < 0:
        raise ValueError(f"epoch {record.epoch!r} is out of range")
    if record.disk is not None and (type(record.disk) is not int or not 0 <= record.disk < 1 << 63):
        raise ValueError(f"disk {record.disk!r} is out of range")
    if len(record.key_check) not in (0, _CHECK_BYTES):
        raise ValueError(f"key_check has {quantity(len(record.key_check), 'byte')}")
    if type(record.memory) is not int or not 0 < record.memory <= MEMORY_MAX or not 0 <= record.patience < 1e9:
        raise ValueError(f"memory {record.memory!r} or patience {record.patience!r} is out of range")
    if record.mode not in (PRIVATE_MODE, GROUP_MODE):
        raise ValueError(f"mode {record.mode:#o} is none that a broker can have")
    return record


def read_record(path: str, dir_fd: int) -> SegmentRecord | None:
    """Reads the record in the directory, or its copy where it was removed, emptied or cut off; None: there is none.

    Arguments:
        path: of the directory, for error texts.
        dir_fd: its descriptor.

    Raises CorruptionError for garbage, VersionMismatch for a record of another format.
    """
    raw = _read_bytes(path, dir_fd)
    if raw is None:
        return read_copy(path, dir_fd)
    try:
        return _read(path, raw)
    except CorruptionError:
        copy = read_copy(path, dir_fd) if is_begun(raw) else None  # else the file is not shmq's
        if copy is None:
            raise
        return copy


def read_copy(path: str, dir_fd: int) -> SegmentRecord | None:
    """Reads the copy of the record. None: it is missing, incomplete since its writer died, or of another version."""
    try:
        raw = _read_bytes(path, dir_fd, LOCK_NAME)
        return _read(path, raw) if raw else None
    except (CorruptionError, VersionMismatch):
        return None


def is_record(path: str, dir_fd: int, *, anyhow: bool) -> bool:
    """Says whether the directory has a record, of this version or of another one; or a draft of its first one.

    Arguments:
        anyhow: a file with anything in it counts as a damaged one.

    Raises CorruptionError for a damaged one that does not count: it may be somebody's own file.
    """
    raw = _read_bytes(path, dir_fd)
    if raw is None:
        draft = _read_bytes(path, dir_fd, RECORD_DRAFT)
        return draft is not None and is_begun(draft)
    if not anyhow:
        try:
            read_record(path, dir_fd)
        except (VersionMismatch, CorruptionError) as error:
            if isinstance(error, CorruptionError) or not raw.startswith(_HEAD):
                remedy = "look whether it is shmq's; shmq destroy --force removes it"
                raise _garbage(path, error.figures, remedy) from None
    return True


def _read(path: str, raw: bytes) -> SegmentRecord:
    if len(raw) > _MAX_BYTES:
        raise _garbage(path, f"more than {_MAX_BYTES} bytes")
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _garbage(path, f"{quantity(len(raw), 'byte')}, {type(error).__name__}: {error}") from None
    if not isinstance(content, dict) or "format" not in content:
        raise _garbage(path, "no record of a segment")
    if content["format"] != _FORMAT:
        raise VersionMismatch(
            "the broker was made by another version of shmq",
            figures=f"format is {content['format']!r}, expected {_FORMAT}",
            remedy="use the version that made it",
            filename=os.path.join(path, RECORD_NAME),
        )
    try:
        return _parse(content)
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise _garbage(path, f"{type(error).__name__}: {error}") from None


def _text(record: SegmentRecord) -> bytes:
    content = {
        "format": _FORMAT,
        "name": record.name,
        "uuid": str(record.uuid),
        "directory": str(record.directory),
        "boot_id": str(record.boot_id),
        "memory": record.memory,
        "patience": record.patience,
        "mode": f"{record.mode:04o}",
        "shm_device": record.shm_device,
        "disk": record.disk,
        "key_check": record.key_check.hex(),
        "epoch": record.epoch,
    }
    return json.dumps(content, indent=1).encode() + b"\n"


def write_record(path: str, dir_fd: int, record: SegmentRecord, *, mode: int, group: int) -> None:
    """Replaces the record atomically and durably: after a power cut the old one is there, or the new one.

    Arguments:
        path: of the directory, for error texts.
        dir_fd: its descriptor; the caller holds its lock.
        mode: of the file.
        group: of the file; kept as it comes where that is not allowed.
    """
    # A draft of an attempt that ended by a death may be another user's, of the same group: replaced, not written over.
    if not remove_if_ours(path, dir_fd, RECORD_DRAFT):
        raise BrokerError(
            f"the file {RECORD_DRAFT!r} is in the way, and shmq has not written it",
            figures="the record of the broker is written under this name first",
            remedy="move it elsewhere",
            filename=os.path.join(path, RECORD_DRAFT),
        )
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(RECORD_DRAFT, flags, 0o600, dir_fd=dir_fd), "wb") as file:
        file.write(_text(record))
        file.flush()
        try:
            os.fchown(file.fileno(), -1, group)
        except PermissionError:
            pass
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
    os.rename(RECORD_DRAFT, RECORD_NAME, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    os.fsync(dir_fd)


def write_copy(path: str, dir_fd: int, lock_fd: int, record: SegmentRecord) -> bool:
    """Makes the copy in the lock file say what the record says. False: the record itself is missing, or damaged.

    Arguments:
        path: of the directory, for error texts.
        dir_fd: its descriptor.
        lock_fd: of its lock file, which the caller holds.
    """
    text = _text(record)
    # One with two names may be a private file of ours, which another member of the group has linked here.
    if os.fstat(lock_fd).st_nlink == 1 and os.pread(lock_fd, _MAX_BYTES + 1, 0) != text:
        os.pwrite(lock_fd, text, 0)
        os.ftruncate(lock_fd, len(text))
    raw = _read_bytes(path, dir_fd)
    try:
        return raw is not None and _read(path, raw) is not None
    except CorruptionError:
        return False
