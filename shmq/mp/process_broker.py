"""The anonymous broker in which the queues of this process lie, and those of others whose queues came by pickle."""

from __future__ import annotations

import multiprocessing.util  # noqa: F401  - before the first broker, so that it is closed after the children are joined
import os
import threading
import weakref
from collections.abc import Callable
from multiprocessing.process import current_process
from typing import TYPE_CHECKING, Final

from shmq.engine.broker.broker import Broker, broker_membership, leave_when_dropped
from shmq.engine.membership.opening import join_anonymous, rejoin
from shmq.errors import OptionsMismatch
from shmq.options import BrokerSettings
from shmq.options.encryption_key import check_encryption_key

if TYPE_CHECKING:
    from shmq.engine.membership.membership import Membership
    from shmq.options.encryption_key import EncryptionKey

__all__ = ["joined_broker", "key_of", "own_broker", "set_encryption_key"]

# Reentrant: the garbage collector may run a finalizer that makes a queue while another one is being made.
_LOCK = threading.RLock()
_own: tuple[int, Broker] | None = None  # pid, broker
_joined: Final[weakref.WeakValueDictionary[str, Broker]] = weakref.WeakValueDictionary()
_key: EncryptionKey | None = None  # of what queues of this process have on disk


def set_encryption_key(encryption_key: bytes | str | os.PathLike[str] | Callable[[], bytes]) -> None:
    """Encrypts what queues of this process have on disk. Call it before the first queue is made.

    Children have the key, too, however they are started: those that are forked, and those that get a queue as they are
    spawned. It is in no other pickle; of a key file its path is.

    encryption_key: 32 random bytes, the path of a file with them or with 64 hexadecimal digits, or a function that
        returns them.

    Raises OptionsMismatch when this process has made queues without it; ValueError, TypeError for what is no key.
    Raises OSError for a file that cannot be read, or where OpenSSL's libcrypto is missing.

    Example:
        >>> import secrets
        >>> from shmq.mp import Queue, set_encryption_key
        >>> set_encryption_key(secrets.token_bytes(32))
        >>> todo: Queue[str] = Queue()
    """
    global _key
    key = check_encryption_key(encryption_key)
    with _LOCK:
        own = _own_membership()
        if own is not None and (own.encryption_key is None or own.encryption_key.value != key.value):
            raise OptionsMismatch(
                "the queues of this process were made with another encryption_key"
                if own.encryption_key
                else "the queues of this process were made without encryption_key",
                remedy="call set_encryption_key() before the first queue is made",
            )
        _key = key


def key_of(broker: Broker) -> EncryptionKey | None:
    """Returns the key of what a broker has on disk. It is pickled with the broker's queues."""
    return broker_membership(broker).encryption_key


def _own_membership() -> Membership | None:
    """Returns the membership in the broker of this process, if there is one. The caller holds the lock."""
    if _own is None or _own[0] != os.getpid():
        return None
    membership = broker_membership(_own[1])
    return None if membership.closed else membership


def own_broker() -> Broker:
    """Returns the broker of this process, made when first needed; a forked child makes its own.

    It lives until the process has joined its children, and for as long as a process that has one of its queues.
    """
    global _own
    with _LOCK:
        if _own is None or _own_membership() is None:
            broker = Broker(join_anonymous(BrokerSettings(encryption_key=_key)))
            _joined[broker_membership(broker).key] = broker
            _own = (os.getpid(), broker)
        return _own[1]


def joined_broker(key: str, encryption_key: EncryptionKey | None = None) -> Broker:
    """Joins the broker of a queue that was pickled.

    Arguments:
        key: that its pickle names.
        encryption_key: that came with it. A child that is being started takes it for queues of its own, too.

    Raises BrokerNotFound when its last process has gone, OptionsMismatch when it needs a key that is not there.
    """
    global _key
    with _LOCK:
        if _key is None and getattr(current_process(), "_inheriting", False):
            _key = encryption_key
        found = _joined.get(key)
        if found is None or broker_membership(found).closed:
            found = _joined[key] = Broker(_rejoined(key, encryption_key))
            leave_when_dropped(found)
        return found


def _rejoined(key: str, encryption_key: EncryptionKey | None) -> Membership:
    """Joins a broker again, with the key of this process if none came with the queue."""
    try:
        return rejoin(key, None, encryption_key)
    except OSError:
        if _key is None or encryption_key is None:
            raise  # the file that the maker of the queue named cannot be read here
        return rejoin(key, None, _key)
    except OptionsMismatch as error:
        if encryption_key is not None:
            raise
        if _key is not None:
            return rejoin(key, None, _key)
        raise OptionsMismatch(
            "the queue's maker encrypts messages that go to disk",
            figures="its key is not known here",
            remedy="call shmq.mp.set_encryption_key() with the same key before the queue is unpickled",
        ) from error


def _after_fork() -> None:
    global _LOCK
    _LOCK = threading.RLock()  # another thread of the parent may have held it


os.register_at_fork(after_in_child=_after_fork)
