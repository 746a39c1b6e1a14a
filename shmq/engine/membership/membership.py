"""This process in one broker: what all its Broker and Queue handles on the same broker share."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from shmq.core.segment import DISK_NONE, SHM_DIRECTORY, Member
from shmq.engine.directory.disk import disk_of, remove_private_disk
from shmq.engine.membership.death_log import DeathLog
from shmq.errors import BrokerError, Closed
from shmq.names import broker_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from shmq.core.queue import Delivery
    from shmq.options.encryption_key import EncryptionKey

__all__ = ["Closable", "Membership", "Sleeper", "WaitingDeadLetter", "close_all"]

_OPEN: Final[dict[str, Membership]] = {}
_LOCK = threading.RLock()  # reentrant: garbage that is collected while it is held may be a handle that leaves


class Closable(Protocol):
    """A consumer that ends with the broker, since no user closes it."""

    def close(self) -> None:
        """Gives back the messages that the consumer has lent."""


class Sleeper(Protocol):
    """A thread of the library that sleeps in the broker."""

    def stop(self) -> None:
        """Asks the thread to end. It does so as soon as it is woken."""

    def join(self) -> bool:
        """Waits for the thread's end after stop(). False: the thread does not end."""


class WaitingDeadLetter(Protocol):
    """A dead message for which the queue for the dead had no room."""

    delivery: Delivery

    @property
    def reason(self) -> str:
        """The reason of the death, as in Death."""


class Membership:
    """A process's membership in one broker. All handles on the broker share it, and the last one that closes ends it.

    After a fork the child finds it, too, and becomes a member of its own at its first operation.

    Arguments:
        key: the name of the segment, by which two handles on the same broker find the same membership.
        path: of the broker's directory; None: anonymous.
        member: the native membership.
        encryption_key: for messages on disk, if the broker has a key and this process knows it.
    """

    def __init__(self, key: str, path: str | None, member: Member, encryption_key: EncryptionKey | None = None) -> None:
        self.key = key
        self._path = path
        self.member = member
        self.encryption_key = encryption_key
        header = member.header()
        self._private_disk = header["path"] if path is None else ""
        self._directory = None if path is None else os.fstat(member.dir_fd)
        if header["disk"] != DISK_NONE:
            member.flow_into(self.disk)
        self.handles = 0
        self.memory = header["memory"]
        self.consumers: dict[tuple[int, int], Closable] = {}  # the implicit ones of Queue.receive
        self.dead_letters: dict[str, deque[WaitingDeadLetter]] = {}  # by the names of their queues, in order
        self.deaths = DeathLog()
        self.excess: str | None = None  # of max_memory over memory, as this process has told it
        self.readiness: weakref.WeakSet[Sleeper] = weakref.WeakSet()
        self.lock = threading.RLock()

    def keep(self, name: str, letter: WaitingDeadLetter) -> None:
        """Appends a dead message of the queue `name` to those that wait for room in the queue for the dead."""
        self.dead_letters.setdefault(name, deque()).append(letter)
        self.member.dead_letters += 1

    def let_go(self, name: str, letter: WaitingDeadLetter) -> None:
        """Removes a message that waits no more: it was moved to the dead, given back, or deleted with its queue."""
        line = self.dead_letters[name]
        line.remove(letter)
        self.member.dead_letters -= 1
        if not line:
            del self.dead_letters[name]

    def forget_dead_letters(self) -> None:
        """Forgets the waiting dead messages: in a forked child they are the parent's."""
        self.dead_letters.clear()
        self.member.dead_letters = 0

    @property
    def path(self) -> str | None:
        """The present path of the broker's directory, which may have been moved while in use. None: anonymous."""
        path, directory, descriptor = self._path, self._directory, self.member.dir_fd
        if path is not None and directory is not None and not _is_at(path, directory):
            with suppress(OSError):
                moved = os.readlink(f"/proc/self/fd/{descriptor}")
                if _is_at(moved, directory):
                    self._path = moved
        return self._path

    @property
    def disk(self) -> str:
        """The directory for messages that flow to disk."""
        path = self.path
        return self._private_disk if path is None else disk_of(path, self.member.name)

    @property
    def url(self) -> str:
        if self.path is not None:
            return broker_url(self.path)
        return broker_url(f"{SHM_DIRECTORY}/{self.member.name}")

    def live(self) -> Member:
        """Returns the native membership of this very process. Raises Closed, BrokerError for one that was reaped."""
        if self.member.lost:
            raise BrokerError(
                f"this process has lost the broker {self.name}: its descriptors were closed beneath it, and others "
                "take it for dead",
                remedy="open it again; a daemon opens it after it has closed all descriptors",
            )
        if self.member.closed:
            raise Closed(f"the broker {self.name} is closed in this process", remedy="open it again")
        if self.member.forked:
            self.member.after_fork()
        return self.member

    @property
    def name(self) -> str:
        """Returns the broker's name for error texts."""
        return self.path or f"anonymous ({self.key})"

    @property
    def closed(self) -> bool:
        return self.member.closed

    def close(self) -> None:
        """Ends the membership, whoever still has handles. Repeatable: of several threads each returns at its end."""
        try:
            for consumer in list(self.consumers.values()):
                consumer.close()
        finally:
            readiness = list(self.readiness)
            for one in readiness:
                one.stop()
            self.member.close()  # this wakes all threads that sleep in the broker
            self.deaths.tell_rest(now=True)
            for one in readiness:
                one.join()
            if self.path is None:
                remove_private_disk(self.disk)
            with self.lock:  # these hold us by their queues, by ways that garbage collection does not see
                self.consumers.clear()
                self.dead_letters.clear()
            with _LOCK:  # last: the end of the process waits for a thread that closes
                if _OPEN.get(self.key) is self:
                    del _OPEN[self.key]

    @staticmethod
    def join(key: str, make: Callable[[], Membership]) -> Membership:
        """Returns the membership of this key with one handle more. It is made if this process has none."""
        _watch_exit()
        with _LOCK:
            found = _OPEN.get(key)
            if found is not None:
                found.handles += 1
            if found is None or found.closed:
                found = make()
                found.handles += 1
                _OPEN[found.key] = found
            return found

    @staticmethod
    def of(key: str) -> Membership | None:
        """Returns the open membership of this key, if there is one, with one handle more."""
        with _LOCK:
            found = _OPEN.get(key)
            if found is None or found.closed:
                return None
            found.handles += 1
            return found

    def leave(self) -> None:
        """Counts one handle less. The last one closes the membership."""
        with _LOCK:
            self.handles -= 1
            last = self.handles <= 0
        if last:
            self.close()


