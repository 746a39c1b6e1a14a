"""The consumer: a subscription to a queue, and the messages that it has lent."""

from __future__ import annotations

import logging
import threading
import warnings
import weakref
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from shmq.core import clock
from shmq.core.handles import directory_entry, is_ready, open_row, settings_of
from shmq.core.queue import STOPPED, Drop, Subscription, if_free
from shmq.engine.dead_lettering.outcome import retry
from shmq.engine.dead_lettering.upkeep import do_upkeep
from shmq.engine.handle.failure import dropped_text
from shmq.engine.handle.open_queue import membership_of, same_queue
from shmq.engine.message.lender import Lender
from shmq.engine.message.message import Message
from shmq.engine.message.selection import loaded
from shmq.errors import Closed, Empty, NotFound, SettlementError, ShmqError, ShutDown
from shmq.options import check_bool, check_consumer_priority, check_limit, check_prefetch, check_timeout
from shmq.quantity import quantity
from shmq.wait_time import CREDIT_LOOK, LONG_WAIT

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from shmq.core.queue import ConsumerHandle, Delivery, Part, Row
    from shmq.engine.consumer.readiness import Readiness
    from shmq.engine.handle.open_queue import OpenQueue
    from shmq.engine.membership.membership import Membership

__all__ = ["Consumer", "forget_left", "implicit_consumer"]

T = TypeVar("T")

_LOG = logging.getLogger("shmq.broker")
_LOOPS: Final = count(1)  # a number for each loop over a consumer: what was lent in it goes back when it is left


