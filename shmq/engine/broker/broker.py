"""This process's membership in one broker, as its users see it."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, Unpack, cast, overload

from shmq.codec import AnyCodec, Codec, check_codec
from shmq.core.queue import queue_names
from shmq.engine.consumer.consumer import forget_left
from shmq.engine.consumer.consumer_of_several import ConsumerOfSeveral
from shmq.engine.dead_lettering.upkeep import put_in_order
from shmq.engine.handle.declaration import declared
from shmq.engine.handle.open_queue import codec_of, membership_of
from shmq.engine.membership.membership import Membership
from shmq.engine.membership.opening import rejoin
from shmq.engine.queue.queue import Queue, opened_for
from shmq.engine.queue.queue_management import check_dead_letter, statistics_of
from shmq.errors import Closed, CorruptionError, NotFound
from shmq.options import QueueOptions, QueueSettings, check_bool, check_queue_options
from shmq.options.signature import shows
from shmq.version import __version__
from shmq.whole_import import import_whole

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from shmq.engine.consumer.consumer import Consumer
    from shmq.options.encryption_key import EncryptionKey
    from shmq.statistics import BrokerStatistics, QueueStatistics

__all__ = ["Broker", "broker_membership", "declared_for", "leave_when_dropped", "live_membership"]

T = TypeVar("T")

# By calls in a handler, or in a child that is forked, as well: there before any of them.
_NEEDED_SELDOM: Final = (
    "shmq.codec_pickle",
    "shmq.core.process_table",
    "shmq.engine.consumer.readiness",
    "shmq.engine.directory.removal",
    "shmq.engine.membership.death_record",
    "shmq.statistics",
    "traceback",
    "uuid",
)


class Broker:
    """This process's membership in one broker. Shared by threads, survives fork, can be pickled.

    Made by shmq.open(). Handles opened separately count: the last close is the close. Forgotten ones are closed at the
    end of the process.

    Example:
        >>> with shmq.open() as broker:
        ...     broker.queue("greetings").put("hello, world")
        1
    """

    def __init__(self, membership: Membership) -> None:
        if not isinstance(membership, Membership):
            raise TypeError("a Broker is made by shmq.open(path)")
        import_whole(*_NEEDED_SELDOM)
        self._membership = membership
        self._closed = False
        self._implied = False

    def __repr__(self) -> str:
        return f"<Broker {self._membership.name}{', closed' if self._closed else ''}>"

    def __reduce__(self) -> Any:
        self._live()
        return _unpickled, (self._membership.key, self._membership.path, self._membership.encryption_key)

    @property
    def path(self) -> str | None:
        """The absolute path of the directory, also after it was moved; None: the broker is anonymous."""
        return self._membership.path

    @property
    def url(self) -> str:
        """The broker's address, which shmq.open() takes: "shmq:///abs/dir"."""
        return self._membership.url

    def _live(self) -> Membership:
        if self._closed:
            raise Closed(f"this handle on the broker {self._membership.name} is closed", remedy="open it again")
        self._membership.live()
        return self._membership

    if not TYPE_CHECKING:  # for type checkers they are not there at all

        def __getitem__(self, name: object) -> Any:
            raise TypeError(f"a Broker is no mapping; broker.queue({name!r}) opens the queue")

        def __contains__(self, name: object) -> bool:
            raise TypeError(
                f"a Broker is no container; broker.queue({name!r}, create=False) raises NotFound for one that is not "
                "there, broker.queues() lists all"
            )

        def __iter__(self) -> Iterator[Any]:
            raise TypeError("a Broker is no iterable; broker.queues() lists the queues")

    # ---- queues ------------------------------------------------------------------------------------------------

    @overload
    def queue(
        self, name: str | None = None, *, codec: None = None, create: bool = True, **options: Unpack[QueueOptions]
    ) -> Queue[Any]: ...
    @overload
    def queue(
        self, name: str | None = None, *, codec: Literal["bytes"], create: bool = True, **options: Unpack[QueueOptions]
    ) -> Queue[bytes]: ...
    @overload
    def queue(
        self, name: str | None = None, *, codec: Literal["pickle"], create: bool = True, **options: Unpack[QueueOptions]
    ) -> Queue[Any]: ...
    @overload
    def queue(
        self, name: str | None = None, *, codec: Codec[T], create: bool = True, **options: Unpack[QueueOptions]
    ) -> Queue[T]: ...
    @shows(QueueOptions)
    def queue(
        self, name: str | None = None, *, codec: Any = None, create: bool = True, **options: Unpack[QueueOptions]
    ) -> Queue[Any]:
        """Declare or open a queue.

        name: 1 to 200 bytes of UTF-8 without control characters and "/"; None: a new name, temporary=True implied.
        codec: turns bodies of this handle into bytes and back. None (bytes-like, str, JSON values, numpy arrays),
            "bytes", "pickle" (any object; the only way to unpickle) or a Codec.
        create: False: NotFound when there is none.
        options: maxsize, max_bytes, max_memory, slot_size, overflow, priorities, groups, live_consumers, max_ttl,
            expires, lease, retry_delay, max_attempts, max_deaths, dead_letter, dead_letter_expired, temporary,
            checksum, alerts: help(shmq.QueueOptions) tells of each. An option that is not given is taken as it is. One
            that is given must equal the value that was given before. The first call that gives an option sets it, so
            the start order does not matter.

        Raises OptionsMismatch naming both values and the process that set the first. Raises ValueError, TypeError for a
        wrong argument; Full or OutOfSpace without room for the ring; BrokerError for one queue too many; Closed.

        Example:
            >>> jobs = broker.queue("jobs", maxsize=1000)
            >>> jobs.options["maxsize"]
            1000
        """
        self._live()
        checked = check_codec(codec)
        check_bool(create, "create")
        settings = check_queue_options(cast(dict[str, object], options))
        check_dead_letter(self._membership, name, options.get("dead_letter"))
        if name is None:
            if settings.temporary is False:
                raise ValueError("temporary=False: a queue without a name is temporary; give it a name")
            from uuid import uuid4

            name = f"temporary-{uuid4().hex}"
            settings = replace(settings, temporary=True)
        return self._declare(name, checked, settings, create=create)

    def _declare(self, name: str, codec: AnyCodec, settings: QueueSettings, *, create: bool) -> Queue[Any]:
        membership = self._membership
        if membership.consumers:
            forget_left(membership)

        def opened(index: int, incarnation: int) -> Queue[Any]:
            return opened_for(self, membership, name, codec, index, incarnation)

        return declared(membership, name, settings, create=create, opened=opened)

    def queues(self) -> list[Queue[Any]]:
        """Return all queues by name, with the default codec. First it deletes queues that no process used (expires).

        Raises Closed.

        Example:
            >>> [queue.name for queue in broker.queues()]
            ['jobs']
        """
        self._live()
        put_in_order(self._membership)  # consumers of dead processes do not count
        return self._queues()

    def _queues(self) -> list[Queue[Any]]:
        found = []
        for raw, index, incarnation in sorted(queue_names(self._membership.live())):
            if not raw:
                raise CorruptionError(
                    "the name of a queue is damaged",
                    figures=f"entry {index} of the directory",
                    remedy="take messages out of the other queues; shmq check names the damage",
                )
            try:
                found.append(opened_for(self, self._membership, raw.decode(errors="replace"), None, index, incarnation))
            except NotFound:
                continue
        return found

    def consumer(
        self,
        *queues: Queue[T],
        prefetch: int | None = None,
        selector: str | None = None,
        priority: int = 0,
        exclusive: bool = False,
    ) -> Consumer[T]:
        """Make a consumer of several queues, served in turn: each message comes from the next queue that has one.

        queues: one or more of this broker, each once.
        prefetch: at most so many unsettled at once, of all queues together; None: no limit.
        selector, priority, exclusive: as for Queue.consumer(), on each queue.
        A queue that is shut down is drained, then left out; iterating ends when all are. Receiving raises NotFound when
        one of them was deleted. Each message knows its queue.
        Raises ValueError without a queue, for one given twice or one of another broker; otherwise as Queue.consumer().

        Example:
            >>> urgent, usual = broker.queue("urgent"), broker.queue("usual")
            >>> usual.put_many(["a", "b", "c"])
            >>> urgent.put("x")
            4
            >>> with broker.consumer(urgent, usual) as consumer:
            ...     for m in consumer.receive_many(10, timeout=0):
            ...         with m:
            ...             print(m.queue.name, m.body)
            urgent x
            usual a
            usual b
            usual c
        """
        self._live()
        for queue in queues:
            if not isinstance(queue, Queue):
                raise TypeError(f"consumer({queue!r}): queues are expected, as broker.queue(name) answers them")
            if membership_of(queue) is not self._membership:
                raise ValueError(f"consumer({queue!r}): a queue of another broker; name queues of this one")
            if queues.count(queue) > 1:
                raise ValueError(f"consumer(): queue {queue.name!r} is given twice; name each once")
        if not queues:
            raise ValueError("consumer(): name at least one queue")
        if len(queues) == 1:
            return queues[0].consumer(prefetch=prefetch, selector=selector, priority=priority, exclusive=exclusive)
        return ConsumerOfSeveral(queues, prefetch, selector, priority, exclusive)

    # ---- look, leave -------------------------------------------------------------------------------------------

    def statistics(self) -> BrokerStatistics:
        """Take a snapshot of memory, processes and queues. It reaps dead processes first, so that all is counted right.

        Raises Closed.

        Example:
            >>> queue.put("a")
            1
            >>> broker.statistics().queues["jobs"].ready
            1
        """
        from shmq.core.process_table import processes  # here: most programs never look
        from shmq.engine.directory.disk import disk_bytes
        from shmq.statistics import BrokerStatistics

        member = self._live().live()
        put_in_order(self._membership)
        usage = member.usage()
        return BrokerStatistics(
            path=self._membership.path,
            version=__version__,
            memory=usage["memory"],
            memory_reserved=usage["reserved"],
            memory_used=usage["used"],
            disk_used=disk_bytes(self._membership.disk),
            log_bytes=0,
            processes=processes(member),
            queues=MappingProxyType(self._of_queues()),
        )

    def _of_queues(self) -> dict[str, QueueStatistics]:
        found = {}
        for queue in self._queues():
            with suppress(NotFound):  # deleted meanwhile, or by this very look, as unused
                found[queue.name] = statistics_of(queue)
        return found

    def close(self) -> None:
        """Close the handle. With the last of this process, waiting threads get Closed, and what was received and not
        settled goes back in its place.

        Raises nothing. Twice is fine.

        Example:
            >>> broker.close()
            >>> broker.queue("jobs")
            Traceback (most recent call last):
            shmq.errors.Closed: this handle on the broker ... is closed; open it again
        """
        if not self._closed:
            self._closed = True
            self._membership.leave()

    def delete(self, *, force: bool = False) -> None:
        """Delete the broker with all its queues and messages: its memory, its files, and its directory unless other
        things lie in it. All handles of this process on it are closed.

        force: although other processes use it. Their calls raise BrokerNotFound from then on, and those that wait do
            so within half a second. Bodies that they read in place stay readable until they close.

        A process that is killed in the midst of it has deleted the broker or not. The next process that deletes or
        opens it finishes that. The command `shmq destroy` deletes a broker that cannot be opened.

        Raises BrokerError naming the processes that use it, without force. Raises PermissionError when another user
        made its memory; BrokerNotFound when its directory was made anew; TypeError; Closed.

        Example:
            >>> with shmq.open("hello.shmq", memory="64MiB") as broker:
            ...     broker.delete()
        """
        membership = self._live()
        check_bool(force, "force")
        from shmq.engine.directory.removal import delete_joined  # here: most programs never delete one

        delete_joined(membership.live(), membership.path, membership.name, force=force)
        self._closed = True
        membership.close()

    def _leave_when_dropped(self) -> None:
        """Closes a handle that came with an unpickled queue, once it is dropped."""
        self._implied = True

    def __del__(self) -> None:
        if getattr(self, "_implied", False):
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


