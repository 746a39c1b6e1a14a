"""The part of a queue that manages: counts, settings, shutdown, purge, deletion."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from shmq.core import clock
from shmq.core.handles import is_ready, settings_of
from shmq.core.queue import DRAINING, OPEN, SETTINGS, STOPPED, decode_settings, encode_settings, oldest_ready
from shmq.engine.dead_lettering.alert import tell_alerts, tell_alerts_of
from shmq.engine.dead_lettering.dead_letter import dead_letter_name, default_name
from shmq.engine.dead_lettering.deletion import delete
from shmq.engine.dead_lettering.outcome import dead_letter_found, dead_letter_poisoned
from shmq.engine.dead_lettering.upkeep import do_upkeep, put_in_order
from shmq.engine.handle.failure import options_mismatch
from shmq.engine.handle.max_memory import warn_of_excess
from shmq.engine.handle.open_queue import OpenQueue, membership_of
from shmq.engine.message.selection import loaded
from shmq.engine.queue.transfer import transfer
from shmq.errors import SelectorError, Timeout
from shmq.options import QueueOptions, QueueSettings, as_given, check_bool, check_queue_options, check_timeout
from shmq.options.signature import shows
from shmq.wait_time import DEAD_LETTER_LOOK

if TYPE_CHECKING:
    from typing import Unpack

    from shmq.core.queue import Delivery
    from shmq.engine.membership.membership import Membership
    from shmq.engine.message.message import Message
    from shmq.engine.queue.queue import Queue
    from shmq.statistics import QueueStatistics

__all__ = ["QueueManagement", "check_dead_letter", "given_options", "statistics_of"]


def check_dead_letter(membership: Membership, name: str | None, target: object) -> None:
    """Checks the dead_letter of the queue `name`. Raises ValueError for that queue itself or another broker's."""
    if name is not None and name in (target, getattr(target, "name", None)):
        raise ValueError(
            f"dead_letter={name!r}: messages that die in queue {name!r} would come back to it; name another queue, or "
            f"leave it out for {default_name(name)!r}"
        )
    if isinstance(target, OpenQueue) and membership_of(target) is not membership:
        raise ValueError(f"dead_letter={target!r}: a queue of another broker; name one of this broker")


_AS_IN_MULTIPROCESSING: Final = "; a shmq.mp.Queue has what those of multiprocessing have"
_ELSEWHERE: Final = {  # what other queues have, and how it is done here
    "empty": f"use queue.qsize() == 0, or get(timeout=0), which raises Empty{_AS_IN_MULTIPROCESSING}",
    "full": f"use put(..., timeout=0), which raises Full{_AS_IN_MULTIPROCESSING}",
    "get_nowait": f"use get(timeout=0){_AS_IN_MULTIPROCESSING}",
    "put_nowait": f"use put(..., timeout=0){_AS_IN_MULTIPROCESSING}",
    "task_done": "use receive(), and ack() of the message; a shmq.mp.JoinableQueue has it",
    "close": f"a Queue needs no close; its broker has one{_AS_IN_MULTIPROCESSING}",
    "join_thread": f"a put is done when it returns{_AS_IN_MULTIPROCESSING}",
    "cancel_join_thread": f"a put is done when it returns{_AS_IN_MULTIPROCESSING}",
    "maxsize": "use queue.options['maxsize']",
    "peek": "use browse(), which only looks",
    "clear": "use purge()",
    "ack": "use receive(), and ack() of the message",
}


