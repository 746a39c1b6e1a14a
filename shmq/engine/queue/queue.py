"""A handle on one queue: produce, take, borrow, look. Managing it is in queue_management."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from shmq.codec import ARRAY, NAMED, OCTETS, AnyCodec, check_decodable, decode, encode
from shmq.core.queue import Delivery, Extras, browsed, encode_extras
from shmq.engine.consumer.consumer import Consumer, implicit_consumer
from shmq.engine.dead_lettering.dead_letter import retry_dead_letters
from shmq.engine.dead_lettering.outcome import retry
from shmq.engine.dead_lettering.upkeep import do_upkeep
from shmq.engine.handle.failure import largest_body, too_large
from shmq.engine.handle.places import first_of, places_from
from shmq.engine.message.loan import Loan
from shmq.engine.message.message import Message
from shmq.engine.message.selection import selection
from shmq.engine.queue.queue_management import QueueManagement
from shmq.errors import CorruptionError, DecodeError, ShutDown
from shmq.headers import decode_headers, encode_headers
from shmq.options import PutOptions, check_bool, check_limit, check_put_options, check_timeout
from shmq.options.signature import shows
from shmq.quantity import quantity
from shmq.whole_import import import_whole

if TYPE_CHECKING:
    from typing import Self, Unpack

    from numpy.typing import DTypeLike
    from pyarrow import RecordBatchReader

    from shmq.engine.arrow.plain_columns import ArrowStream
    from shmq.engine.broker.broker import Broker
    from shmq.engine.membership.membership import Membership
    from shmq.options import PutSettings

__all__ = ["Queue", "opened_for", "put_settings"]

T = TypeVar("T")

_LAST_PLACE = (1 << 64) - 1  # nothing is so far behind


class Queue(QueueManagement, Generic[T]):
    """A handle on one queue. Shared by threads, survives fork, can be pickled; holds nothing, needs no close.

    `get` takes a message for good. `receive` lends it until it is settled. Choose `receive` when losing the message
    in hand to a crash would matter.

    Made by Broker.queue(). put, put_many, get and get_many are written in C; help(Queue.put) tells of them.

    Example:
        >>> jobs = broker.queue("jobs", maxsize=1000)
        >>> jobs.put({"id": 7})
        1
        >>> jobs.get()
        {'id': 7}
    """

    _broker: object

    if TYPE_CHECKING:  # in C, see native/python/py_put.c and py_get.c

        def put(self, body: T, *, timeout: float | None = None, **options: Unpack[PutOptions]) -> int: ...
        def put_many(
            self, bodies: Iterable[T], *, timeout: float | None = None, **options: Unpack[PutOptions]
        ) -> None: ...
        def get(self, *, timeout: float | None = None) -> T: ...
        def get_many(self, limit: int, *, timeout: float | None = None) -> list[T]: ...
        def _receive(self, timeout: float | None, /) -> Message[T]: ...

    @classmethod
    def _open(
        cls, broker: object, membership: Membership, name: str, codec: AnyCodec, index: int, incarnation: int
    ) -> Self:
        self = cls._opened(membership, name, codec, index, incarnation)
        self._broker = broker
        return self

    def __init__(self) -> None:
        raise TypeError("a Queue is made by Broker.queue(name)")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Queue):
            return NotImplemented
        return self._name == other._name and self._membership is other._membership

    def __hash__(self) -> int:
        return hash((self._name, self._membership.key))

    @property
    def broker(self) -> Broker:
        """The broker by which the queue was opened."""
        return cast("Broker", self._broker)

    # ---- called by the native core -----------------------------------------------------------------------------

    def _check_lives(self, settings: PutSettings) -> None:
        """Checks that an `immediate` message lives until it is taken or withdrawn: an expired one would be neither."""
        window = settings.immediate or self._membership.live().header()["patience_ns"] / 1e9
        max_ttl = self._settings()["max_ttl"] / 1e9
        for name, life in (("ttl", settings.ttl), ("max_ttl of the queue", max_ttl)):
            if life is not None and life <= window:
                raise ValueError(
                    f"immediate: {name} is {life:g} s, and consumers have {window:g} s to take the message, which "
                    "has to live longer; give a longer ttl, or a shorter time as immediate="
                )

    def _check_delay(self, settings: PutSettings) -> None:
        """Checks that a message does not expire within its delay: no consumer would receive it."""
        max_ttl = self._settings()["max_ttl"] / 1e9
        for name, life in (("ttl", settings.ttl), ("max_ttl of the queue", max_ttl)):
            if life is not None and life <= settings.delay:
                raise ValueError(
                    f"delay={settings.delay:g}: {name} is {life:g} s, counted from the put, so the message would "
                    "expire before a consumer could receive it; give a shorter delay or a longer ttl"
                )

    def _put_settings(self, options: Mapping[str, object] | PutOptions, *, single: bool = False) -> PutSettings:
        """Checks the options of a put for this queue; single: those of put(). Raises TypeError, ValueError."""
        settings = check_put_options(options)
        if settings.immediate is not None and (not single or settings.delay):
            with_what = "together with delay; leave one out" if single else "with put_many() and loans; use put()"
            raise ValueError(f"immediate={options.get('immediate')!r} does not go {with_what}")
        if settings.delay:
            self._check_delay(settings)
        if settings.immediate is not None:
            self._check_lives(settings)
        if settings.priority is not None and self._settings()["priorities"] == 1:
            raise ValueError(
                f"priority={settings.priority}: queue {self._name!r} has no priorities; make one with priorities=2 to "
                f"10 under another name, or leave it out"
            )
        if settings.group is not None and self._settings()["groups"] == 0:
            raise ValueError(
                f"group={settings.group!r}: queue {self._name!r} has no groups; make one with groups='shared' or "
                f"'sticky' under another name, or leave it out"
            )
        return settings

    def _implicit(self) -> Consumer[T]:
        return implicit_consumer(self)

    def _put_slow(self, body: T, options: dict[str, Any]) -> int:
        timeout = check_timeout(options.pop("timeout", None))
        settings = self._put_settings(options, single=True)
        content, head, pieces = self._encode(body, settings)
        return self._put_encoded(content, head, pieces, timeout, encode_extras(settings))

    def _batch_options(self, bodies: Iterable[T], options: dict[str, Any]) -> tuple[PutSettings | None, Extras | None]:
        options.pop("timeout", None)
        settings = self._put_settings(options)
        has_head = settings.headers is not None or settings.group is not None
        return settings if has_head else None, encode_extras(settings)

    def _encode(
        self, body: T, settings: PutSettings | None
    ) -> tuple[int, bytes | None, tuple[bytes | memoryview, ...]]:
        encoded = encode(body, self._codec)
        if encoded.size > largest_body(self._membership.memory)[0]:
            raise too_large(self._name, encoded.size, self._membership.memory)
        headers, group = (settings.headers, settings.group) if settings is not None else (None, None)
        head = encode_headers(headers, content_type=encoded.content_type, group=group) or None
        return encoded.content, head, tuple(encoded.pieces)

    def _take(self, delivery: Delivery) -> tuple[T] | None:
        """Ends a get() whose body C does not decode: decodes, then settles it. None: taken away, so get() goes on."""
        content_type = None
        retry_dead_letters(self._membership)
        try:
            if delivery.content == NAMED:
                content_type = decode_headers(delivery.head()).content_type
            check_decodable(delivery.content, content_type, self._codec)
        except DecodeError:
            delivery.release(False)  # an unknown content type: the message stays in its place
            raise
        except BaseException:
            delivery.release(False)
            raise
        view = delivery.view()
        data = memoryview(view) if view is not None else delivery.body()
        if data is False or (view is not None and not delivery.intact()):
            if not delivery.ours():
                return None
            delivery.release(True)
            raise CorruptionError(
                f"the checksum of a message of queue {self._name!r} does not match its body",
                figures=f"position {delivery.position}, {quantity(delivery.size, 'byte')}",
                remedy="after max_attempts attempts it is among the dead; shmq check tells more",
            )
        try:
            body = decode(delivery.content, content_type, data, self._codec)
        except DecodeError as error:
            retry(self, delivery, error)  # the codec failed: the attempt counts
            raise
        except BaseException:
            delivery.release(False)
            raise
        return (cast(T, body),) if delivery.settle() else None

    # ---- produce -----------------------------------------------------------------------------------------------

    @shows(PutOptions)
    def loan(self, nbytes: int, *, timeout: float | None = None, **options: Unpack[PutOptions]) -> Loan:
        """Lend memory for a message of `nbytes` bytes, to be written in place and put by commit().

        nbytes: of the body; commit() may use fewer.
        timeout: seconds to wait for memory, and at commit for room; None waits for ever, 0 does not wait.
        options: as for put(): headers, priority, group, ttl, delay.
        Raises ValueError, TypeError for an unfit nbytes, MessageTooLarge, Full, OutOfSpace, NotFound, Closed; at commit
        ShutDown.

        Example:
            >>> with queue.loan(5) as loan:
            ...     loan.view[:] = b"hello"
            >>> queue.get()
            b'hello'
        """
        if isinstance(nbytes, bool) or not isinstance(nbytes, int):
            raise TypeError(f"loan({nbytes!r}): a number of bytes is expected, not {type(nbytes).__name__}")
        if nbytes < 0:
            raise ValueError(f"loan({nbytes!r}): 0 or more bytes are expected")
        if nbytes > largest_body(self._membership.memory)[0]:
            raise too_large(self._name, nbytes, self._membership.memory)
        timeout = check_timeout(timeout)
        settings = self._put_settings(options)
        head = encode_headers(settings.headers, group=settings.group) or None
        return Loan(self, self._loan(head, nbytes, timeout), OCTETS, timeout, encode_extras(settings))

    @shows(PutOptions)
    def loan_array(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeLike,
        *,
        timeout: float | None = None,
        **options: Unpack[PutOptions],
    ) -> Loan:
        """Lend memory for an array, to be filled in place (loan.array) and put by commit().

        shape: as for numpy.empty, of any number of dimensions; an int is the length of a vector.
        dtype: as for numpy.empty; no objects.
        timeout, options: as for loan().
        Raises as loan(), and TypeError or ValueError for an unfit shape or dtype.

        Example:
            >>> with queue.loan_array((480, 640), "uint8") as loan:
            ...     loan.array[:] = 7
            >>> queue.get().shape
            (480, 640)
        """
        import_whole("numpy")
        import numpy

        from shmq.codec_array import array_prefix

        prefix = array_prefix(shape, dtype)
        kind = numpy.dtype(dtype)
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        count = 1
        for size in sizes:
            count *= size
        nbytes = len(prefix) + count * kind.itemsize
        if nbytes > largest_body(self._membership.memory)[0]:
            raise too_large(self._name, nbytes, self._membership.memory)
        timeout = check_timeout(timeout)
        settings = self._put_settings(options)
        head = encode_headers(settings.headers, group=settings.group) or None
        buffer = self._loan(head, nbytes, timeout)
        with memoryview(buffer) as view:
            view[: len(prefix)] = prefix
        return Loan(self, buffer, ARRAY, timeout, encode_extras(settings), (len(prefix), kind, sizes))

    def put_arrow(self, batches: ArrowStream, *, timeout: float | None = None) -> int:
        """Put each row of an Arrow stream as a message, in order. Returns how many were put.

        batches: a table, reader or batch of pyarrow, a frame of pandas or polars, a relation of DuckDB, or several of
            them in an iterable. It has a column `body` (binary, or text). It may have `headers` (a map of texts),
            `priority`, `group`, `ttl`, `delay` (seconds) and `content_type`; NULL: not given.
        timeout: seconds to wait for room; None waits for ever, 0 does not wait.
        Raises ModuleNotFoundError without pyarrow; TypeError for what is no stream, ValueError for an unfit column or
        row, and otherwise as put_many(). `accepted` of the error says how many are in; they stay. If this process dies
        meanwhile, a first part of the rows is in.

        Example:
            >>> import pyarrow
            >>> queue.put_arrow(pyarrow.table({"body": ["a", "b"], "ttl": [60, None]}))
            2
            >>> queue.get_many(2)
            ['a', 'b']
        """
        from shmq.engine.arrow.streams import put_stream  # here: most programs need neither numpy nor pyarrow

        return put_stream(self, self._put_settings, batches, check_timeout(timeout))

    # ---- take --------------------------------------------------------------------------------------------------

    def get_arrow(
        self, limit: int, *, timeout: float | None = None, columns: Sequence[str] | None = None
    ) -> RecordBatchReader:
        """Wait for the first message, then take what is there for good, at most `limit`, as an Arrow stream.

        limit: 1 or more.
        timeout: seconds to wait for the first one; None waits for ever, 0 does not wait. After it the stream has no
            rows.
        columns: some of queue, position, message_id, enqueued_at, priority, group, delivery_count, content_type,
            headers, body and death, in this order; None: all but death. Bodies are bytes as they lie in the queue.
        Raises ModuleNotFoundError without pyarrow, ValueError for an unfit limit or column, and otherwise as
        get_many(), but no DecodeError. The messages are taken when the call returns, whether the stream is read or
        not. If this process dies before, those that it has taken are gone.

        Example:
            >>> queue.put_many(["a", "b", "c"])
            >>> queue.get_arrow(2, columns=["position", "body"]).read_all().to_pylist()
            [{'position': 0, 'body': b'a'}, {'position': 1, 'body': b'b'}]
            >>> queue.qsize()
            1
        """
        from shmq.engine.arrow.streams import taken

        check_limit(limit)
        return taken(self, limit, check_timeout(timeout), columns)

    # ---- borrow ------------------------------------------------------------------------------------------------

    def receive(self, *, timeout: float | None = None) -> Message[T]:
        """Borrow the first message until it is settled.

        timeout: seconds; None waits for ever, 0 does not wait.
        Raises Empty, ShutDown (shut down and drained), NotFound, Closed; SettlementError once, after messages of this
        process were dropped unsettled (they went back, counted). A signal handler's exception is raised as it is, and
        nothing was delivered. If this process dies before it has settled the message, it is with others within 50 ms,
        marked as redelivered.

        Example:
            >>> queue.put("a")
            1
            >>> with queue.receive(timeout=1.0) as m:
            ...     print(m.body)
            a
        """
        return self._receive(timeout)._delivered

    def receive_many(self, limit: int, *, timeout: float | None = None) -> list[Message[T]]:
        """Wait for the first message, then borrow what is there, at most `limit`; [] after the timeout.

        limit: 1 or more.
        timeout: seconds to wait for the first one; None waits for ever, 0 does not wait.
        Raises ShutDown (shut down and drained), NotFound, Closed, ValueError for an unfit limit; SettlementError as
        receive().

        Example:
            >>> queue.put_many(["a", "b", "c"])
            >>> for m in queue.receive_many(2, timeout=0):
            ...     with m:
            ...         print(m.body)
            a
            b
        """
        check_limit(limit)
        return self._receive_many(limit, check_timeout(timeout))._delivered

    def consumer(
        self, *, prefetch: int | None = None, selector: str | None = None, priority: int = 0, exclusive: bool = False
    ) -> Consumer[T]:
        """Make a consumer: a subscription to the queue, with options of its own.

        prefetch: at most so many unsettled at once; None: taken when asked for, no limit.
        selector: only messages for which it is true, such as "kind = 'png' AND width > 1000". It leaves the others, in
            order, to other consumers. It looks at each message once, until that comes back.
        priority: an int; larger is served first. As long as such a consumer waits for a message that it would take, one
            of lower priority leaves it. One that is at work, or has all that its prefetch allows, does not wait.
        exclusive: True: the only one; get() and receive() of others raise ConsumerRefused, too. The consumer that
            receive() has made for a process is in its way only while it has messages in hand.
        Raises ConsumerRefused beside an exclusive consumer, or exclusive beside others, or for the 1,025th consumer.
        Raises it, too, when consumers and waiting threads together use up 1,087 places. Raises SelectorError for a
        malformed selector, with the place of the error. Raises ValueError, TypeError for an unfit prefetch, priority or
        exclusive; NotFound, Closed.

        Example:
            >>> queue.put_many(["a", "b"])
            >>> queue.shutdown()
            >>> for m in queue.consumer():
            ...     with m:
            ...         print(m.body)
            a
            b
        """
        return Consumer(self, prefetch, selector, priority, exclusive)

    # ---- look --------------------------------------------------------------------------------------------------

    def browse(
        self, *, start: Literal["first", "next"] | int = "first", follow: bool = False, selector: str | None = None
    ) -> Iterator[Message[T]]:
        """Yield the messages in order, without taking any. Counts nothing; settling them raises SettlementError.

        start: "first"; "next": only newcomers; int: from that position.
        follow: True: wait for more, until the queue is shut down.
        selector: only messages for which it is true, such as "kind = 'png' AND width > 1000".
        Raises SelectorError for a malformed selector, ValueError, TypeError for an unfit start, NotFound, Closed. Each
        message is shown at most once, in order.

        Example:
            >>> queue.put_many(["a", "b"])
            >>> queue.put("c", headers={"width": 2000})
            3
            >>> for m in queue.browse():
            ...     print(m.position, m.body)
            0 a
            1 b
            2 c
            >>> [m.body for m in queue.browse(selector="width > 1000")]
            ['c']
        """
        selects = selection(selector, self._membership.member.wall_of)
        check_bool(follow, "follow")
        self._enter()  # or raises: deleted, closed
        do_upkeep(self._membership)
        ends = self._ends()
        if start == "first":
            places = first_of(ends)
        elif start == "next":
            places = list(ends)
        elif isinstance(start, bool) or not isinstance(start, int | str):
            raise TypeError(f'start={start!r}: "first", "next" or a position is expected')
        elif isinstance(start, int) and start >= 0:
            places = places_from(min(start, _LAST_PLACE), ends)
        else:
            raise ValueError(f'start={start!r}: "first", "next" or a position from 0 on is expected')
        found = self._browsed(places, None if follow else ends)  # without follow newcomers are not waited for
        return found if selects is None else filter(selects, found)

    def browse_arrow(self, *, selector: str | None = None, columns: Sequence[str] | None = None) -> RecordBatchReader:
        """Return the messages that are there now, in order, as an Arrow stream. Takes none, and counts nothing.

        selector: only messages for which it is true, such as "kind = 'png' AND width > 1000".
        columns: as for get_arrow().
        Raises ModuleNotFoundError without pyarrow, ValueError for an unfit column, SelectorError for a malformed
        selector, NotFound, Closed. The stream looks as it is read, batch by batch. Messages that others take meanwhile
        may be missing, those that are put later are not there, and none comes twice.

        Example:
            >>> queue.put_many([{"id": 7}, {"id": 8}])
            >>> queue.browse_arrow(columns=["content_type", "body"]).read_all().to_pylist()[0]
            {'content_type': 'application/json', 'body': b'{"id":7}'}
            >>> queue.qsize()
            2
        """
        from shmq.engine.arrow.streams import looked_at

        self._enter()  # or raises: deleted, closed
        do_upkeep(self._membership)
        return looked_at(self, selector, columns)

    def _free(self, selector: str | None) -> Iterator[Message[T]]:
        """Yields the messages that are there now and that no consumer holds, in order. Raises as browse()."""
        selects = selection(selector, self._membership.member.wall_of)
        self._enter()  # or raises: deleted, closed
        do_upkeep(self._membership)
        ends = self._ends()
        found = self._browsed(first_of(ends), ends, free=True)
        return found if selects is None else filter(selects, found)

    def _browsed(self, places: list[int], ends: tuple[int, ...] | None, *, free: bool = False) -> Iterator[Message[T]]:
        """Yields messages from `places` on, by level, the most important first. ends: where to stop; None: nowhere.

        free: what consumers hold is passed by.
        """
        depth = 0
        while depth < len(places):
            places[depth], seen = self._browse(places[depth], free)
            if seen is not None and (ends is None or seen[0] < ends[depth]):
                yield browsed(Message, self, seen)
                depth = 0 if ends is None else depth  # meanwhile something more important may have come
            elif ends is not None or depth + 1 < len(places):
                depth += 1
            else:
                try:
                    self._browse_wait(tuple(places), None)
                except ShutDown:
                    return
                depth = 0


def opened_for(
    broker: object, membership: Membership, name: str, codec: AnyCodec, index: int, incarnation: int
) -> Queue[Any]:
    """Opens the queue of a directory entry, with the Broker that its user sees. Raises NotFound for a deleted one."""
    return Queue._open(broker, membership, name, codec, index, incarnation)


def put_settings(queue: Queue[Any], options: Mapping[str, object] | PutOptions, *, single: bool = False) -> PutSettings:
    """Checks the options of a put for the queue; single: those of put(). Raises TypeError, ValueError."""
    return queue._put_settings(options, single=single)
