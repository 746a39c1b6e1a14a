"""Segments of shared memory: making, looking, joining, removing."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import shmq.core.status  # noqa: F401  - so that what fails below raises the right exception
from shmq._native import (
    GRANULE_BYTES,
    MEMORY_MAX,
    MEMORY_MIN,
    Member,
    Observer,
    boot_id,
    filesystem_type,
    segment_create,
    segment_inspect,
    segment_sweep,
)
from shmq.errors import ShmqError

if TYPE_CHECKING:
    from uuid import UUID  # a tenth of `import shmq`, and needed only to open a broker

__all__ = [
    "GRANULE_BYTES",
    "MEMORY_MAX",
    "MEMORY_MIN",
    "SHM_DIRECTORY",
    "Member",
    "Observer",
    "SegmentIdentity",
    "attach",
    "create",
    "default_memory",
    "filesystem_type",
    "inspect",
    "is_segment_name",
    "list_segments",
    "new_uuid",
    "observe",
    "segment_name",
    "shm_device",
    "sweep",
    "this_boot",
    "unlink",
    "whole_granules",
]

SHM_DIRECTORY: Final = "/dev/shm"
_NAME: Final = re.compile(r"shmq-[0-9]+-[0-9a-f]{32}")
_DEFAULT_MEMORY_MAX: Final = 4 << 30


@dataclass(frozen=True, slots=True)
class SegmentIdentity:
    """What a segment's header says, without being a member.

    Attributes:
        name: below /dev/shm.
        memory: size of the segment in bytes.
        created: POSIX seconds.
        patience: seconds.
        uid: of the user who made it.
        mode: of the file.
        anonymous: belongs to no directory.
        has_members: somebody is attached.
        uuid, boot_id: of the segment, of the boot it was made in.
        path: of the broker's directory, "" for an anonymous one.
        directory: device and inode of that directory.
    """

    name: str
    memory: int
    created: float
    patience: float
    uid: int
    mode: int
    anonymous: bool
    has_members: bool
    uuid: UUID
    boot_id: UUID
    path: str
    directory: tuple[int, int]


def new_uuid() -> UUID:
    """For a segment that is about to be made."""
    from uuid import uuid4

    return uuid4()


def this_boot() -> UUID:
    """The boot that this system runs since."""
    from uuid import UUID

    return UUID(bytes=boot_id())


def segment_name(uuid: UUID) -> str:
    """The name of the segment that this user makes for a broker."""
    return f"shmq-{os.geteuid()}-{uuid.hex}"


def is_segment_name(name: str) -> bool:
    """Whether segment_name() could have made it, for whatever user."""
    return _NAME.fullmatch(name) is not None


def whole_granules(memory: int) -> int:
    """The size that a segment for so many bytes gets: segments consist of whole granules."""
    return memory // GRANULE_BYTES * GRANULE_BYTES


def default_memory() -> int:
    """Bytes of a new segment when nobody says: half of /dev/shm, at most 4 GiB, at least the smallest one."""
    shm = os.statvfs(SHM_DIRECTORY)
    half = shm.f_blocks * shm.f_frsize // 2
    return whole_granules(max(MEMORY_MIN, min(half, _DEFAULT_MEMORY_MAX)))


def shm_device() -> int:
    """Device number of /dev/shm: another one in each container that has a /dev/shm of its own."""
    return os.stat(SHM_DIRECTORY).st_dev


def create(
    uuid: UUID,
    *,
    memory: int,
    patience: float,
    mode: int,
    path: str = "",
    directory: tuple[int, int] = (0, 0),
    epoch: int = 0,
) -> str:
    """Makes a segment, complete or not at all, and returns its name.

    Arguments:
        uuid: a new one.
        memory: bytes; rounded down to whole granules.
        patience: seconds.
        mode: of the file, 0o600 or 0o660.
        path: of the broker's directory; "": anonymous.
        directory: its device and inode.
        epoch: high 24 bits of the message ids, so that those of a lost segment do not come again.

    Raises OutOfSpace if /dev/shm is full, BrokerError for a size that no segment can have.
    """
    name = segment_name(uuid)
    patience_ns = round(patience * 1e9)
    segment_create(name, memory, patience_ns, mode, not path, path, uuid.bytes, directory, epoch & 0xFFFFFF)
    return name


def attach(name: str, dir_fd: int = -1) -> Member:
    """Becomes a member of the segment.

    Arguments:
        name: below /dev/shm.
        dir_fd: the broker's directory (duplicated), so that its deletion is noticed; -1: anonymous.

    Raises BrokerNotFound when there is none, PermissionError for another user's, VersionMismatch, CorruptionError,
    OtherBoot, OutOfSpace, and BrokerError when the process table is full.
    """
    return Member(name, dir_fd)


def inspect(name: str) -> SegmentIdentity:
    """Looks at a segment without becoming a member. Raises what attach() raises."""
    from uuid import UUID

    found = segment_inspect(name)
    return SegmentIdentity(
        name=name,
        memory=found["memory"],
        created=found["created_ns"] / 1e9,
        patience=found["patience_ns"] / 1e9,
        uid=found["uid"],
        mode=found["mode"],
        anonymous=found["anonymous"],
        has_members=found["has_members"],
        uuid=UUID(bytes=found["uuid"]),
        boot_id=UUID(bytes=found["boot_id"]),
        path=found["path"],
        directory=found["directory"],
    )


def observe(name: str) -> Observer:
    """Maps the segment for reading, and for nothing else: no row, no lock, no write. Raises what attach() raises."""
    return Observer(name)


def list_segments() -> list[str]:
    """The names of all segments of this host, of whatever user, sorted."""
    return sorted(name for name in os.listdir(SHM_DIRECTORY) if is_segment_name(name))


def sweep(name: str) -> bool:
    """Removes the segment unless somebody is, or is about to become, a member. Returns whether it is removed now.

    One that cannot be looked at, or that is not ours, stays.
    """
    try:
        return segment_sweep(name)
    except (ShmqError, OSError):
        return False


def unlink(name: str) -> None:
    """Takes the segment's name away; members keep what they have. Does nothing if there is none, or it is not ours."""
    import posix_ipc

    try:
        posix_ipc.unlink_shared_memory(f"/{name}")
    except (posix_ipc.ExistentialError, posix_ipc.PermissionsError):
        pass
