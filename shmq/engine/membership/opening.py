"""Opens a broker, by a path or by what a pickled handle knows: gives this process's membership one handle more."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from shmq.core import segment
from shmq.core.queue import reap
from shmq.engine.directory.broker_directory import BrokerDirectory, open_anonymous
from shmq.engine.membership.membership import Membership
from shmq.errors import BrokerNotFound, OptionsMismatch, ShmqError
from shmq.options import BrokerSettings

if TYPE_CHECKING:
    from shmq.core.segment import Member
    from shmq.options.encryption_key import EncryptionKey

__all__ = ["join_anonymous", "join_directory", "rejoin"]


def join_anonymous(settings: BrokerSettings) -> Membership:
    """Joins a broker without a directory, which is shared by passing handles and goes with its last user."""
    key = settings.encryption_key
    check = b"" if key is None else segment.check_of(key.value)
    member = open_anonymous(settings, check=check)
    return _joined(None, member, key)


def _joined(path: str | None, member: Member, key: EncryptionKey | None, *, rows: bool = True) -> Membership:
    """Makes a new membership, with the key of what goes to disk.

    Arguments:
        rows: it needs messages that lie there. False: it may do without the key.
    """
    name = path or f"anonymous ({member.name})"
    try:
        if key is not None:
            _compare(name, member.header()["key_check"], segment.check_of(key.value))
            member.encrypt_with(key.value)
        elif rows:
            _need_no_key(name, member)
    except BaseException:
        member.close()
        raise
    return Membership.join(member.name, lambda: Membership(member.name, path, member, key))


def _known(known: Membership, key: EncryptionKey | None, *, rows: bool) -> Membership:
    """Returns a membership that this process has already, perhaps opened without the key, only to look."""
    name = known.path or f"anonymous ({known.key})"
    try:
        member = known.live()
        if key is not None:
            _compare(name, member.header()["key_check"], segment.check_of(key.value))
            if known.encryption_key is None:
                member.encrypt_with(key.value)
                known.encryption_key = key
        elif rows and known.encryption_key is None:
            _need_no_key(name, member)
    except BaseException:
        known.leave()
        raise
    return known


def _need_no_key(name: str, member: Member) -> None:
    if member.header()["key_check"]:
        raise OptionsMismatch(
            f"the broker {name} encrypts messages that go to disk",
            figures="no encryption_key is given here",
            remedy="open it with the encryption_key with which it was made, and do so before a handle is unpickled",
        )


def _compare(name: str, has: bytes, given: bytes) -> None:
    """Raises OptionsMismatch. The error shows the check of a key, by which the key cannot be found."""
    if has != given:
        raise OptionsMismatch(
            f"the broker {name} has another encryption_key" if has else f"the broker {name} has no encryption_key",
            figures=f"key {given.hex()[:8]} here, {has.hex()[:8] or 'none'} since it was made",
            remedy="open it with the key with which it was made, or use another directory"
            if has
            else "open it without encryption_key, or use another directory",
        )


def _first_look(membership: Membership) -> Membership:
    """Reaps the dead before anything is taken: nobody may have been here to notice when they died."""
    try:
        reap(membership.live())
    except ShmqError:
        pass  # damage hinders no opening: the call that meets it raises
    except BaseException:
        membership.leave()
        raise
    return membership


def _join_segment(name: str, key: EncryptionKey | None = None) -> Membership:
    """Join an anonymous broker by the name of its segment. Raises BrokerNotFound when its last member has gone."""
    found = Membership.of(name)
    if found is not None:
        return _known(found, key, rows=True)
    try:
        return _first_look(_joined(None, segment.attach(name), key))
    except BrokerNotFound as error:
        raise BrokerNotFound(
            "the anonymous broker of this handle has gone",
            figures=name,
            remedy="keep a process that uses it until the others have joined, or open a broker with a directory",
        ) from error


def join_directory(path: str, settings: BrokerSettings, *, create: bool, rows: bool = True) -> Membership:
    """Joins the broker in a directory. Joining it again in this process gives another handle on the same membership.

    Arguments:
        path: of the directory.
        settings: those that were given.
        create: False: BrokerNotFound if there is none.
        rows: messages on disk are needed. False: a broker that encrypts them is joined without its key, too.
    """
    key = settings.encryption_key
    if os.path.dirname(path) == segment.SHM_DIRECTORY and segment.is_segment_name(os.path.basename(path)):
        return _join_segment(os.path.basename(path), key)
    if key is not None and key.path is not None and _lies_in(key.path, path):
        raise ValueError(f"encryption_key={key.path!r} lies in the broker's own directory; keep it elsewhere")
    member = BrokerDirectory(path).open(settings, create=create)
    known = Membership.of(member.name)
    if known is not None:
        member.close()
        return _known(known, key, rows=rows)
    return _first_look(_joined(path, member, key, rows=rows))


def _lies_in(file: str, directory: str) -> bool:
    return os.path.realpath(file).startswith(os.path.join(os.path.realpath(directory), ""))


def rejoin(key: str, path: str | None, encryption_key: EncryptionKey | None = None) -> Membership:
    """Joins the broker of a handle that was pickled."""
    found = Membership.of(key)
    if found is not None:
        return _known(found, None if found.encryption_key else encryption_key, rows=False)
    if path is None:
        return _join_segment(key, encryption_key)
    return join_directory(path, BrokerSettings(encryption_key=encryption_key), create=False)
