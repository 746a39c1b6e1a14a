"""The engine's queue as multiprocessing's queues use it: any object, by multiprocessing's own reducers."""

from __future__ import annotations

import copyreg
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any, Final, Literal

from shmq.codec import OCTETS, PICKLE, TEXT, decode
from shmq.codec_pickle import encode_pickle, load_pickle
from shmq.core.queue import SETTINGS
from shmq.engine.broker.broker import declared_for
from shmq.engine.handle.open_queue import membership_of
from shmq.engine.queue.queue import Queue
from shmq.errors import CorruptionError, NotFound, SettlementError
from shmq.options import QueueSettings
from shmq.quantity import quantity

if TYPE_CHECKING:
    from shmq.core.queue import Delivery
    from shmq.engine.broker.broker import Broker

__all__ = ["ObjectQueue"]

_SAID_TO_STAY: Final = 1 << SETTINGS.index("temporary")
_COPIED: Final = 65536  # bytes; above it a body is unpickled where it lies
# Nothing in them can have a reducer; the plain pickler is three times as fast.
_PLAIN: Final = frozenset((int, float, bool, type(None), str, bytes))


class ObjectQueue(Queue[Any]):
    """Takes bytes and str as they are and pickles all else. Nothing dies here: what fails to unpickle is taken."""

    @classmethod
    def make(cls, broker: Broker, name: str, maxsize: int) -> ObjectQueue:
        """Raises ValueError for a maxsize that is too large, Full or OutOfSpace without memory for its slots."""
        settings = QueueSettings(maxsize=maxsize or None, max_attempts=0, max_deaths=0)
        return cls._of(declared_for(broker, name, "pickle", settings, create=True))

    @classmethod
    def find(cls, broker: Broker, name: str) -> ObjectQueue:
        """Raises NotFound."""
        return cls._of(declared_for(broker, name, "pickle", QueueSettings(), create=False))

    @classmethod
    def _of(cls, queue: Queue[Any]) -> ObjectQueue:
        return cls._open(queue.broker, membership_of(queue), queue.name, "pickle", *queue._identity())

    # ---- called by the native core -----------------------------------------------------------------------------

    def _put_slow(self, body: Any, options: dict[str, Any]) -> int:
        if type(body) in _PLAIN:
            pieces = encode_pickle(body)
        else:
            # ForkingPickler does so when it is made; a subclass in Python would cost more than the pickling itself.
            pieces = encode_pickle(body, {**copyreg.dispatch_table, **ForkingPickler._extra_reducers})  # type: ignore[attr-defined]
        return self._put_encoded(PICKLE, None, tuple(pieces), options.get("timeout"), None)

    def _take(self, delivery: Delivery) -> tuple[Any] | None:
        try:
            body = self.decoded(delivery)
            settled = delivery.settle()  # in here: an interrupt just before it must not leave the object half taken
        except Exception:
            if not delivery.ours():
                return None  # taken away: what was decoded may have been another's, and get() goes on
            delivery.settle()  # as with multiprocessing: left in its place it would fail every get() to come
            raise
        except BaseException:
            delivery.release(False)
            raise
        return (body,) if settled else None

    def taken_away(self, delivery: Delivery) -> SettlementError:
        return SettlementError(
            f"a message of queue {self._name!r} was taken away before it was settled",
            figures=f"position {delivery.position}",
            remedy="its options were altered meanwhile; call get() again",
        )

    def decoded(self, delivery: Delivery) -> Any:
        """Returns the object. Raises what unpickling raises, CorruptionError for a damaged body."""
        content = delivery.content
        data: bytes | memoryview | Literal[False]
        if delivery.size <= _COPIED:
            data = delivery.body()
        else:
            view = delivery.view()
            data = delivery.body() if view is None else memoryview(view) if delivery.intact() else False
        if data is False and not delivery.ours():
            raise self.taken_away(delivery)
        if data is False:
            raise CorruptionError(
                f"the checksum of a message of queue {self._name!r} does not fit; the message is lost",
                figures=f"position {delivery.position}, {quantity(delivery.size, 'byte')}",
                remedy="something wrote into shared memory that is not its own; shmq check tells more",
            )
        if content == PICKLE:
            return load_pickle(data)
        if content == OCTETS:
            return bytes(data)
        if content == TEXT:
            return str(data, "utf-8")
        return decode(content, None, data, "pickle")

    # ---- how long it lives -------------------------------------------------------------------------------------

    def publish(self) -> None:
        """Marks the queue as public: any process may have it from now on, so its maker must not delete it.

        Kept with the queue, so that any process can say so: that somebody has said it is not temporary.
        """
        declared_for(self.broker, self._name, "pickle", QueueSettings(temporary=False), create=False)

    def is_public(self) -> bool:
        """Says whether any process has called publish()."""
        return bool(self._settings()["given"] & _SAID_TO_STAY)

    def remove(self) -> None:
        """Deletes the queue with all that is in it, unless it is public. A second call does nothing."""
        try:
            if not self.is_public():
                self._delete()
        except NotFound:
            pass
