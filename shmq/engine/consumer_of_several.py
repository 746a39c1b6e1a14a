"""A consumer of several queues: one of each, served in turn, with one wait for all."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from shmq.core.queue import receive_any
from shmq.engine.consumer import Consumer
from shmq.errors import Empty, ShutDown
from shmq.options import check_prefetch

if TYPE_CHECKING:
    from shmq.core.queue import Delivery, Part, Row
    from shmq.engine.message import Message
    from shmq.engine.queue import Queue
    from shmq.engine.readiness import Readiness

__all__ = ["ConsumerOfSeveral"]

T = TypeVar("T")


class ConsumerOfSeveral(Consumer[T]):
    """What Broker.consumer() answers for more than one queue.

    Each queue has a consumer of its own, which lends what comes from there; this one chooses whose turn it is.

    Example:
        >>> queue.put("a")
        1
        >>> with broker.consumer(queue, broker.queue("other")) as consumer:
        ...     with consumer.receive(timeout=1.0) as m:
        ...         print(m.queue.name, m.body)
        jobs a
    """

    def __init__(
        self, queues: Sequence[Queue[T]], prefetch: int | None, selector: str | None, priority: int, exclusive: bool
    ) -> None:
        check_prefetch(prefetch)
        self._closed = self._ended = True  # until all rows are ours
        self._queue = queues[0]
        self._prefetch = prefetch
        self._parts: list[Consumer[T]] = []
        self._turn = 0  # whose queue is asked first
        self._lock = threading.RLock()
        self._room = threading.Condition(self._lock)
        self._takers: set[object] = set()
        self._sleeper = None
        self._readiness = None
        self._serial = self._queue._membership.live().serial
        try:
            for queue in queues:
                part = Consumer(queue, None, selector, priority, exclusive)
                # What is settled there makes room here.
                part._lock, part._room, part._takers = self._lock, self._room, self._takers
                part._prefetch = prefetch
                self._parts.append(part)
        except BaseException:
            for part in self._parts:
                part.close()
            raise
        self._closed = self._ended = False

    def _told(self) -> str:
        return "queues " + ", ".join(repr(part._queue.name) for part in self._parts)

    def _lent(self) -> list[Delivery]:
        return [delivery for part in self._parts for delivery in part._lent()]

    def _check_service(self) -> None:
        stopped = 0
        for part in self._parts:
            try:
                part._check_service()
            except ShutDown:
                stopped += 1
        if stopped == len(self._parts):
            raise self._all_shut()

    def _all_shut(self) -> ShutDown:
        return ShutDown(f"{self._told()} are shut down", remedy="reopen() takes one back into service")

    def _tell_of_dropped(self) -> None:
        for part in self._parts:
            part._tell_of_dropped()

    # ---- receiving ---------------------------------------------------------------------------------------------

    def _take_now(self, timeout: float | None) -> Message[T]:
        deadline = None if timeout is None else time.monotonic() + timeout
        message: Message[T] | None = None
        taker = object()
        try:
            try:
                own_rows = self._enter(taker, deadline)
                if deadline is not None and self._prefetch is not None:
                    timeout = max(0.0, deadline - time.monotonic())
                self._queue._chores()
                message = self._take_from_any(own_rows, timeout)
                return message
            finally:
                self._leave(taker)
        except BaseException:
            if self._sleeper is taker:  # as there
                self._sleeper = None
            self._takers.discard(taker)
            self._take_back(message)
            raise

    def _take_from_any(self, own_rows: bool, timeout: float | None) -> Message[T]:
        try:
            found = receive_any(self._all_parts(), own_rows, self._turn, timeout)
        except ShutDown:
            raise self._all_shut() from None
        if found is None:
            raise Empty(f"nothing came to {self._told()} within the timeout", remedy="wait longer, or do other work")
        which, delivery = found
        self._turn = (which + 1) % len(self._parts)
        return self._parts[which]._lend(delivery)

    def _watch(self, readiness: Readiness | None) -> None:
        super()._watch(readiness)
        for part in self._parts:
            part._watch(readiness)  # what is settled there gives credit here

    def _all_parts(self) -> tuple[Part, ...]:
        return tuple((part._queue, part._row, part._subscription) for part in self._parts)

    def _rows(self) -> tuple[Row, ...]:
        return tuple(part._own for part in self._parts)

    def _give_row_back(self) -> None:
        for part in self._parts:
            if part._closed:
                part._give_row_back()

    # ---- closing -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Messages that are not settled go back in their places, uncounted. Its threads that wait get Closed.

        Raises nothing. Twice is fine.

        Example:
            >>> consumer = broker.consumer(queue, broker.queue("other"))
            >>> consumer.close()
            >>> consumer.closed
            True
        """
        if self._ended:
            return
        self._closed = True
        if self._readiness is not None and self._is_ours():
            self._readiness.stop()
        for part in self._parts:
            part.close()
        self._readiness, self._ended = None, True
