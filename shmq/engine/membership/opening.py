"""Opening: from a path, or from what a pickled handle knows, to this process's membership, with one handle more."""

from __future__ import annotations

import os

from shmq.core import segment
from shmq.core.queue import reap
from shmq.engine.directory.broker_directory import BrokerDirectory, open_anonymous
from shmq.engine.membership.membership import Membership
from shmq.errors import BrokerNotFound, ShmqError
from shmq.options import BrokerSettings

__all__ = ["join_anonymous", "join_directory", "rejoin"]


def join_anonymous(settings: BrokerSettings) -> Membership:
    """A broker without a directory, shared by passing handles, gone with its last user."""
    member = open_anonymous(memory=settings.memory, patience=settings.patience, disk=settings.disk)
    return Membership.join(member.name, lambda: Membership(member.name, None, member))


def _first_look(membership: Membership) -> Membership:
    """What the dead held goes back before anything is taken: nobody may have been here to notice when they died."""
    try:
        reap(membership.live())
    except ShmqError:
        pass  # damage hinders no opening: whoever meets it says so
    except BaseException:
        membership.leave()
        raise
    return membership


def _join_segment(name: str) -> Membership:
    """Join an anonymous broker by the name of its segment. Raises BrokerNotFound when its last member has gone."""
    found = Membership.of(name)
    if found is not None:
        return found
    try:
        return _first_look(Membership.join(name, lambda: Membership(name, None, segment.attach(name))))
    except BrokerNotFound as error:
        raise BrokerNotFound(
            "the anonymous broker of this handle has gone",
            figures=name,
            remedy="keep a process that uses it until the others have joined, or open a broker with a directory",
        ) from error


def join_directory(path: str, settings: BrokerSettings, *, create: bool) -> Membership:
    """The broker in a directory. Joining it again in this process gives another handle on the same membership."""
    if os.path.dirname(path) == segment.SHM_DIRECTORY and segment.is_segment_name(os.path.basename(path)):
        return _join_segment(os.path.basename(path))
    member = BrokerDirectory(path).open(
        create=create,
        memory=settings.memory,
        mode=settings.mode,
        patience=settings.patience,
        disk=settings.disk,
    )
    known = Membership.of(member.name)
    if known is not None:
        member.close(True)
        return known
    return _first_look(Membership.join(member.name, lambda: Membership(member.name, path, member)))


def rejoin(key: str, path: str | None) -> Membership:
    """Of a handle that was pickled."""
    found = Membership.of(key)
    if found is not None:
        return found
    if path is None:
        return _join_segment(key)
    return join_directory(path, BrokerSettings(), create=False)
