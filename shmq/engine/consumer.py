"""A subscription: what it has lent, and what becomes of it."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from shmq.core.queue import Drop, Subscription, give_back, if_free
from shmq.engine.failure import dropped_text
from shmq.engine.message import Message
from shmq.engine.queue_management import STOPPED
from shmq.engine.selection import loaded
from shmq.errors import Closed, Empty, NotFound, SettlementError, ShmqError, ShutDown
from shmq.options import check_bool, check_consumer_priority, check_limit, check_prefetch, check_timeout
from shmq.quantity import quantity

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from shmq.core.queue import Delivery, Part, Row
    from shmq.engine.queue import Queue
    from shmq.engine.readiness import Readiness

__all__ = ["Consumer"]

T = TypeVar("T")

_LOG = logging.getLogger("shmq.broker")
_STALLED = 5.0  # seconds at its prefetch before a consumer says so


class Consumer(Generic[T]):
    """A subscription to a queue, or to several. Iterating yields messages until shutdown; then the loop ends.

    Shared by threads, not by fork: in a child its calls raise SettlementError. What it has lent and nobody settled goes
    back in its place, uncounted, when it is closed or its process ends; a death counts.

    Example:
        >>> queue.put_many("ab")
        >>> queue.shutdown()
        >>> for m in queue.consumer():
        ...     with m:
        ...         print(m.body)
        a
        b
    """

    def __init__(
        self,
        queue: Queue[T],
        prefetch: int | None = None,
        selector: str | None = None,
        priority: int = 0,
        exclusive: bool = False,
        implicit: bool = False,
    ) -> None:
        check_prefetch(prefetch)
        check_bool(exclusive, "exclusive")
        self._closed = self._ended = True  # until the row is ours
        self._queue = queue
        self._prefetch = prefetch
        self._held: dict[int, tuple[Delivery, object]] = {}  # position -> the current delivery and its right to settle
        self._dropped: set[int] = set()  # positions
        self._subscription = Subscription(loaded(selector))
        # Reentrant: a signal handler may close the consumer in the very thread that is about to wait. Not taken through
        # `_room`, for a handler that raises in its __exit__ would leave it taken.
        self._lock = threading.RLock()
        self._room = threading.Condition(self._lock)
        self._takers: set[object] = set()  # one of each thread that is taking a message
        self._sleeper: object | None = None  # who of them, or of `_readiness`, sleeps on the consumer's own row
        self._readiness: Readiness | None = None  # of fileno()
        member = queue._membership.live()
        self._own = queue._row_open(check_consumer_priority(priority), exclusive, implicit)
        self._row = self._own.number
        self._serial = member.serial
        self._closed = self._ended = False

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self._lent())} unsettled"
        return f"<Consumer of {self._told()}, {state}>"

    def _told(self) -> str:
        """Of what it is a consumer, for people."""
        return f"queue {self._queue.name!r}"

    def _is_left(self) -> bool:
        """Its queue was deleted, and it has nothing in hand."""
        if self._held or self._takers or self._closed:
            return False
        try:
            self._queue._is_ready()
        except NotFound:
            return True
        except ShmqError:
            return False
        return False

    def _lent(self) -> list[Delivery]:
        """What it has in hand."""
        return [delivery for delivery, _ in list(self._held.values())]

    @property
    def closed(self) -> bool:
        """True after close(), or when its broker was closed."""
        return self._closed or self._queue._membership.closed

    # ---- receiving ---------------------------------------------------------------------------------------------

    def receive(self, *, timeout: float | None = None) -> Message[T]:
        """Borrow the first message until it is settled.

        timeout: seconds; None waits for ever, 0 does not wait.
        Raises Empty, ShutDown (shut down and drained), NotFound, Closed; SettlementError once, after messages of this
        consumer were dropped unsettled (they went back, counted). What a signal handler raises is raised as it is.

        Example:
            >>> queue.put("a")
            1
            >>> with consumer.receive(timeout=1.0) as m:
            ...     print(m.body)
            a
        """
        timeout = check_timeout(timeout)
        self._check()
        self._tell_of_dropped()
        return self._take(timeout)

    def _take(self, timeout: float | None) -> Message[T]:
        message: Message[T] | None = None
        try:
            message = self._take_now(timeout)
            if self._readiness is not None and not self._can_take():
                self._readiness.reset()  # that was the last one within the credit
            return message
        except Empty:
            if self._readiness is not None:
                self._readiness.reset()
            raise
        except BaseException:
            self._take_back(message)
            raise

    def _take_now(self, timeout: float | None) -> Message[T]:
        deadline = None if timeout is None else time.monotonic() + timeout
        message: Message[T] | None = None
        taker = object()
        try:
            try:
                own_row = self._enter(taker, deadline)
                if deadline is not None and self._prefetch is not None:
                    timeout = max(0.0, deadline - time.monotonic())
                self._queue._chores()
                row = self._row if own_row else 0
                message = self._lend(self._queue._receive(self._row, row, timeout, self._subscription))
                return message
            finally:
                self._leave(taker)
        except BaseException:
            if self._sleeper is taker:  # _leave() may have been kept from it; between these lines no handler runs
                self._sleeper = None
            self._takers.discard(taker)
            self._take_back(message)
            raise

    def _take_back(self, *messages: Message[T] | None) -> None:
        """A signal handler has raised behind the taking: the caller never sees them, so they were not delivered.

        Raises nothing of its own: what the handler raised is what the caller is to see.
        """
        taken = [m for m in messages if m is not None]
        for lender in {cast("Consumer[T]", m._consumer) for m in taken}:
            with contextlib.suppress(ShmqError):  # they may have been taken away, or its broker closed
                lender._give_back({m.position: lender._right(m.position) for m in taken if m._consumer is lender})

    def receive_many(self, limit: int, *, timeout: float | None = None) -> list[Message[T]]:
        """Wait for the first message, then take what is there, at most `limit`; [] after the timeout.

        limit: 1 or more. With a prefetch no more than its credit are taken.
        timeout: seconds to wait for the first one; None waits for ever, 0 does not wait.
        Raises ShutDown (shut down and drained), NotFound, Closed, ValueError for an unfit limit; SettlementError as
        receive().

        Example:
            >>> queue.put_many("abc")
            >>> for m in consumer.receive_many(10, timeout=0):
            ...     with m:
            ...         print(m.body)
            a
            b
            c
        """
        check_limit(limit)
        messages: list[Message[T]] = []
        try:
            messages.append(self.receive(timeout=timeout))
            while len(messages) < limit and (self._prefetch is None or self._has_credit(self._prefetch)):
                messages.append(self._take(0))
        except Empty:
            pass
        except ShmqError:
            if not messages:
                raise  # else the next call meets the reason again
        except BaseException:
            self._take_back(*messages)  # interrupted: nothing was taken
            raise
        return messages

    def __iter__(self) -> Iterator[Message[T]]:
        mine: dict[tuple[Consumer[T], int], object] = {}  # who has lent it, and the position -> right to settle
        left = Drop(_loop_left, mine)  # no code of the loop's own: what a handler raises in one that is left is lost
        try:
            while True:
                try:
                    m = self.receive()
                except ShutDown:
                    return
                for key in [key for key, right in mine.items() if key[0]._right(key[1]) is not right]:
                    del mine[key]
                lender = cast("Consumer[T]", m._consumer)
                mine[lender, m.position] = lender._right(m.position)
                yield m
                del m
        finally:
            del left  # by break: what is in hand goes back, uncounted

    def fileno(self) -> int:
        """A descriptor for select, epoll and event loops: readable when receive(timeout=0) is worth a try.

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
        from shmq.engine.readiness import Readiness  # few need it, and all import this module

        self._check()
        with self._lock:
            if self._readiness is None:
                own_row = self._sleeper is None
                try:
                    self._sleeper = self._sleeper or Readiness
                    self._watch(Readiness(self, self._queue._membership, self._queue.name, own_row, self._rows()))
                except BaseException:
                    if own_row:
                        self._sleeper = None
                    raise
            return cast(Readiness, self._readiness).fileno()

    def _watch(self, readiness: Readiness | None) -> None:
        self._readiness = readiness

    def _all_parts(self) -> tuple[Part, ...]:
        return ((self._queue, self._row, self._subscription),)

    def _rows(self) -> tuple[Row, ...]:
        return (self._own,)

    def _can_take(self) -> bool:
        return self._prefetch is None or self._has_credit(self._prefetch)

    def _right(self, position: int) -> object:
        return self._held.get(position, (None, None))[1]

    def _enter(self, taker: object, deadline: float | None) -> bool:
        """Begin to take a message, within the credit; True: this thread sleeps on the consumer's own row."""
        with self._lock:
            if self._prefetch is not None:
                self._wait_for_credit(self._prefetch, deadline)
            self._takers.add(taker)
            if self._sleeper is None:
                self._sleeper = taker
            return self._sleeper is taker

    def _leave(self, taker: object) -> None:
        with self._lock:
            self._takers.discard(taker)
            if self._sleeper is taker:
                self._sleeper = None
            if self._prefetch is not None:
                self._credit_came()
        if self._closed:
            self._give_row_back()

    def _give_row_back(self) -> None:
        """The last one out: while a thread of ours takes a message, nobody else may get the row's name."""
        with self._lock:
            if self._takers:
                return
        self._own.close()

    def _credit_came(self) -> None:
        """Under `_lock`: one that waits for credit looks again."""
        self._room.notify()
        if self._readiness is not None:
            self._readiness.has_credit()

    def _has_credit(self, prefetch: int) -> bool:
        """What was taken away from it (by its lease, a purge, drop_oldest) gives its credit back."""
        lent = self._lent()
        if len(lent) + len(self._takers) < prefetch:
            return True
        return sum(delivery.ours() for delivery in lent) + len(self._takers) < prefetch

    def _wait_for_credit(self, prefetch: int, deadline: float | None) -> None:
        began, said = time.monotonic(), False
        while not self._has_credit(prefetch):
            now, positions = time.monotonic(), sorted(delivery.position for delivery in self._lent())
            if deadline is not None and now >= deadline:
                raise Empty(
                    f"this consumer of {self._told()} has all that its prefetch allows",
                    figures=f"{len(positions)} unsettled, {quantity(len(self._takers), 'thread')} waiting, "
                    f"prefetch={prefetch}",
                    remedy="settle some, or raise prefetch",
                )
            if not said and now - began >= _STALLED and len(positions) >= prefetch:
                said = True
                _LOG.warning(
                    "a consumer of %s takes nothing more: %d messages unsettled (positions %s), prefetch=%d",
                    self._told(),
                    len(positions),
                    ", ".join(map(str, positions[:10])),
                    prefetch,
                    extra={"queue": self._queue.name},
                )
            # By the slice, too: a message that is dropped in the middle of all this cannot always notify.
            self._room.wait(min(0.5, _STALLED) if deadline is None else min(0.5, _STALLED, deadline - now))
            self._check()
            self._check_service()

    def _check_service(self) -> None:
        """Raises what a look at the queue would raise."""
        self._queue._is_ready()  # or raises: deleted, closed
        if self._queue._settings()["shut_down"] == STOPPED:
            raise ShutDown(f"queue {self._queue.name!r} is shut down", remedy="reopen() takes it back into service")

    def _is_ours(self) -> bool:
        """Its broker is open, and this is the process that made it."""
        member = self._queue._membership.member
        return not member.closed and not member.forked and member.serial == self._serial

    def _check(self) -> None:
        if self._closed:
            raise Closed(f"this consumer of {self._told()} is closed", remedy="make a new one")
        member = self._queue._membership.member
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
            self._dropped -= told  # last: what a signal handler keeps from being said now is said by the next call
            raise error

    # ---- what is in hand ---------------------------------------------------------------------------------------

    def _lend(self, delivery: Delivery) -> Message[T]:
        message = Message._of_delivery(self._queue, self, delivery)
        self._held[delivery.position] = (delivery, object())
        if self._closed:  # by another thread, which may have given back before this one came
            self._give_back()
            self._check()
        return message

    def _holds(self, message: Message[T]) -> bool:
        """Neither settled nor given back; in a child of its process, too."""
        held = self._held.get(message._position)
        return held is not None and held[0] is message._delivery and not self._queue._membership.closed

    def _claim(self, message: Message[T], outcome: str) -> None:
        """The right to settle a message goes to one thread, once. Raises SettlementError."""
        held = self._held.get(message._position)
        if message._outcome is None and held is not None and held[0] is message._delivery:
            member = self._queue._membership.member
            if member.forked or member.serial != self._serial:
                raise SettlementError(
                    f"message {message.id} of queue {self._queue.name!r} belongs to the parent process",
                    remedy="settle it there, or receive in each process for itself",
                )
            if not member.closed and self._held.pop(message._position, None) is held:
                if self._prefetch is not None:
                    with self._lock:
                        self._credit_came()
                return
        raise SettlementError(
            f"message {message.id} of queue {self._queue.name!r} {message._fate()}; it cannot be {outcome}",
            figures=f"position {message.position}",
            remedy="settle each message once, while its consumer is open",
        )

    def _refuse(self, position: int) -> None:
        """Never again the message there: it is released for others."""
        with self._lock:
            self._subscription.refuse(self._queue, position)

    def _forgot(self, delivery: Delivery) -> None:
        """A message object was dropped unsettled: the next call says so, and the attempt counts.

        It is out of `_held` already. Called again when a signal handler has ended it half-way.
        """
        try:
            back = self._is_ours() and (self._queue._retry(delivery, "dropped unsettled") or delivery.ended)
        except ShmqError as error:
            _LOG.debug("a message that was dropped went back: %s", error)
            back = True
        if back:
            self._dropped.add(delivery.position)
        if self._prefetch is not None:
            if_free(self._lock, self._credit_came)  # else whoever has it looks again within half a second

    def _give_back(self, rights: dict[int, object] | None = None) -> None:
        give_back(self._held, rights)  # at once, for who waits is to get the first one first

    def close(self) -> None:
        """Messages that are not settled go back in their place, uncounted. Its threads that wait get Closed.

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
        readiness, member = self._readiness, self._queue._membership.member
        if member.forked or member.serial != self._serial:
            self._held.clear()
            self._readiness, self._ended = None, True
            return
        if readiness is not None:
            readiness.stop()
        if member.closed:
            self._held.clear()
        else:
            self._give_back()
            with self._lock:
                self._room.notify_all()
            self._own.closing()  # its threads that wait get Closed
            if readiness is not None and not readiness.join():
                self._own.keep()  # somebody may sleep there: nobody else gets it before this process ends
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


def _loop_left(lent: dict[tuple[Consumer[T], int], object]) -> None:
    for lender in {lender for lender, _ in lent}:
        lender._give_back({position: right for (one, position), right in lent.items() if one is lender})
