"""Opening: from a path, a URL or a pickled handle to a Broker."""

from __future__ import annotations

import os

from shmq.core import segment
from shmq.core.queue import reap
from shmq.engine.broker.broker import Broker
from shmq.engine.directory.broker_directory import BrokerDirectory, open_anonymous
from shmq.engine.membership.membership import Membership
from shmq.errors import BrokerNotFound, ShmqError
from shmq.options import BrokerSettings

__all__ = ["open_anonymous_broker", "open_directory", "rejoin"]


def open_anonymous_broker(settings: BrokerSettings) -> Broker:
    """A broker without a directory, shared by passing handles, gone with its last user."""
    member = open_anonymous(memory=settings.memory, patience=settings.patience)
    return Broker(Membership.join(member.name, lambda: Membership(member.name, None, member)))


def first_look(broker: Broker) -> Broker:
    """What the dead held goes back before anything is taken: nobody may have been here to notice when they died."""
    try:
        reap(broker._membership.live())
    except ShmqError:
        pass  # damage hinders no opening: whoever meets it says so
    except BaseException:
        broker.close()
        raise
    return broker


def join_segment(name: str) -> Broker:
    """Join an anonymous broker by the name of its segment. Raises BrokerNotFound when its last member has gone."""
    found = Membership.of(name)
    if found is not None:
        return Broker(found)
    try:
        return first_look(Broker(Membership.join(name, lambda: Membership(name, None, segment.attach(name)))))
    except BrokerNotFound as error:
        raise BrokerNotFound(
            "the anonymous broker of this handle has gone",
            figures=name,
            remedy="keep a process that uses it until the others have joined, or open a broker with a directory",
        ) from error


def open_directory(path: str, settings: BrokerSettings, *, create: bool) -> Broker:
    """The broker in a directory. Opening it again in this process gives another handle on the same membership."""
    if os.path.dirname(path) == segment.SHM_DIRECTORY and segment.is_segment_name(os.path.basename(path)):
        return join_segment(os.path.basename(path))
    member = BrokerDirectory(path).open(
        create=create, memory=settings.memory, mode=settings.mode, patience=settings.patience
    )
    known = Membership.of(member.name)
    if known is not None:
        member.close(True)
        return Broker(known)
    return first_look(Broker(Membership.join(member.name, lambda: Membership(member.name, path, member))))


def rejoin(key: str, path: str | None) -> Broker:
    """A Broker that was pickled."""
    found = Membership.of(key)
    if found is not None:
        return Broker(found)
    if path is None:
        return join_segment(key)
    return open_directory(path, BrokerSettings(), create=False)
