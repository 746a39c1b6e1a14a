"""The part of a queue that manages: counts, settings, shutdown, purge, deletion."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from shmq.core.queue import QueueHandle
from shmq.engine.dead_letter import SUFFIX, bury, default_name, retry_graves
from shmq.errors import Full, ShmqError
from shmq.options import QueueOptions, QueueSettings, check_timeout
from shmq.statistics import QueueStatistics

if TYPE_CHECKING:
    from shmq.core.queue import Delivery
    from shmq.engine.broker import Broker
    from shmq.engine.membership import Membership
    from shmq.engine.message import Message
    from shmq.engine.queue import Queue

__all__ = ["DRAINING", "OPEN", "STOPPED", "QueueManagement"]

OPEN, DRAINING, STOPPED = 0, 1, 2
_DEAD_LETTER_BIT = 1 << 6


class QueueManagement(QueueHandle):
    """Base of Queue."""

    if TYPE_CHECKING:
        _broker: Broker
        _membership: Membership
        _name: str

        def browse(self, *, selector: str | None) -> Iterator[Message[Any]]: ...

    # ---- look --------------------------------------------------------------------------------------------------

    @property
    def options(self) -> QueueOptions:
        """All options of this stage, as in force."""
        self._is_ready()  # or raises: deleted, closed
        settings = self._settings()
        return QueueOptions(
            maxsize=settings["maxsize"],
            slot_size=settings["slot_size"],
            temporary=settings["temporary"],
            max_deliveries=settings["max_deliveries"],
            max_deaths=settings["max_deaths"],
            checksum=settings["checksum"],
            dead_letter=self._dead_letter_name(),
        )

    def qsize(self) -> int:
        """How many messages can be received now: counted in the slots, exact at rest.

        Looks at every slot in use. Raises NotFound if the queue was deleted, Closed.

        Example:
            >>> queue.put_many(["a", "b"])
            >>> queue.qsize()
            2
        """
        return self._census()["ready"]

    def statistics(self) -> QueueStatistics:
        """A snapshot. Counts of messages are taken from the slots themselves; those since the queue exists are sums.

        Raises NotFound if the queue was deleted, Closed.

        Example:
            >>> queue.put("a")
            1
            >>> queue.statistics().ready
            1
        """
        retry_graves(self._membership)
        census, counters, crowd, settings = self._census(), self._counters(), self._crowd(), self._settings()
        age = None
        if census["oldest_ns"]:
            age = max(0.0, (time.monotonic_ns() - census["oldest_ns"]) / 1e9)
        first = census["first_position"]
        return QueueStatistics(
            name=self._name,
            ready=census["ready"],
            unsettled=census["unsettled"],
            delayed=0,
            bytes=census["bytes"],
            memory_bytes=census["memory_bytes"],
            disk_bytes=0,
            flowed=False,
            oldest_age=age,
            first_position=None if first == (1 << 64) - 1 else first,
            next_position=census["next_position"],
            consumers=crowd["consumers"],
            producers_waiting=crowd["producers_waiting"],
            shut_down=settings["shut_down"] != OPEN,
            put=counters["put"],
            delivered=counters["got"] + counters["received"],
            acked=counters["got"] + counters["acked"],
            redelivered=counters["redelivered"],
            deaths=counters["died"],
            dead_lettered=counters["dead_lettered"],
            expired=0,
            dropped=0,
        )

    def join(self, *, timeout: float | None = None) -> None:
        """Wait until nothing is ready or unsettled. What is put meanwhile is waited for, too.

        timeout: seconds; None waits for ever, 0 only looks.
        Raises Timeout, NotFound, Closed.

        Example:
            >>> queue.put("a")
            1
            >>> queue.get()
            'a'
            >>> queue.join(timeout=1.0)
        """
        timeout = check_timeout(timeout)
        retry_graves(self._membership)
        self._join(timeout)

    # ---- manage ------------------------------------------------------------------------------------------------

    def purge(self, *, selector: str | None = None) -> int:
        """Settle everything that is ready; how many. What consumers hold stays theirs, newcomers stay.

        selector: only messages for which it is true, such as "kind = 'png' AND width > 1000".
        Raises SelectorError for a malformed selector, NotFound, Closed. The memory is given back before it returns.

        Example:
            >>> queue.put_many(["a", "b"])
            >>> queue.purge()
            2
        """
        if selector is None:
            return self._purge()
        return sum(self._purge_at(message.position) for message in self.browse(selector=selector))

    def shutdown(self, *, immediate: bool = False) -> None:
        """For everybody: put raises ShutDown; takers drain, then iteration ends and get and receive raise ShutDown.

        immediate: True: takers end at once, messages stay.
        Raises NotFound, Closed. Who waits in put, get or receive is woken. Twice is fine.

        Example:
            >>> queue.put("last")
            1
            >>> queue.shutdown()
            >>> queue.get()
            'last'
            >>> queue.get()
            Traceback (most recent call last):
            shmq.errors.ShutDown: queue 'jobs' is shut down; reopen() takes it back into service
        """
        self._shut_down(STOPPED if immediate else DRAINING)

    def reopen(self) -> None:
        """Takes a queue that was shut down back into service. Raises NotFound, Closed. Twice is fine.

        Example:
            >>> queue.shutdown()
            >>> queue.reopen()
            >>> queue.put("on we go")
            1
        """
        self._shut_down(OPEN)

    def delete(self) -> None:
        """Deletes the queue. Its users get NotFound, those that wait, too. Its messages go to dead_letter if one was
        named, else with it.

        Raises Full without room for them there, and the queue stays; NotFound if it was deleted before; Closed.

        Example:
            >>> queue.delete()
            >>> broker.queue("jobs", create=False)
            Traceback (most recent call last):
            shmq.errors.NotFound: there is no queue 'jobs' in the broker ...; check the name, ...
        """
        settings = self._settings()
        if settings["given"] & _DEAD_LETTER_BIT:
            retry_graves(self._membership)
            self._shut_down(STOPPED)
            self._move_to_the_dead()
            if self._graves():
                self._shut_down(settings["shut_down"])
                raise Full(
                    f"queue {self._name!r} cannot be deleted: no room for its messages among the dead",
                    figures=f"dead_letter={self._dead_letter_name()!r}",
                    remedy="take messages out there, or purge() this queue first",
                )
        self._delete()

    def _graves(self) -> set[int]:
        """Positions of dead messages that this process holds, since there was no room for them."""
        mine = self._identity()
        return {grave.delivery.position for grave in self._membership.graves if grave.queue._identity() == mine}

    def _move_to_the_dead(self) -> None:
        position, waiting = 0, self._graves()
        while True:
            position, seen = self._browse(position)
            if seen is None:
                return
            if seen[0] in waiting:
                continue
            delivery: Delivery | None = self._steal(seen[0])
            if delivery is not None:
                bury(cast("Queue[Any]", self), delivery, "queue_deleted")

    # ---- the dead ----------------------------------------------------------------------------------------------

    def _dead_letter_name(self) -> str:
        return self._settings()["dead_letter"].decode(errors="replace") or default_name(self._name)

    def _is_for_the_dead(self) -> bool:
        """Made for the dead of another queue: from here nothing dies further."""
        settings = self._settings()
        return (
            self._name.endswith(SUFFIX)
            and not settings["given"] & _DEAD_LETTER_BIT
            and settings["max_deliveries"] == 0
            and settings["max_deaths"] == 0
        )

    def _dead_letter_queue(self) -> Queue[Any]:
        name = self._dead_letter_name()
        if self._settings()["given"] & _DEAD_LETTER_BIT:
            return self._broker.queue(name)
        try:
            return self._broker._declare(name, None, QueueSettings(max_deliveries=0, max_deaths=0), create=True)
        except ShmqError:
            return self._broker.queue(name)  # somebody made it with limits of his own: his they are