def _is_at(path: str, directory: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), directory)
    except OSError:
        return False


def close_all() -> None:
    """Leaves every broker at the end of the process, so that other members need not find out that it has gone."""
    for membership in list(_OPEN.values()):
        membership.close()


_watching: set[str] = set()


def _watch_exit() -> None:
    if not _watching:
        _watching.add("fork")
        os.register_at_fork(after_in_child=_after_fork)
        atexit.register(_at_exit)
    _watch_multiprocessing()


def _at_exit() -> None:
    # The exit function of multiprocessing joins the children first and then runs our finalizer. atexit would come
    # before it, and an anonymous broker would be gone before a spawned child has joined it.
    if "multiprocessing" not in _watching:
        close_all()


def _watch_multiprocessing() -> None:
    """Children of multiprocessing end without atexit; it runs finalizers of its own, and forgets them at each fork.

    Priority -100: after everything that programs register themselves, and after its own join of the children. So an
    anonymous broker outlives the children of the process that made it.
    """
    util = sys.modules.get("multiprocessing.util")
    if util is not None and "multiprocessing" not in _watching:
        _watching.add("multiprocessing")
        util.Finalize(None, close_all, exitpriority=-100)
        if "children" not in _watching:
            _watching.add("children")
            util.register_after_fork(close_all, _finalize_child)


def _finalize_child(function: Callable[[], None]) -> None:
    _watching.add("multiprocessing")
    sys.modules["multiprocessing.util"].Finalize(None, function, exitpriority=-100)


def _after_fork() -> None:
    global _LOCK
    _LOCK = threading.RLock()  # another thread of the parent may have held it
    _watching.discard("multiprocessing")  # its finalizers are the parent's
    _watch_multiprocessing()  # which may have been loaded since; a child of its own then finds our entry, see above
    for membership in _OPEN.values():
        membership.lock = threading.RLock()
        membership.consumers.clear()  # these consumers are the parent's
        membership.forget_dead_letters()
        membership.deaths.forget()
        membership.readiness.clear()