class QueueManagement(OpenQueue):
    """The managing part of Queue, which derives from this class."""

    if TYPE_CHECKING:

        def browse(self, *, selector: str | None) -> Iterator[Message[Any]]: ...
        def _free(self, selector: str | None) -> Iterator[Message[Any]]: ...

    if not TYPE_CHECKING:  # for type checkers they are not there at all

        def __getattr__(self, name: str) -> Any:
            hint = f"; {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            raise AttributeError(f"a Queue has no attribute {name!r}{hint}", name=name, obj=self)

        def __len__(self) -> int:
            raise TypeError("a Queue has no len(); qsize() counts its messages")

        def __bool__(self) -> bool:
            return True

        def __iter__(self) -> Iterator[Any]:
            raise TypeError("a Queue is no iterable; queue.consumer() takes, queue.browse() looks")

    # ---- look --------------------------------------------------------------------------------------------------

    @property
    def options(self) -> QueueOptions:
        """The values of all options that are in force."""
        self._enter()  # or raises: deleted, closed
        options = as_given(decode_settings(self._settings()))
        options["dead_letter"] = dead_letter_name(self)
        return options

    def qsize(self) -> int:
        """Count the messages that can be received now: exact while no process puts or takes.

        Looks at slots in which something changed since this process counted last; the first time at all in use.
        Raises NotFound if the queue was deleted, Closed.

        Example:
            >>> queue.put_many(["a", "b"])
            >>> queue.qsize()
            2
        """
        do_upkeep(self._membership)  # a message that came back to a deleted queue may have to come here
        return self._ready()

    def statistics(self) -> QueueStatistics:
        """Take a snapshot of the queue. Counts of messages are read from the slots; those since its creation are sums.

        Raises NotFound if the queue was deleted, Closed.

        Example:
            >>> queue.put("a")
            1
            >>> queue.statistics().ready
            1
        """
        put_in_order(self._membership)
        tell_alerts_of(self)
        return self._statistics()

    def _statistics(self) -> QueueStatistics:
        from shmq.statistics import QueueStatistics  # here: most programs never look

        self._enter()  # or raises: deleted, closed
        census, counters, users, settings = self._census(), self._counters(), self._waiters(), self._settings()
        oldest = oldest_ready(self, census)
        age = self._membership.member.age_ns(oldest) / 1e9 if oldest else None
        first = census["first_position"]
        return QueueStatistics(
            name=self._name,
            ready=census["ready"],
            unsettled=census["unsettled"],
            delayed=census["delayed"],
            bytes=census["bytes"],
            memory_bytes=census["memory_bytes"],
            reserved_bytes=census["reserved_bytes"],
            disk_bytes=census["disk_bytes"],
            flowed=census["on_disk"] != 0,
            oldest_age=age,
            first_position=None if first == (1 << 64) - 1 else first,
            next_position=census["next_position"],
            consumers=users["consumers"],
            producers_waiting=users["producers_waiting"],
            shut_down=settings["shut_down"] != OPEN,
            put=counters["put"],
            delivered=counters["got"] + counters["received"],
            acked=counters["got"] + counters["acked"],
            redelivered=counters["redelivered"],
            deaths=counters["died"],
            dead_lettered=counters["dead_lettered"],
            expired=counters["expired"],
            dropped=counters["dropped"],
        )

    def join(self, *, timeout: float | None = None) -> None:
        """Wait until nothing is ready, delayed or unsettled. It waits for messages that are put meanwhile, too.

        Messages that no consumer may have any more (max_attempts, max_deaths) go to the dead letters meanwhile, from
        memory and from disk.

        timeout: seconds; None waits for ever, 0 only looks.
        Raises Timeout, NotFound, Closed; BrokerError, CorruptionError where messages on disk cannot be read.

        Example:
            >>> queue.put("a")
            1
            >>> queue.get()
            'a'
            >>> queue.join(timeout=1.0)
        """
        timeout = check_timeout(timeout)
        deadline = None if timeout is None else clock.monotonic() + timeout
        while True:
            do_upkeep(self._membership)  # this settles expired messages, too: perhaps no other process does
            dead_letter_poisoned(self)
            left = DEAD_LETTER_LOOK if deadline is None else max(0.0, deadline - clock.monotonic())
            try:
                self._join(min(left, DEAD_LETTER_LOOK))
                return
            except Timeout:
                if left <= DEAD_LETTER_LOOK and deadline is not None:
                    raise

    # ---- manage ------------------------------------------------------------------------------------------------

    def purge(self, *, selector: str | None = None) -> int:
        """Settle all ready and delayed messages. Returns how many. Consumers keep what they hold; newcomers stay.

        selector: only messages for which it is true, such as "kind = 'png' AND width > 1000".
        Raises SelectorError for a malformed or empty selector, NotFound, Closed. The memory is given back before it
        returns.

        Example:
            >>> queue.put_many(["a", "b"])
            >>> queue.purge()
            2
        """
        if selector is None:
            return self._purge()
        if loaded(selector) is None:  # a variable that is empty by mistake must not throw everything away
            raise SelectorError("the selector is empty", remedy="leave it out to purge everything")
        return sum(self._purge_at(message.position) for message in self._free(selector))

    def move(self, to: Queue[Any], *, selector: str | None = None, limit: int | None = None, copy: bool = False) -> int:
        """Moves ready and delayed messages to another queue of the broker, in order. Returns how many were moved.

        Each message moves in one step: it is in one of the two queues, whichever process dies when. It keeps headers,
        priority, and the rest of its delay and of its time to live. Its id and position are new, attempts and deaths
        start anew, and a dead message lives again. Consumers keep the messages they hold; newcomers stay. One mover at
        a time keeps the order of the queue: it first moves messages that a killed mover before it had in hand.

        to: another queue.
        selector: only messages for which it is true, such as "kind = 'png' AND width > 1000".
        limit: at most so many, 1 or more; None: all.
        copy: True: leave them here, and put copies there, without their delays, of what consumers hold, too.
        Raises Full without room there; ValueError for the queue itself, one of another broker, an unfit limit;
        SelectorError for a malformed selector, ShutDown, NotFound, Closed. The error's attribute `accepted` says how
        many were moved.

        Example:
            >>> queue.put_many(["a", "b"])
            >>> queue.move(broker.queue("archive"), limit=1)
            1
            >>> queue.get()
            'b'
        """
        do_upkeep(self._membership)
        look = partial(self.browse, selector=selector) if copy else partial(self._free, selector)
        return transfer(self, to, look, limit, copy)

    @shows(QueueOptions)
    def alter(self, **options: Unpack[QueueOptions]) -> None:
        """Changes options of the queue, for all of its users at once; the others stay as they are.

        options: those of Broker.queue(), see help(shmq.QueueOptions). A maxsize may be less than what is in the queue:
            nothing is lost, puts wait until there is room again. In a broker with disk=0 a queue keeps the slots that
            it got when it was made, and its maxsize may be as many.
        Raises OptionsMismatch for another value of an option that is fixed at creation, and nothing is changed. Raises
        ValueError, TypeError for an unfit one; NotFound, Closed. Producers that wait for room look again.

        Example:
            >>> queue.alter(maxsize=500, max_attempts=5)
            >>> queue.options["maxsize"]
            500
        """
        settings = check_queue_options(cast("dict[str, object]", options))
        check_dead_letter(self._membership, self._name, options.get("dead_letter"))
        found = self._settings()
        slots = found["slots"]
        if settings.maxsize is not None and settings.maxsize > slots and not found["flows"]:
            raise ValueError(
                f"maxsize={settings.maxsize} is out of range: queue {self._name!r} has {slots:,} slots since it was "
                f"made, and stays in memory; give at most {slots:,}, 0 for no limit of its own, or make another queue"
            )
        differs = self._alter(encode_settings(settings))
        if differs is not None:
            raise options_mismatch(self, self._name, settings, SETTINGS[differs], altering=True)
        if settings.max_memory:
            warn_of_excess(self._membership)

    def shutdown(self, *, immediate: bool = False) -> None:
        """Shut the queue down: put raises ShutDown. Takers drain it; then iteration ends, and get and receive raise it.

        immediate: True: takers end at once, messages stay.
        Raises NotFound, Closed. All that wait in put, get or receive are woken. Twice is fine.

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
        self._shut_down(STOPPED if check_bool(immediate, "immediate") else DRAINING)

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
        named, else with it. A consumer keeps the messages that it has in hand, and can settle them as ever. Those that
        it gives back, or holds when it dies, go the way of the others.

        Raises Full without room for them there, and the queue stays; NotFound if it was deleted before; Closed.

        Example:
            >>> queue.delete()
            >>> broker.queue("jobs", create=False)
            Traceback (most recent call last):
            shmq.errors.NotFound: there is no queue 'jobs' in the broker ...; check the name, ...
        """
        delete(self)

    # ---- called by the native core -----------------------------------------------------------------------------

    def _do_upkeep(self) -> None:
        """Does upkeep. The core calls this when it has found that some is due."""
        do_upkeep(self._membership)

    def _tell_alerts(self) -> None:
        """Tells alerts. The core calls this between two pieces of a put's wait."""
        if self._membership.member.alerts():
            tell_alerts(self._membership)

    def _dead_letter(self, delivery: Delivery) -> None:
        dead_letter_found(self, delivery)


def given_options(queue: OpenQueue) -> QueueOptions:
    """Returns the options that were given, by which another queue like this one can be made."""
    is_ready(queue)  # or raises: deleted, closed
    found = settings_of(queue)
    settings = decode_settings(found)
    given = {name: getattr(settings, name) for i, name in enumerate(SETTINGS) if found["given"] >> i & 1}
    return as_given(QueueSettings(**given))


def statistics_of(queue: QueueManagement) -> QueueStatistics:
    """Returns the queue's statistics, but does no upkeep first: the caller has done it."""
    return queue._statistics()
