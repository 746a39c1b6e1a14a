"""Segments of shared memory: making, looking, joining, removing."""

from __future__ import annotations

import errno
import logging
import os
import re
import resource
from contextlib import suppress
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
    key_check,
    segment_create,
    segment_inspect,
    segment_remove,
    segment_sweep,
)
from shmq.errors import BrokerError, ShmqError

if TYPE_CHECKING:
    from uuid import UUID  # a tenth of `import shmq`, and needed only to open a broker

__all__ = [
    "ANONYMOUS",
    "GRANULE_BYTES",
    "MEMORY_MAX",
    "MEMORY_MIN",
    "DISK_NONE",
    "DISK_SHARE",
    "SEGMENT_NAME",
    "SHM_DIRECTORY",
    "Home",
    "Member",
    "Observer",
    "SegmentIdentity",
    "attach",
    "check_of",
    "create",
    "default_memory",
    "filesystem_type",
    "inspect",
    "is_memory",
    "is_segment_name",
    "list_segments",
    "new_uuid",
    "observe",
    "remove",
    "segment_name",
    "shm_device",
    "shm_type",
    "sweep",
    "this_boot",
    "unlink",
    "whole_granules",
]

_LOG: Final = logging.getLogger("shmq.broker")

SHM_DIRECTORY: Final = "/dev/shm"

# Descriptor and uuid of the directory that asks for a segment: what the segment's header has to name.
Home = tuple[int, bytes]
ANONYMOUS: Final[Home] = (-1, bytes(16))

SEGMENT_NAME: Final = re.compile(r"shmq-[0-9]+-[0-9a-f]{32}")
_DEFAULT_MEMORY_MAX: Final = 4 << 30
DISK_SHARE: Final = 0  # in a segment's header, as the core names them
DISK_NONE: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class SegmentIdentity:
    """The header of a segment, as a process reads it that is no member.

    Attributes:
        name: below /dev/shm.
        memory: size of the segment in bytes.
        created: POSIX seconds.
        patience: seconds.
        uid: of the user who made it, as its members say.
        owner: of the file, as the kernel says.
        mode: of the file.
        anonymous: belongs to no directory.
        has_members: somebody is attached.
        uuid, boot_id: of the segment, of the boot it was made in.
        path: of the broker's directory; of an anonymous one, of the folder for what flows to disk.
        directory: device and inode of that directory.
        directory_uuid: in that directory's record, too.
    """

    name: str
    memory: int
    created: float
    patience: float
    uid: int
    owner: int
    mode: int
    anonymous: bool
    has_members: bool
    uuid: UUID
    boot_id: UUID
    path: str
    directory: tuple[int, int]
    directory_uuid: UUID

    def lies_in(self, directory: os.stat_result) -> bool:
        """Says whether the header names this directory by device and inode."""
        return not self.anonymous and self.directory == (directory.st_dev, directory.st_ino)


def new_uuid() -> UUID:
    """Returns a new uuid for a segment that is about to be made."""
    from uuid import uuid4

    return uuid4()


def this_boot() -> UUID:
    """Returns the id of the system's present boot."""
    from uuid import UUID

    return UUID(bytes=boot_id())


def segment_name(uuid: UUID) -> str:
    """Returns the name of the segment that this user makes for a broker."""
    return f"shmq-{os.geteuid()}-{uuid.hex}"


def is_segment_name(name: str) -> bool:
    """Says whether segment_name() could have made the name, for any user."""
    return SEGMENT_NAME.fullmatch(name) is not None


def whole_granules(memory: int) -> int:
    """Returns the size of a segment for so many bytes: segments consist of whole granules."""
    return memory // GRANULE_BYTES * GRANULE_BYTES


def default_memory() -> int:
    """Returns the default size of a new segment: half of /dev/shm, at most 4 GiB, at least the smallest size."""
    shm = os.statvfs(SHM_DIRECTORY)
    half = shm.f_blocks * shm.f_frsize // 2
    return whole_granules(max(MEMORY_MIN, min(half, _DEFAULT_MEMORY_MAX)))


def check_of(key: bytes) -> bytes:
    """Computes the check of a key for a segment's header: it confirms the key, and does not reveal it.

    Raises BrokerError without OpenSSL's libcrypto.
    """
    with suppress(ImportError):
        import _hashlib  # noqa: F401  - the interpreter's own libcrypto, wherever it lies, is there for the core then
    return key_check(key)


def shm_device() -> int:
    """Returns the device number of /dev/shm, which differs in each container that has a /dev/shm of its own."""
    return os.stat(SHM_DIRECTORY).st_dev


