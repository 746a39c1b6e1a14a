"""Replaces multiprocessing.JoinableQueue."""

from __future__ import annotations

import logging
import multiprocessing.queues
import os
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeVar

from shmq.core.handles import acquire, open_row, users_of
from shmq.core.queue import release_all
from shmq.engine.handle.open_queue import membership_of
from shmq.errors import Empty, ShmqError, Timeout
from shmq.mp.queue import Queue, wait_seconds
from shmq.quantity import quantity
from shmq.wait_time import LONG_WAIT

if TYPE_CHECKING:
    from shmq.core.queue import Delivery
    from shmq.mp.object_queue import ObjectQueue

__all__ = ["JoinableQueue"]

_LOG: Final = logging.getLogger("shmq.broker")

T = TypeVar("T")


class _Hand:
    """Objects that this process has got of one queue and not done, in order. Its handles on that queue share them."""

    def __init__(self, queue: ObjectQueue) -> None:
        self._queue = queue
        self._own = open_row(queue, 0, False)
        self._row = self._own.number
        self._serial = membership_of(queue).live().serial
        self._undone: deque[Delivery] = deque()
        self._waiting = threading.Lock()  # held by the thread that sleeps on the row of this hand

    def is_ours(self) -> bool:
        """False in a forked child, which has got no objects."""
        member = membership_of(self._queue).member
        return not member.forked and member.serial == self._serial

    def get(self, timeout: float | None) -> Any:
        own_row = self._waiting.acquire(blocking=False)
        try:
            delivery = acquire(self._queue, self._row, self._row if own_row else 0, timeout)
        finally:
            if own_row:
                self._waiting.release()
        try:
            body = self._queue.decoded(delivery)
        except Exception:
            self._undone.append(delivery)  # it counts as got, as with multiprocessing
            raise
        except BaseException:
            delivery.release(False)
            raise
        self._undone.append(delivery)
        return body

    def done(self) -> bool:
        """Settles the oldest object. False: no object is left."""
        while True:
            try:
                delivery = self._undone.popleft()
            except IndexError:
                return False
            if delivery.settle():
                return True

    def __del__(self) -> None:
        member = membership_of(self._queue).member
        if getattr(self, "_undone", None) is None or member.closed or not self.is_ours():
            return
        try:
            undone, self._undone = list(self._undone), deque()
            release_all(sorted(undone, key=lambda delivery: delivery.position))
            self._own.close()
        except ShmqError:
            pass  # deleted, or its broker is closed: then there is nothing to give back


_HANDS: Final[weakref.WeakValueDictionary[tuple[str, str], _Hand]] = weakref.WeakValueDictionary()
# Reentrant: the garbage collector may drop a hand while another one is being made.
_LOCK = threading.RLock()


def _after_fork() -> None:
    global _LOCK
    _LOCK = threading.RLock()  # another thread of the parent may have held it


os.register_at_fork(after_in_child=_after_fork)


class JoinableQueue(Queue[T]):
    """A Queue that knows when the work is done.

    An object from get() stays with this process until task_done(). If the process ends before, the object goes back in
    its place: join() waits on, and another process gets it. So it counts against maxsize until it is done.

    Arguments:
        maxsize: most messages that are not done; 0 or less: as many as memory and disk hold.
        ctx: accepted, since multiprocessing's has it; nothing depends on it.

    Raises as Queue.

    Example:
        >>> from shmq.mp import JoinableQueue
        >>> todo: JoinableQueue[str] = JoinableQueue()
        >>> todo.put("a")
        >>> todo.get()
        'a'
        >>> todo.task_done()
        >>> todo.join()
    """

    _held: _Hand | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        # The standard library asks for its own class, as logging.config does of the queue of a QueueHandler.
        return multiprocessing.queues.JoinableQueue

    def _hand(self) -> _Hand:
        held = self._held
        if held is None or not held.is_ours():
            key = (membership_of(self._queue).key, self._queue.name)
            with _LOCK:
                held = _HANDS.get(key)
                if held is None or not held.is_ours():
                    held = _HANDS[key] = _Hand(self._queue)
            self._held = held
        return held

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """As Queue.get(), but the object stays with this process until task_done().

        block: False: do not wait, whatever timeout says.
        timeout: seconds to wait; None waits for ever, less than 0 is 0.

        An object that cannot be unpickled counts as got, too. Raises as Queue.get(), and ConsumerRefused in the 1,025th
        process that gets.

        Example:
            >>> from shmq.mp import JoinableQueue
            >>> todo: JoinableQueue[str] = JoinableQueue()
            >>> todo.put("a")
            >>> todo.get(timeout=1.0)
            'a'
        """
        if self._closed:
            raise self._refusal()
        try:
            return self._hand().get(wait_seconds(block, timeout))  # type: ignore[no-any-return]
        except Empty:
            self._found_nothing()
            raise
        finally:
            if self._watch is not None:
                self._lower()

    def task_done(self) -> None:
        """The oldest object that this process has got and not done is done.

        Raises ValueError if it has none.

        Example:
            >>> from shmq.mp import JoinableQueue
            >>> todo: JoinableQueue[str] = JoinableQueue()
            >>> todo.put("a")
            >>> todo.get()
            'a'
            >>> todo.task_done()
        """
        if not self._hand().done():
            raise ValueError(
                f"task_done() called too many times on {self!r}: this process has got nothing that is not done; "
                "call it once for each get(), in the process that got"
            )

    def join(self) -> None:
        """Wait until everything that was put was got and done. Raises nothing of its own.

        Example:
            >>> from shmq.mp import JoinableQueue
            >>> todo: JoinableQueue[str] = JoinableQueue()
            >>> todo.join()
        """
        try:
            return self._queue.join(timeout=LONG_WAIT)
        except Timeout:
            left = self._queue.statistics()
        if left.unsettled == 0 and users_of(self._queue)["asleep"] == 0:
            _LOG.warning(
                "join() waits for %s of queue %r, and no process holds or awaits any: have those that got them ended?",
                quantity(left.ready, "object"),
                self._queue.name,
                extra={"queue": self._queue.name},
            )
        self._queue.join()