class Consumer(Lender, Generic[T]):
    """A subscription to a queue, or to several. Iterating yields messages until shutdown; then the loop ends.

    Threads may share it, a fork does not: in a child its calls raise SettlementError. Unsettled messages that it has
    lent go back in their places when it is closed or its process ends: uncounted, but a death counts.

    Example:
        >>> queue.put_many(["a", "b"])
        >>> queue.shutdown()
        >>> for m in queue.consumer():
        ...     with m:
        ...         print(m.body)
        a
        b
    """

    if TYPE_CHECKING:  # these methods are in C, see native/python/py_consumer.c

        def _receive(self, timeout: float | None, /) -> Message[T]: ...
        def _take(self, timeout: float | None, /) -> Message[T] | None: ...
        def _take_any(self, parts: tuple[ConsumerHandle, ...], timeout: float | None, /) -> Message[T] | None: ...

    def __init__(
        self,
        queue: OpenQueue,
        prefetch: int | None = None,
        selector: str | None = None,
        priority: int = 0,
        exclusive: bool = False,
        implicit: bool = False,
        whole: Consumer[T] | None = None,
    ) -> None:
        check_prefetch(prefetch)
        check_bool(exclusive, "exclusive")
        self._ended = True  # until this consumer has its row
        self._queue = queue
        self._prefetch = prefetch
        self._of: Consumer[T] | None = whole  # the consumer of several queues that this one is a part of
        chosen = loaded(selector)
        self._subscription = Subscription(chosen)
        # Reentrant: a signal handler may close the consumer in the very thread that is about to wait. Not taken through
        # `_room`, for a handler that raises in its __exit__ would leave it taken.
        self._lock = threading.RLock()
        self._room = threading.Condition(self._lock)
        self._readiness: Readiness | None = None  # of fileno()
        membership_of(queue).live()
        self._own = open_row(queue, check_consumer_priority(priority), exclusive, implicit, chosen)
        self._begin(queue, self._own, self._subscription, Message, prefetch or 0, whole)
        self._closed = self._ended = False

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self._in_hand())} unsettled"
        return f"<Consumer of {self._told()}, {state}>"

    def _told(self) -> str:
        """Names the queues of this consumer, for error texts."""
        return f"queue {self._queue.name!r}"

    def _is_left(self) -> bool:
        """Says whether its queue was deleted and it has no message in hand."""
        if self._in_hand() or self._takers or self._closed:
            return False
        try:
            is_ready(self._queue)
        except NotFound:
            return True
        except ShmqError:
            return False
        return False

    @property
    def closed(self) -> bool:
        """True after close(), or when its broker was closed."""
        return self._closed or membership_of(self._queue).closed

    # ---- receiving ---------------------------------------------------------------------------------------------

    def receive(self, *, timeout: float | None = None) -> Message[T]:
        """Borrow the first message until it is settled.

        timeout: seconds; None waits for ever, 0 does not wait.
        Raises Empty, ShutDown (shut down and drained), NotFound, Closed; SettlementError once, after messages of this
        consumer were dropped unsettled (they went back, counted). A signal handler's exception is raised as it is.

        Example:
            >>> queue.put("a")
            1
            >>> with consumer.receive(timeout=1.0) as m:
            ...     print(m.body)
            a
        """
        return self._receive(timeout)._delivered

    def _receive_slow(self, timeout: float | None) -> Message[T]:
        """Receives where other work is to be done besides. The core calls it, and does the rest itself."""
        timeout = check_timeout(timeout)
        self._check()
        self._tell_of_dropped()
        deadline = None if timeout is None else clock.monotonic() + timeout
        message: Message[T] | None = None
        try:
            while message is None:
                do_upkeep(membership_of(self._queue))
                left = None if deadline is None else max(0.0, deadline - clock.monotonic())
                message = self._take_now(left)
                if message is None:
                    self._wait_for_credit(deadline)
            if self._readiness is not None and not self._can_take:
                self._readiness.reset()  # the credit is used up by this message
            return message
        except Empty:
            if self._readiness is not None:
                self._readiness.reset()
            raise
        except BaseException:
            message = None  # the caller never sees it, so it goes back: the traceback must not keep it
            raise

    def _take_now(self, timeout: float | None) -> Message[T] | None:
        """Takes a message if the consumer has credit; None: it has none."""
        return self._take(timeout)

    def receive_many(self, limit: int, *, timeout: float | None = None) -> list[Message[T]]:
        """Wait for the first message, then take what is there, at most `limit`; [] after the timeout.

        limit: 1 or more. With a prefetch no more than its credit are taken.
        timeout: seconds to wait for the first one; None waits for ever, 0 does not wait.
        Raises ShutDown (shut down and drained), NotFound, Closed, ValueError for an unfit limit; SettlementError as
        receive().

        Example:
            >>> queue.put_many(["a", "b", "c"])
            >>> for m in consumer.receive_many(10, timeout=0):
            ...     with m:
            ...         print(m.body)
            a
            b
            c
        """
        check_limit(limit)
        return self._receive_many(limit, check_timeout(timeout))._delivered

    def __iter__(self) -> Iterator[Message[T]]:
        loop = next(_LOOPS)
        left = Drop(
            _loop_left, (self, loop)
        )  # no code of the loop's own: what a handler raises in one that is left is lost
        try:
            while True:
                try:
                    m = self._receive(None)
                except ShutDown:
                    return
                m._loop = loop
                yield m._delivered
                del m
        finally:
            del left  # by break: what is in hand goes back, uncounted

    def fileno(self) -> int:
        """Return a descriptor for select, epoll and event loops: readable when receive(timeout=0) is worth a try.

        It stays readable until a receive raises Empty or the prefetch is used up, and is readable when receive would
        raise something else. From the first call on a thread, "shmq-fileno-" and the queue's name, waits for that; it
        ends, and the descriptor is closed, with close(). Nobody else reads or writes it, nor uses it after a fork.

        Raises Closed, SettlementError in a child, OSError without descriptors, ConsumerRefused.

        Example:
            >>> import select
            >>> queue.put("a")
            1
            >>> select.select([consumer], [], [])[0] == [consumer]
            True
            >>> with consumer.receive(timeout=0) as m:
            ...     print(m.body)
            a
        """
        from shmq.engine.consumer.readiness import Readiness  # few programs need it, and all import this module

        self._check()
        with self._lock:
            readiness = self._readiness
            if readiness is None:
                own_row = not self._sleeping
                try:
                    self._sleeping = True
                    membership, taker = membership_of(self._queue), partial(_taking, weakref.ref(self))
                    readiness = Readiness(taker, membership, self._queue.name, own_row, self._rows())
                    self._watch(readiness)
                    self._watched = True
                except BaseException:
                    if own_row:
                        self._sleeping = False
                    raise
            return readiness.fileno()

    def _watch(self, readiness: Readiness) -> None:
        self._readiness = readiness

    def _all_parts(self) -> tuple[Part, ...]:
        return ((self._queue, self._row, self._subscription),)

    def _rows(self) -> tuple[Row, ...]:
        return (self._own,)

    def _give_row_back(self) -> None:
        """Frees the consumer's row, unless a thread still takes messages: then no other consumer may get the row."""
        with self._lock:
            if self._takers:
                return
        self._own.close()

    def _credit_came(self) -> None:
        """Wakes a thread that waits for credit: called when a message was settled or dropped."""
        with self._lock:
            self._room.notify()
        if self._readiness is not None:
            self._readiness.has_credit()

    def _wait_for_credit(self, deadline: float | None) -> None:
        began, said = clock.monotonic(), False
        self._starved = True  # from now on this consumer is told when credit comes back
        while not self._can_take:
            now, takers = clock.monotonic(), self._takers
            places = sorted(m.position for m in self._in_hand())
            if deadline is not None and now >= deadline:
                raise Empty(
                    f"this consumer of {self._told()} has all that its prefetch allows",
                    figures=f"{len(places)} unsettled, {quantity(takers, 'thread')} waiting, prefetch={self._prefetch}",
                    remedy="settle some, or raise prefetch",
                )
            if not said and now - began >= LONG_WAIT and len(places) >= (self._prefetch or 0):
                said = True
                _LOG.warning(
                    "a consumer of %s takes nothing more: %d messages unsettled (positions %s), prefetch=%d; "
                    "settle some, or raise prefetch",
                    self._told(),
                    len(places),
                    ", ".join(map(str, places[:10])),
                    self._prefetch,
                    extra={"queue": self._queue.name},
                )
            with self._lock:
                if not self._can_take:
                    # By the slice, too: a message that is dropped in the middle of all this cannot always notify.
                    self._room.wait(
                        min(CREDIT_LOOK, LONG_WAIT) if deadline is None else min(CREDIT_LOOK, LONG_WAIT, deadline - now)
                    )
            self._check()
            self._check_service()

    def _check_service(self) -> None:
        """Raises what a look at the queue would raise."""
        is_ready(self._queue)  # or raises: deleted, closed
        if settings_of(self._queue)["shut_down"] == STOPPED:
            raise ShutDown(f"queue {self._queue.name!r} is shut down", remedy="reopen() takes it back into service")

    def _check(self) -> None:
        if self._closed:
            raise Closed(f"this consumer of {self._told()} is closed", remedy="make a new one")
        member = membership_of(self._queue).member
        if member.forked or member.serial != self._serial:
            raise SettlementError(
                f"this consumer of {self._told()} belongs to the parent process",
                remedy="make a consumer of its own in each process",
            )

    def _tell_of_dropped(self) -> None:
        if self._dropped:
            told = self._dropped.copy()
            error = SettlementError(
                dropped_text(len(told), self._queue.name),
                figures="positions " + ", ".join(map(str, sorted(told)[:10])),
                remedy="use `with m:` or `m.ack()`",
            )
            self._dropped.difference_update(
                told
            )  # last: what a signal handler keeps from being said now is said by the next call
            raise error

    # ---- what is in hand ---------------------------------------------------------------------------------------

    def _forgot(self, delivery: Delivery) -> None:
        """Notes that a message object was dropped unsettled: the next call raises this, and the attempt counts.

        It is in no hand already. Called again when a signal handler has ended it half-way.
        """
        try:
            back = self._is_ours() and (retry(self._queue, delivery, "dropped unsettled") or delivery.ended)
        except ShmqError as error:
            _LOG.debug("a message that was dropped went back: %s", error)
            back = True
        whole = self._of or self
        if back:
            self._dropped.add(delivery.position)
        if back and whole is not self:
            whole._dropped.add(delivery.message_id)  # so that the whole consumer asks its parts
        if_free(whole._lock, whole._room.notify)  # else the thread that has it looks again within half a second
        if whole._readiness is not None:
            whole._readiness.has_credit()

    def close(self) -> None:
        """Close the consumer: unsettled messages go back in their places, uncounted. Its waiting threads get Closed.

        Raises nothing. Twice is fine.

        Example:
            >>> queue.put("a")
            1
            >>> m = consumer.receive()
            >>> consumer.close()
            >>> queue.qsize()
            1
        """
        if self._ended:
            return
        self._closed = True  # all of the rest can be done again: a handler that raises may end it anywhere
        readiness, member = self._readiness, membership_of(self._queue).member
        if member.forked or member.serial != self._serial:
            self._forget()
            self._readiness, self._ended = None, True
            return
        if readiness is not None:
            readiness.stop()
        if member.closed:
            self._forget()
        else:
            self._give_back(0)  # at once: a waiting consumer is to get the first message first
            with self._lock:
                self._room.notify_all()
            self._own.closing()  # its threads that wait get Closed
            if readiness is not None and not readiness.join():
                self._own.keep()  # a thread may sleep there: the row stays this process's until its end
            self._give_row_back()
        self._readiness, self._ended = None, True
        if self._dropped:
            warnings.warn(
                f"{dropped_text(len(self._dropped), self._queue.name)}. Use `with m:` or `m.ack()`",
                ResourceWarning,
                stacklevel=2,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a Consumer belongs to its process and cannot be pickled; pass the Queue")

    def __del__(self) -> None:
        if not getattr(self, "_ended", True):
            try:
                self.close()
            except ShmqError as error:
                _LOG.debug("a consumer could not be closed: %s", error)


def _loop_left(left: tuple[Consumer[T], int]) -> None:
    consumer, loop = left
    consumer._give_back(loop)


class _Taking:
    """Adapts a consumer to the Taker that its Readiness asks."""

    def __init__(self, consumer: Consumer[Any]) -> None:
        self._consumer = consumer

    @property
    def takers(self) -> int:
        return self._consumer._takers

    @property
    def can_take(self) -> bool:
        return self._consumer._can_take

    def parts(self) -> tuple[Part, ...]:
        return self._consumer._all_parts()


def _taking(consumer: weakref.ref[Consumer[Any]]) -> _Taking | None:
    """The consumer; None: it was collected as garbage."""
    found = consumer()
    return None if found is None else _Taking(found)


def implicit_consumer(queue: OpenQueue) -> Consumer[Any]:
    """Returns the consumer of this process that lends the messages of Queue.receive."""
    membership = membership_of(queue)
    key = directory_entry(queue)
    with membership.lock:
        member = membership.live()  # here: a close forgets all consumers under the lock
        found = membership.consumers.get(key)
        if not isinstance(found, Consumer) or found.closed or found._serial != member.serial:
            # An unpickled handle keeps one on the broker, and the consumer would keep both from their end. A message
            # that a caller receives by its own handle is that handle's (py_batch.c).
            found = membership.consumers[key] = Consumer(same_queue(queue), implicit=True)
    return found


def forget_left(membership: Membership) -> None:
    """Drops the implicit consumers of deleted queues that have nothing in hand: they keep the queue's memory."""
    for key, consumer in list(membership.consumers.items()):
        if isinstance(consumer, Consumer) and consumer._is_left():
            with membership.lock:
                if membership.consumers.get(key) is consumer:
                    del membership.consumers[key]
            consumer.close()
