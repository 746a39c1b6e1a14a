"""The anonymous broker in which the queues of this process lie, and those of others whose queues came by pickle."""

from __future__ import annotations

import multiprocessing.util  # noqa: F401  - before the first broker, so that it is closed after the children are joined
import os
import threading
import weakref
from typing import Final

from shmq.engine.broker.broker import Broker, broker_membership, leave_when_dropped
from shmq.engine.membership.opening import join_anonymous, rejoin
from shmq.options import BrokerSettings

__all__ = ["joined_broker", "own_broker"]

# Reentrant: the garbage collector may run a finalizer that makes a queue while another one is being made.
_LOCK = threading.RLock()
_own: tuple[int, Broker] | None = None  # pid, broker
_joined: Final[weakref.WeakValueDictionary[str, Broker]] = weakref.WeakValueDictionary()


def own_broker() -> Broker:
    """The broker of this process, made when first needed; a forked child makes its own.

    It lives until the process has joined its children, and for as long as a process that has one of its queues.
    """
    global _own
    with _LOCK:
        if _own is None or _own[0] != os.getpid() or broker_membership(_own[1]).closed:
            broker = Broker(join_anonymous(BrokerSettings()))
            _joined[broker_membership(broker).key] = broker
            _own = (os.getpid(), broker)
        return _own[1]


def joined_broker(key: str) -> Broker:
    """The broker of a queue that was pickled. Raises BrokerNotFound when its last process has gone."""
    with _LOCK:
        found = _joined.get(key)
        if found is None or broker_membership(found).closed:
            found = _joined[key] = Broker(rejoin(key, None))
            leave_when_dropped(found)
        return found


def _after_fork() -> None:
    global _LOCK
    _LOCK = threading.RLock()  # another thread of the parent may have held it


os.register_at_fork(after_in_child=_after_fork)
