"""One delivery of a message, and its settlement."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from shmq.codec import content_type_of, decode, excerpt
from shmq.core import clock
from shmq.core.queue import Delivery, MessageHandle
from shmq.death import Death
from shmq.engine.dead_lettering.dead_letter import check_error
from shmq.engine.dead_lettering.outcome import reject, retry
from shmq.engine.handle.open_queue import codec_of, membership_of
from shmq.engine.message.lender import refuse, still_ours
from shmq.engine.message.settlement_error import only_browsed, taken_away
from shmq.errors import CorruptionError, SettlementError, ShmqError
from shmq.headers import Header, HeaderBlock, decode_headers
from shmq.options import check_bool, delay_in_ns
from shmq.quantity import quantity
from shmq.whole_import import import_whole

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

    from shmq.engine.handle.open_queue import OpenQueue
    from shmq.engine.message.lender import Lender
    from shmq.engine.queue.queue import Queue

__all__ = ["Message"]

T = TypeVar("T")


class Message(MessageHandle, Generic[T]):
    """One delivery. Immutable but for its settlement, which happens once and may be done by any thread.

    As a context manager: left normally: ack(). By an Exception: retry(error). By KeyboardInterrupt, SystemExit or
    cancellation: release(). Settled inside: nothing more. Exceptions pass through. One that was only browsed:
    SettlementError at once.

    Made by Queue.receive, Consumer and Queue.browse, never by hand. Not to be sent to other processes: send m.body.
    The four outcomes are those of AMQP 1.0: accepted (ack), released, modified (retry), rejected.

    Example:
        >>> queue.put("a")
        1
        >>> with queue.receive() as m:
        ...     print(m.body)
        a
    """

    __slots__ = ("__weakref__",)

    if TYPE_CHECKING:  # in C, see native/python/py_message.c
        _queue: OpenQueue
        _consumer: Lender | None
        _block: HeaderBlock | None  # the head, decoded at first use

        @property
        def body(self) -> T: ...
        def ack(self) -> None: ...
        def __enter__(self) -> Self: ...
        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
        ) -> None: ...

    def __init__(self) -> None:
        raise TypeError("a Message is made by receive(), a consumer or browse(), not by hand")

    def __repr__(self) -> str:
        state, size = self._outcome or "unsettled", quantity(self._size, "byte")
        body = f"{size}{self._excerpt()}"
        return f"<Message {self._id} of {self._queue.name!r}, position {self._position}, {body}, {state}>"

    def _excerpt(self) -> str:
        """Returns how the body's bytes begin, undecoded, for a codec may run any code. "": the body is gone."""
        try:
            data = self._data()
        except Exception:  # such as MemoryError: printing a message must not fail
            return ""
        return f": {excerpt(self._content, data)}" if data else ""

    def __reduce__(self) -> Any:
        raise TypeError("a Message belongs to the process that received it and cannot be pickled; send m.body")

    # ---- what it says ------------------------------------------------------------------------------------------

    def _headers(self) -> HeaderBlock:
        if self._block is None:
            self._block = decode_headers(self._head)
        return self._block

    @property
    def headers(self) -> Mapping[str, Header]:
        """The headers, read-only. Raises DecodeError for damaged ones."""
        return self._headers().user

    @property
    def id(self) -> int:
        """The message's id, unique in the broker for ever."""
        return self._id

    @property
    def position(self) -> int:
        """The message's place in its queue; later messages have larger ones."""
        return self._position

    @property
    def queue(self) -> Queue[T]:
        """The queue from which the message was taken."""
        return cast("Queue[T]", self._queue)

    @property
    def size(self) -> int:
        """The size of the encoded body in bytes."""
        return self._size

    @property
    def content_type(self) -> str:
        """The content type of the body, as the producer's codec named it."""
        return content_type_of(self._content, self._headers().content_type if self._content == 255 else None)

    @property
    def enqueued_at(self) -> float:
        """The time of the put, in POSIX seconds."""
        return self._wall(self._enqueued_ns)

    def _wall(self, monotonic_ns: int) -> float:
        return membership_of(self._queue).member.wall_of(monotonic_ns) / 1e9

    @property
    def expires_at(self) -> float | None:
        """The end of the time to live, in POSIX seconds; None: neither ttl nor the queue's max_ttl limits it.

        Example:
            >>> queue.put("a", ttl=60)
            1
            >>> with queue.receive() as m:
            ...     round(m.expires_at - m.enqueued_at)
            60
        """
        return self._wall(self._expires_ns) if self._expires_ns else None

    @property
    def priority(self) -> int:
        """The priority, 0 to 9; 4 where none was given. A larger one goes first on a queue with priorities."""
        return self._priority

    @property
    def group(self) -> str | None:
        """The group that the producer gave: its messages are handled one after the other. Raises DecodeError."""
        return self._headers().group

    @property
    def redelivered(self) -> bool:
        """True: a consumer had the message before, and released or retried it, or its process died."""
        return self._redelivered

    @property
    def delivery_count(self) -> int:
        """The number of deliveries, with this one and those that ended by a death; release() takes its own back."""
        return self._failed + self._deaths + (0 if self._browsed else 1)

    @property
    def death(self) -> Death | None:
        """The death of a dead message, with its reason; None: it is not dead."""
        death = self._headers().death
        if death is None or death.signal is not None:
            return death
        from shmq.engine.membership.death_record import completed  # for the few that are dead

        try:
            return completed(membership_of(self._queue).live(), death)
        except ShmqError:
            return death  # the broker is closed by now

    # ---- the body ----------------------------------------------------------------------------------------------

    def _encoded(self) -> bytes | memoryview:
        """Returns the encoded body: in place if it is pinned, else a copy."""
        data = self._data()
        if data is None:
            raise SettlementError(
                f"message {self._id} of queue {self._queue.name!r} {self._fate()}; its body has gone with it",
                figures=f"position {self._position}",
                remedy="read m.body before you settle",
            )
        if data is False:
            raise self._damaged()
        return data

    def _damaged(self) -> CorruptionError | SettlementError:
        if self._outcome is None and not self._is_ours:
            return SettlementError(
                f"message {self._id} of queue {self._queue.name!r} was taken away, and its body has gone with it",
                figures=f"position {self._position}",
                remedy="read m.body before its time is over, or its queue full",
            )
        return CorruptionError(
            f"the checksum of message {self._id} of queue {self._queue.name!r} does not match its body",
            figures=f"position {self._position}, {quantity(self._size, 'byte')}",
            remedy="reject() takes it out; shmq check tells more",
        )

    def _decoded(self) -> T:
        """Decodes the body for `body`, where the core does not decode it by itself."""
        content_type = self._headers().content_type if self._content == 255 else None
        body = decode(self._content, content_type, self._encoded(), codec_of(self._queue))
        if not self._intact():  # it was when it was delivered; what lies in shared memory may have changed since
            raise self._damaged()
        return cast(T, body)

    def view(self) -> memoryview:
        """The encoded body, read-only, of `size` bytes. A view does not copy a body in a block but pins it, also after
        the settlement, until the view goes. It copies a small one, which lies in its slot.

        Raises CorruptionError for a damaged body, SettlementError when it has gone with the message.

        Example:
            >>> queue.put(b"hello")
            1
            >>> with queue.receive() as m:
            ...     bytes(m.view()[1:3])
            b'el'
        """
        data = self._encoded()
        return (data if isinstance(data, memoryview) else memoryview(data)).toreadonly()

    def array(self) -> NDArray[Any]:
        """The same as numpy, read-only: an array in the shape and dtype that were put; of other bodies a vector of
        `size` uint8.

        Not copied but pinned where view() is. Raises as view(), and DecodeError for a damaged description.

        Example:
            >>> import numpy
            >>> queue.put(numpy.ones((2, 3)))
            1
            >>> with queue.receive() as m:
            ...     m.array().shape
            (2, 3)
        """
        from shmq.codec_array import array_view

        if self._content == 3:
            return array_view(self.view())
        import_whole("numpy")
        import numpy

        array = numpy.frombuffer(self.view(), dtype=numpy.uint8)
        array.flags.writeable = False
        return array

    # ---- settlement --------------------------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """True after one of the four outcomes."""
        return self._outcome is not None and not self._browsed

    def _fate(self) -> str:
        """Tells how the message was settled before, for error texts."""
        if self._browsed:
            return "was only browsed"
        if self._outcome is None:
            return "went back when its consumer or broker was closed, its loop was left, or its lease was over"
        by = next((t.name for t in threading.enumerate() if t.ident == self._settled_by), "that has ended")
        return f"was {self._outcome} by thread {by} {clock.monotonic() - self._settled_at:.3f} s ago"

    def _claim(self, outcome: str) -> Delivery:
        """Gives the caller the right to settle, which only one call gets. Raises SettlementError."""
        delivery = self._claimed()
        if delivery is None:
            self._cannot(outcome)
        return cast(Delivery, delivery)

    def _cannot(self, outcome: str) -> None:
        """Raises the error of a settlement that there is no right to."""
        if self._browsed:
            raise only_browsed(self._queue, self._id)
        if self._is_held and self._consumer is not None and not still_ours(self._consumer):
            raise SettlementError(
                f"message {self._id} of queue {self._queue.name!r} belongs to the parent process",
                remedy="settle it there, or receive in each process for itself",
            )
        raise SettlementError(
            f"message {self._id} of queue {self._queue.name!r} {self._fate()}; it cannot be {outcome}",
            figures=f"position {self._position}",
            remedy="settle each message once, while its consumer is open",
        )

    def _end(self, done: bool, outcome: str) -> None:
        self._mark(outcome)
        if not done:
            self._late(outcome)

    def _late(self, outcome: str) -> None:
        """Raises the error of a settlement behind the loss of the message."""
        self._outcome = "taken away"
        raise taken_away(self._queue, self._id, self._position, self._expires_ns, outcome)

    def release(self, *, delay: float = 0.0, elsewhere: bool = False) -> None:
        """Give the message back to its place, uncounted. After the return no consumer gets a later message first.
        AMQP 1.0: released.

        delay: seconds until somebody can receive it. It keeps its place; until then later ones go before it.
        elsewhere: True: never again to this consumer; for all others it is as before. Kept by the consumer, so another
            one of the same process, or the next one after its close, may get it.
        Raises SettlementError as ack(); ValueError, TypeError for an unfit delay or elsewhere.

        Example:
            >>> queue.put_many(["a", "b"])
            >>> queue.receive().release()
            >>> queue.get()
            'a'
            >>> queue.receive().release(delay=60)
            >>> queue.qsize(), queue.statistics().delayed
            (0, 1)
        """
        delay_ns = delay_in_ns(delay)
        check_bool(elsewhere, "elsewhere")
        consumer = self._consumer
        delivery = self._claim("released")
        if elsewhere and consumer is not None:
            refuse(consumer, delivery.position)
        self._end(delivery.release(False, delay_ns), "released")

    def retry(self, error: BaseException | str | None = None, *, delay: float | None = None) -> None:
        """Give the message back as a failed attempt; at max_attempts it is dead, with `error` as the reason.
        AMQP 1.0: modified, with delivery-failed.

        error: why; an exception with its traceback, or a text. Kept with a dead message, see Message.death.
        delay: seconds until it is tried again; None: as the queue's retry_delay says. Later ones go before it.
        Raises SettlementError as ack(); ValueError, TypeError for an unfit error or delay, and it is still in hand.

        Example:
            >>> _ = queue.put("a")
            >>> queue.receive().retry("no connection")
            >>> with queue.receive() as m:
            ...     m.delivery_count, m.redelivered
            (2, True)
        """
        delay_ns = None if delay is None else delay_in_ns(delay)
        check_error(error)
        delivery = self._claim("retried")
        self._end(retry(self._queue, delivery, error, delay_ns), "retried")

    def reject(self, error: BaseException | str | None = None) -> None:
        """Declare the message dead at once, with `error` as the reason. AMQP 1.0: rejected.

        error: why; an exception with its traceback, or a text. See Message.death.
        Raises SettlementError as ack(), TypeError for an unfit error, and it is still in hand.

        Example:
            >>> _ = queue.put("a")
            >>> queue.receive().reject("not wanted")
            >>> with broker.queue("jobs.dead").receive() as dead:
            ...     dead.body, dead.death.reason, dead.death.error
            ('a', 'rejected', 'not wanted')
        """
        check_error(error)
        delivery = self._claim("rejected")
        self._end(reject(self._queue, delivery, error), "rejected")

    def touch(self) -> None:
        """Begin the lease anew, where the queue has one; else only check that this consumer still has the message.

        Raises SettlementError when it was settled, or taken away: then somebody else may be at work on it.

        Example:
            >>> jobs = broker.queue("jobs", lease=60)
            >>> _ = jobs.put("a")
            >>> with jobs.receive() as m:
            ...     m.touch()
        """
        ours = self._touch()
        if ours is None:
            raise SettlementError(
                f"message {self._id} of queue {self._queue.name!r} {self._fate()}; it cannot be touched",
                figures=f"position {self._position}",
                remedy="touch it while you hold it",
            )
        if not ours:
            raise taken_away(self._queue, self._id, self._position, self._expires_ns, "touched")

    def _leave_by(self, error: BaseException) -> None:
        """Settles the message after its block has ended by an exception."""
        try:
            if isinstance(error, Exception):
                self.retry(error)
            else:
                self.release()
        except SettlementError as late:
            error.add_note(str(late))  # what ended the block is what the caller has to see
