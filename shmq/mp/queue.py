"""Replaces multiprocessing.Queue."""

from __future__ import annotations

import multiprocessing.queues
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from uuid import uuid4

from shmq.core.handles import ends_of, is_ready, settings_of, used_of
from shmq.engine.handle.open_queue import membership_of
from shmq.errors import Closed, Empty, ShmqError
from shmq.mp.heirs import Bequest, bequeath
from shmq.mp.object_queue import ObjectQueue
from shmq.mp.process_broker import joined_broker, key_of, own_broker
from shmq.mp.watch import Watch
from shmq.options import check_queue_options

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Queue", "is_closed", "refusal_of", "told_of", "unborn", "wait_seconds"]

T = TypeVar("T")


def wait_seconds(block: bool, timeout: float | None) -> float | None:
    """Converts multiprocessing's arguments block and timeout into one: None waits for ever, 0 does not wait."""
    if not block:
        return 0.0
    if timeout is None or not hasattr(timeout, "__pos__"):
        return timeout  # what is no number the queue refuses
    return max(0.0, +timeout)


def unborn(kind: type[T]) -> T:
    """Makes an object that is being unpickled. pickle's own way asks an object for its class."""
    return kind.__new__(kind)


class Queue(Generic[T]):
    """A queue of objects for this process and those that it starts, however they are started.

    Arguments:
        maxsize: most messages; 0 or less: as many as memory and disk hold.
        ctx: accepted, since multiprocessing's has it; nothing depends on it.

    Raises ValueError for a maxsize above 4,294,967,294; Full or OutOfSpace without memory for its slots.

    Can be pickled at any time, not only while a child is being started. It is deleted when its maker has dropped it and
    every process that was started with it has ended. One that was pickled otherwise lives until its maker's end.

    Example:
        >>> from shmq.mp import Queue  # was: from multiprocessing import Queue
        >>> todo: Queue[int] = Queue(maxsize=100)
        >>> todo.put(7)
        >>> todo.get()
        7
    """

    _watch: Watch | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        # The standard library asks for its own class, as logging.config does of the queue of a QueueHandler.
        return multiprocessing.queues.Queue

    def __init__(self, maxsize: int = 0, *, ctx: Any = None) -> None:
        limit = check_queue_options({"maxsize": 0 if maxsize <= 0 else maxsize}).maxsize or 0
        self._maxsize = limit
        self._closed = False
        self._bind(ObjectQueue.make(own_broker(), f"mp-{uuid4().hex}", limit))
        self._bequest: Bequest | None = bequeath(self, self._queue)

    def _bind(self, queue: ObjectQueue) -> None:
        self._queue = queue
        self._put = queue.put
        self._get = queue.get

    def __reduce__(self) -> Any:
        return unborn, (type(self),), self.__getstate__()

    def __getstate__(self) -> tuple[Any, ...]:
        if self._bequest is None or not self._bequest.hand_over():
            self._queue.publish()
        return (membership_of(self._queue).key, self._queue.name, self._maxsize, key_of(self._queue.broker))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        key, name, self._maxsize, encryption_key = state
        self._closed = False
        self._bequest = None
        self._bind(ObjectQueue.find(joined_broker(key, encryption_key), name))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {told_of(self)}>"

    def _refusal(self) -> Closed:
        return Closed(f"{type(self).__name__} {self._queue.name} is closed", remedy="close() ends only this object")

    # ---- put and get -------------------------------------------------------------------------------------------

    def put(self, obj: T, block: bool = True, timeout: float | None = None) -> None:
        """Put an object at the end; once it has returned, the object is in shared memory and outlives this process.

        obj: whatever can be pickled.
        block: False: do not wait for room, whatever timeout says.
        timeout: seconds to wait for room; None waits for ever, less than 0 is 0.

        Raises queue.Full; ValueError after close(); ShutDown; MessageTooLarge; and what pickling raises: then nothing
        was put.

        Example:
            >>> from shmq.mp import Queue
            >>> todo: Queue[int] = Queue()
            >>> todo.put(7, timeout=1.0)
        """
        if self._closed:
            raise self._refusal()
        if block and timeout is None:
            self._put(obj)
        else:
            self._put(obj, timeout=wait_seconds(block, timeout))

    def put_nowait(self, obj: T) -> None:
        """put(obj, block=False)

        obj: whatever can be pickled. Raises as put().

        Example:
            >>> from shmq.mp import Queue
            >>> todo: Queue[int] = Queue()
            >>> todo.put_nowait(7)
        """
        self.put(obj, False)

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Take the first object. If this process dies before it has it, the object is still there.

        block: False: do not wait, whatever timeout says.
        timeout: seconds to wait; None waits for ever, less than 0 is 0.

        Raises queue.Empty; ValueError after close(); ShutDown (shut down and drained); and what unpickling raises: then
        the object is taken and lost. Interrupted by a signal's handler that raises, nothing was taken.

        Example:
            >>> from shmq.mp import Queue
            >>> todo: Queue[int] = Queue()
            >>> todo.put(7)
            >>> todo.get(timeout=1.0)
            7
        """
        if self._closed:
            raise self._refusal()
        try:
            if block and timeout is None:
                return self._get()  # type: ignore[no-any-return]
            return self._get(timeout=wait_seconds(block, timeout))  # type: ignore[no-any-return]
        except Empty:
            self._found_nothing()
            raise
        finally:
            if self._watch is not None:
                self._lower()

    def get_nowait(self) -> T:
        """get(block=False). Raises as get().

        Example:
            >>> from shmq.mp import Queue
            >>> todo: Queue[int] = Queue()
            >>> todo.put(7)
            >>> todo.get_nowait()
            7
        """
        return self.get(False)

    # ---- look --------------------------------------------------------------------------------------------------

    def qsize(self) -> int:
        """How many objects can be got now. Exact when nobody else puts or gets meanwhile. Raises nothing of its own.

        Example:
            >>> from shmq.mp import Queue
            >>> todo: Queue[int] = Queue()
            >>> todo.put(7)
            >>> todo.qsize()
            1
        """
        return self._queue.qsize()

    def empty(self) -> bool:
        """Whether there is nothing to get now; False as soon as put() has returned.

        Raises OSError after close() if anything was ever put; as with multiprocessing, only then is there what closes.

        Example:
            >>> from shmq.mp import Queue
            >>> todo: Queue[int] = Queue()
            >>> todo.empty()
            True
        """
        if self._closed and ends_of(self._queue) != (0,):
            raise OSError(str(self._refusal()))
        return not is_ready(self._queue)

    def full(self) -> bool:
        """Whether a put() would have to wait now. Raises nothing of its own.

        Without maxsize it is False where messages go to disk.

        Example:
            >>> from shmq.mp import Queue
            >>> todo: Queue[int] = Queue()
            >>> todo.full()
            False
        """
        if self._maxsize:
            return used_of(self._queue)[0] >= self._maxsize
        settings = settings_of(self._queue)
        return not settings["flows"] and self._queue.qsize() >= settings["slots"]

    # ---- event loops -------------------------------------------------------------------------------------------

    def fileno(self) -> int:
        """A descriptor for multiprocessing.connection.wait() and event loops: readable when get(False) is worth a try.

        With the last object it is not readable any more; it is when get() would raise something else. It may be for
        nothing: another process was faster. From the first call on a thread, "shmq-fileno-" and the queue's name, waits
        for that; it ends, and the descriptor is closed, with close(). A forked child asks anew: what it has inherited
        is its parent's.

        Raises ValueError after close(), OSError without descriptors, ConsumerRefused in the 1,024th process that waits.

        Example:
            >>> from multiprocessing.connection import wait
            >>> from shmq.mp import Queue
            >>> todo: Queue[int] = Queue()
            >>> todo.put(7)
            >>> wait([todo]) == [todo]
            True
        """
        if self._closed:
            raise self._refusal()
        watch = self._watch
        if watch is not None and not watch.is_ours():
            watch.close()
            watch = self._watch = None
        if watch is None:
            fresh = Watch(self, self._queue)
            self._watch = watch = self._watch or fresh  # of two threads the second one takes the first one's
            if watch is not fresh:
                fresh.close()
        return watch.fileno()

    @property
    def _reader(self) -> Self:
        """Programs wait for this of multiprocessing's queues."""
        return self

    def _found_nothing(self) -> None:
        if self._watch is not None:
            self._watch.reset()

    def _lower(self) -> None:
        """Makes the descriptor unreadable once the last object is taken, as multiprocessing's queue does."""
        watch = self._watch
        with suppress(ShmqError):  # the next get() raises this error, so the descriptor stays readable
            if watch is not None and not is_ready(self._queue):
                watch.reset()

    # ---- end ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """No put() and get() by this object any more. Others, in this process and elsewhere, go on.

        Raises nothing. Twice is fine.

        Example:
            >>> from shmq.mp import Queue
            >>> todo: Queue[int] = Queue()
            >>> todo.close()
            >>> todo.put(7)
            Traceback (most recent call last):
            shmq.errors.Closed: Queue mp-... is closed; close() ends only this object
        """
        self._closed = True
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def join_thread(self) -> None:
        """Nothing to do: there is no thread, and what was put is there. Raises nothing.

        Example:
            >>> from shmq.mp import Queue
            >>> todo: Queue[int] = Queue()
            >>> todo.put(7)
            >>> todo.close()
            >>> todo.join_thread()
        """

    def cancel_join_thread(self) -> None:
        """Nothing to do: there is no thread, and no process waits at its end. Raises nothing.

        Example:
            >>> from shmq.mp import Queue
            >>> todo: Queue[int] = Queue()
            >>> todo.cancel_join_thread()
        """

    def shutdown(self, immediate: bool = False) -> None:
        """For everybody: put() raises ShutDown; get() drains what is there, then raises ShutDown. Waiting ones wake.

        immediate: what is there is thrown away, so that get() raises at once, and nobody need do it for join() to end.
        Raises nothing of its own. Twice is fine.

        Example:
            >>> from shmq.mp import Queue
            >>> todo: Queue[int] = Queue()
            >>> todo.put(7)
            >>> todo.shutdown()
            >>> todo.get()
            7
            >>> todo.get()
            Traceback (most recent call last):
            shmq.errors.ShutDown: ...
        """
        self._queue.shutdown(immediate=immediate)
        if immediate:
            self._queue.purge()


# For SimpleQueue; no frame of Python where each object is put and got.
is_closed: Final[Callable[[Queue[Any]], bool]] = attrgetter("_closed")


def refusal_of(queue: Queue[Any]) -> Closed:
    """Makes the exception for a call after the queue's close()."""
    return queue._refusal()


def told_of(queue: Queue[Any]) -> str:
    """Returns the queue's name and state for its repr."""
    return f"{queue._queue.name}{', closed' if queue._closed else ''}"
