"""A consumer of several queues: one of each, served in turn, with one wait for all."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from shmq.engine.consumer.consumer import Consumer
from shmq.engine.handle.open_queue import membership_of
from shmq.engine.message.message import Message
from shmq.errors import Empty, ShutDown
from shmq.options import check_prefetch

if TYPE_CHECKING:
    from shmq.core.queue import Part, Row
    from shmq.engine.consumer.readiness import Readiness
    from shmq.engine.handle.open_queue import OpenQueue

__all__ = ["ConsumerOfSeveral"]

T = TypeVar("T")


class ConsumerOfSeveral(Consumer[T]):
    """The consumer that Broker.consumer() makes for more than one queue.

    Each queue has a consumer of its own, which lends the messages from there; this one chooses whose turn it is.

    Example:
        >>> queue.put("a")
        1
        >>> with broker.consumer(queue, broker.queue("other")) as consumer:
        ...     with consumer.receive(timeout=1.0) as m:
        ...         print(m.queue.name, m.body)
        jobs a
    """

    def __init__(
        self, queues: Sequence[OpenQueue], prefetch: int | None, selector: str | None, priority: int, exclusive: bool
    ) -> None:
        check_prefetch(prefetch)
        self._ended = True  # until this consumer has all its rows
        self._queue = queues[0]
        self._prefetch = prefetch
        self._of = None
        self._lock = threading.RLock()
        self._room = threading.Condition(self._lock)
        self._readiness = None
        membership_of(self._queue).live()
        self._begin(self._queue, None, None, Message, prefetch or 0, None)
        self._parts: list[Consumer[T]] = []
        try:
            for queue in queues:
                self._parts.append(Consumer(queue, None, selector, priority, exclusive, whole=self))
        except BaseException:
            for part in self._parts:
                part.close()
            raise
        self._asked = tuple(self._parts)
        self._closed = self._ended = False

    def _told(self) -> str:
        return "queues " + ", ".join(repr(part._queue.name) for part in self._parts)

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
        if self._dropped:
            asked = self._dropped.copy()
            for part in self._parts:
                part._tell_of_dropped()
            self._dropped.difference_update(asked)

    # ---- receiving ---------------------------------------------------------------------------------------------

    def _take_now(self, timeout: float | None) -> Message[T] | None:
        try:
            return self._take_any(self._asked, timeout)
        except ShutDown:
            raise self._all_shut() from None
        except Empty:
            raise Empty(
                f"nothing came to {self._told()} within the timeout", remedy="wait longer, or do other work"
            ) from None

    def _watch(self, readiness: Readiness) -> None:
        super()._watch(readiness)
        for part in self._parts:
            part._watch(readiness)  # the readiness sleeps on the parts' rows: no row is given back before it has ended

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
        """Close the consumer: unsettled messages go back in their places, uncounted. Its waiting threads get Closed.

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