def create(
    uuid: UUID,
    *,
    memory: int,
    patience: float,
    mode: int,
    disk: int | None = None,
    path: str = "",
    directory: tuple[int, int, bytes] = (0, 0, bytes(16)),
    epoch: int = 0,
    group: int = 0,
    check: bytes = b"",
) -> str:
    """Makes a segment, complete or not at all, and returns its name.

    Arguments:
        uuid: a new one.
        memory: bytes; rounded down to whole granules.
        patience: seconds.
        mode: of the file, 0o600 or 0o660.
        disk: bytes that may lie on disk; 0: none; None: what leaves a tenth of the file system free.
        path: of the broker's directory; of an anonymous one, of the folder for what flows to disk.
        directory: its device, inode and uuid, which prove that the segment is its own; zeros: anonymous.
        epoch: high 24 bits of the message ids, so that those of a lost segment do not come again.
        group: of the file, if its mode is 0o660.
        check: check_of() the key of what goes to disk; none: that is not encrypted.

    Raises OutOfSpace if /dev/shm is full, PermissionError if we are no member of the group. Raises BrokerError for a
    size that no segment can have or a /dev/shm that is no tmpfs.
    """
    name = segment_name(uuid)
    patience_ns = round(patience * 1e9)
    budget = DISK_SHARE if disk is None else disk or DISK_NONE
    anonymous = directory[:2] == (0, 0)
    _need_memory()
    _warn_of_size(memory)
    plan = name, memory, patience_ns, budget, mode, anonymous, path, uuid.bytes, directory
    segment_create(*plan, epoch & 0xFFFFFF, group, check)
    return name


def is_memory(kind: int) -> bool:
    """Says whether a file system of this type is shared memory: a tmpfs, or a ramfs."""
    return kind in (0x01021994, 0x858458F6)


def shm_type() -> int:
    """Returns the type of the file system at /dev/shm."""
    directory = os.open(SHM_DIRECTORY, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return filesystem_type(directory)
    finally:
        os.close(directory)


def _need_memory() -> None:
    """Raises BrokerError if /dev/shm lies on a disk: each message would be written to it, and survive a reboot."""
    kind = shm_type()
    if not is_memory(kind):
        raise BrokerError(
            f"{SHM_DIRECTORY} is not shared memory, and no broker can be made there",
            figures=f"it is no tmpfs (type {kind:#x})",
            remedy=f"mount a tmpfs at {SHM_DIRECTORY}",
            errno=errno.EOPNOTSUPP,
            filename=SHM_DIRECTORY,
        )


def _warn_of_size(memory: int) -> None:
    """Warns of a size above the present memory. It is not refused, for memory is reserved only as it is used."""
    shm = os.statvfs(SHM_DIRECTORY)
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for most, what in ((shm.f_blocks * shm.f_frsize, SHM_DIRECTORY), (machine, "this machine")):
        if memory > most > 0:
            _LOG.warning(
                "a broker with %s bytes of memory= is made, and %s has %s: messages flow to disk where that is used "
                "up; make it with a smaller memory=%s",
                f"{memory:,}",
                what,
                f"{most:,}",
                ", or enlarge it (in Docker --shm-size)" if what == SHM_DIRECTORY else "",
            )
            return


def attach(name: str, home: Home | None = ANONYMOUS) -> Member:
    """Becomes a member of the segment, if it is the one of the directory that asks.

    Arguments:
        name: below /dev/shm.
        home: the directory (its descriptor is duplicated, so that its deletion is noticed); None: nobody asks.

    Raises BrokerNotFound when there is none, ForeignSegment for another broker's. Raises PermissionError for another
    user's or one that is not shared as its directory is. Raises BrokerError when the process table is full, or this
    process may not map so much. Raises VersionMismatch, CorruptionError, OutOfSpace.
    """
    try:
        return Member(name, home)
    except BrokerError as error:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if error.errno != errno.ENOMEM or limit == resource.RLIM_INFINITY:
            raise
        raise BrokerError(
            error.what,
            figures=f"this process may map {limit:,} bytes (RLIMIT_AS); most of a segment are addresses without memory",
            remedy="lift the limit (ulimit -v unlimited; in Spark leave spark.executor.pyspark.memory unset, and limit "
            "memory by the container), or make the broker with less memory",
            errno=errno.ENOMEM,
        ) from None


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
        owner=found["owner"],
        mode=found["mode"],
        anonymous=found["anonymous"],
        has_members=found["has_members"],
        uuid=UUID(bytes=found["uuid"]),
        boot_id=UUID(bytes=found["boot_id"]),
        path=found["path"],
        directory=found["directory"][:2],
        directory_uuid=UUID(bytes=found["directory"][2]),
    )


def observe(name: str, home: Home | None = ANONYMOUS) -> Observer:
    """Maps the segment for reading, and for nothing else: no row, no lock, no write. Raises what attach() raises."""
    return Observer(name, home)


def list_segments() -> list[str]:
    """Lists the names of all segments of this host, of all users, sorted."""
    return sorted(name for name in os.listdir(SHM_DIRECTORY) if is_segment_name(name))


def sweep(name: str) -> bool:
    """Removes the segment unless somebody is, or is about to become, a member. Returns whether it is removed now.

    One that cannot be looked at, or that is not ours, stays.
    """
    try:
        return segment_sweep(name)
    except (ShmqError, OSError):
        return False


def remove(name: str, home: Home, *, force: bool = False) -> None:
    """Removes the segment of this directory, of whatever version and boot, damaged or not.

    Arguments:
        name: below /dev/shm.
        home: the directory that asks.
        force: although it has members.

    Raises ForeignSegment if its header does not name the directory, SegmentInUse, BrokerNotFound, PermissionError.
    """
    segment_remove(name, home, force)


def unlink(name: str) -> None:
    """Removes the segment's name; members keep their memory. Does nothing if it is missing or another user's."""
    import posix_ipc

    try:
        posix_ipc.unlink_shared_memory(f"/{name}")
    except (posix_ipc.ExistentialError, posix_ipc.PermissionsError):
        pass