# A user of Broker is to see none of these.
broker_membership: Final[Callable[[Broker], Membership]] = attrgetter("_membership")


def live_membership(broker: Broker) -> Membership:
    """Returns the membership of a handle that is open. Raises Closed."""
    return broker._live()


def leave_when_dropped(broker: Broker) -> None:
    """Closes the handle once it is dropped: no user knows of it, so no user could close it."""
    broker._leave_when_dropped()


def declared_for(broker: Broker, name: str, codec: AnyCodec, settings: QueueSettings, *, create: bool) -> Queue[Any]:
    """Does as Broker.queue(), with settings that were checked before, and also for a handle that is closed."""
    return broker._declare(name, codec, settings, create=create)


def _unpickled(key: str, path: str | None, encryption_key: EncryptionKey | None) -> Broker:
    return Broker(rejoin(key, path, encryption_key))


def _unpickled_queue(broker: Broker, name: str, codec: AnyCodec) -> Queue[Any]:
    leave_when_dropped(broker)  # it came with the queue
    return declared_for(broker, name, codec, QueueSettings(), create=False)


def _reduced(queue: Queue[Any]) -> tuple[Any, ...]:
    return _unpickled_queue, (queue.broker, queue.name, codec_of(queue))


# Here, for a queue that is unpickled brings its broker along.
copyreg.pickle(Queue, _reduced)
