"""Finds segments that are a directory's broker although no record in the directory names them any more.

A cleaner of /tmp removes files by their age, `segment` and `lock` among them, while processes use the broker. A process
that opens the directory then joins them, and makes no second broker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shmq.core import segment
from shmq.core.segment import DISK_NONE, DISK_SHARE, SegmentIdentity
from shmq.engine.directory.ownership import GROUP_MODE, PRIVATE_MODE
from shmq.engine.directory.record import SegmentRecord
from shmq.errors import ShmqError

if TYPE_CHECKING:
    from uuid import UUID

    from shmq.core.segment import Member

__all__ = ["record_of", "unrecorded"]


def unrecorded(directory: os.stat_result, proof: UUID | None = None) -> Iterator[SegmentIdentity]:
    """Lists the segments whose headers name this directory, and prove it; those that are in use come first.

    Device and inode alone prove nothing, for a new directory may get the inode of one that was deleted. Members prove
    them: they have the directory open, so its inode is no other directory's.

    Arguments:
        directory: that of the broker.
        proof: the uuid that a record in it says, and that nobody can guess.
    """
    found = []
    for name in segment.list_segments():
        try:
            identity = segment.inspect(name)
        except (ShmqError, OSError):
            continue  # gone meanwhile, another user's, or nothing that this version understands
        if identity.lies_in(directory) and (identity.has_members or identity.directory_uuid == proof):
            found.append(identity)
    yield from sorted(found, key=lambda identity: not identity.has_members)


def record_of(member: Member, identity: SegmentIdentity) -> SegmentRecord:
    """Makes the record of this segment anew from its header."""
    header = member.header()
    budget = header["disk"]
    return SegmentRecord(
        name=identity.name,
        uuid=identity.uuid,
        directory=identity.directory_uuid,
        boot_id=identity.boot_id,
        memory=identity.memory,
        patience=identity.patience,
        mode=GROUP_MODE if identity.mode & 0o060 else PRIVATE_MODE,
        shm_device=segment.shm_device(),
        disk=None if budget == DISK_SHARE else 0 if budget == DISK_NONE else budget,
        key_check=header["key_check"],
        epoch=header["epoch"],
    )
