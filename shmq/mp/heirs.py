"""The processes that may still have a queue that its maker has dropped: children that were forked or spawned with it.

A queue of multiprocessing ends with its last file descriptor. One of shmq has none, so its maker deletes it. It does so
at once if no process was started since and it was never pickled. Else it waits until every process that may have got it
has ended. Nobody counts, so nobody who is killed is missing from the count:

- each fork gets a pipe whose writing end stays with the child and what it forks, and is closed with the last of them;
- a child that its maker spawns is multiprocessing's, whose sentinel is such a pipe;
- whoever got the queue in any other way is not known: it is public then and lives for as long as its broker.
"""

from __future__ import annotations

import os
import select
import threading
import weakref
from collections import deque
from multiprocessing.context import get_spawning_popen
from typing import Any, Final

from shmq.errors import ShmqError
from shmq.mp.object_queue import ObjectQueue

__all__ = ["Bequest", "bequeath"]

_UNKNOWN: Final = -1  # a fork without a pipe: its child counts as alive, since its end is not seen


class Bequest:
    """One queue of this process, and the processes to which it went."""

    def __init__(self, queue: ObjectQueue, born: int) -> None:
        self.queue = queue
        self.pid = os.getpid()
        self.born = born  # forks up to this one came before it
        self.died = born  # and those after this one after it
        self.spawned: list[weakref.ref[Any]] = []

    def hand_over(self) -> bool:
        """Notes the child that gets the queue, which is being pickled. False: its maker does not spawn a child."""
        child = get_spawning_popen()
        if child is None or self.pid != os.getpid():
            return False
        self.spawned.append(weakref.ref(child))
        return True

    def has_heirs(self) -> bool:
        """Says whether another process may have the queue. The caller holds the lock."""
        if any(self.born < serial <= self.died for serial in _families):
            return True
        self.spawned = [child for child in self.spawned if _is_running(child())]
        return bool(self.spawned)


_LOCK = threading.Lock()
_local = threading.local()
_families: Final[dict[int, int]] = {}  # serial of a fork -> reading end of its pipe
_forking: Final[set[int]] = set()  # serials of forks that have begun and not ended, in other threads
_dropped: Final[deque[Bequest]] = deque()  # by finalizers, which may run anywhere
_waiting: Final[list[Bequest]] = []
_begun = 0  # forks
_living: Final[set[Bequest]] = set()  # whose handle lives; without one no fork needs a pipe
_watching = False


def bequeath(handle: object, queue: ObjectQueue) -> Bequest:
    """From now on the queue is deleted when the handle has gone and nobody can have inherited it.

    Arguments:
        handle: the object that the program has.
        queue: made by this process.
    """
    global _watching
    if not _watching:
        _watching = True
        os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
    _sweep()
    bequest = Bequest(queue, min(tuple(_forking), default=_begun + 1) - 1)
    _living.add(bequest)
    weakref.finalize(handle, _drop, bequest).atexit = False  # at exit the whole broker goes
    return bequest


def _drop(bequest: Bequest) -> None:
    if bequest.pid == os.getpid():
        bequest.died = _begun
        _dropped.append(bequest)
        _living.discard(bequest)
        _sweep()


def _sweep() -> None:
    # A finalizer may find the lock taken by the very thread that it interrupts. The holder takes care of this one.
    while (_dropped or _waiting) and _LOCK.acquire(blocking=False):
        try:
            while _dropped:
                _waiting.append(_dropped.popleft())
            _forget_ended_families()
            with_heirs = {bequest for bequest in _waiting if bequest.has_heirs()}
            ended = [bequest for bequest in _waiting if bequest not in with_heirs]
            _waiting[:] = with_heirs
        finally:
            _LOCK.release()
        for bequest in ended:
            try:
                bequest.queue.remove()
            except ShmqError:
                pass  # its broker is closed: the queue has gone, or goes with it
        if not _dropped:
            return


# ---- forks -----------------------------------------------------------------------------------------------------


def _before_fork() -> None:
    global _begun
    _local.pipe = None
    if not (_living or _waiting or _dropped):
        return
    with _LOCK:
        _forget_ended_families()
        _begun += 1
        _forking.add(_begun)
        try:
            reading, writing = os.pipe()
        except OSError:
            reading = writing = _UNKNOWN
        _families[_begun] = reading
        _local.pipe = (_begun, writing)


def _after_in_parent() -> None:
    pipe = getattr(_local, "pipe", None)
    if pipe is not None:
        serial, writing = pipe
        _local.pipe = None
        if writing != _UNKNOWN:
            os.close(writing)
        _forking.discard(serial)


def _after_in_child() -> None:
    # The writing end stays open until this process ends, and is inherited by what it forks.
    global _LOCK
    _LOCK = threading.Lock()
    for reading in _families.values():
        if reading != _UNKNOWN:
            os.close(reading)
    _families.clear()
    _forking.clear()
    _dropped.clear()
    _waiting.clear()
    _living.clear()


def _forget_ended_families() -> None:
    if not _families:
        return
    poll = select.poll()
    serials = {}
    for serial, reading in _families.items():
        if reading != _UNKNOWN:
            serials[reading] = serial
            poll.register(reading, 0)
    for reading, _ in poll.poll(0):
        os.close(reading)
        del _families[serials[reading]]


def _is_running(child: Any) -> bool:
    """Says whether a spawned child runs, by its Popen; None: multiprocessing itself has forgotten the child."""
    if child is None or child.returncode is not None:
        return False
    sentinel = getattr(child, "sentinel", None)
    if sentinel is None:
        return True  # on its way
    poll = select.poll()
    poll.register(sentinel, select.POLLIN)
    return not poll.poll(0)
