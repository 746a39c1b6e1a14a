"""A queue that is open in this process, as every room of the engine knows it: what Queue is built on."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from shmq.core.queue import CODEC_BYTES, CODEC_DEFAULT, CODEC_OTHER, CODEC_PICKLE, QueueHandle
from shmq.engine.handle.failure import failure_of
from shmq.engine.handle.long_wait import tell_of_long_wait
from shmq.engine.membership.membership import Membership
from shmq.errors import ShmqError

if TYPE_CHECKING:
    from typing import Self

    from shmq.codec import AnyCodec
    from shmq.engine.handle.taking_pool import TakingPool

__all__ = [
    "OpenQueue",
    "codec_of",
    "dead_letters_of",
    "membership_of",
    "open_queue",
    "pool_of",
    "same_queue",
    "set_dead_letters",
    "set_pool",
]


def _kind_of(codec: AnyCodec) -> int:
    if codec is None:
        return CODEC_DEFAULT
    if codec == "pickle":
        return CODEC_PICKLE
    return CODEC_BYTES if codec == "bytes" else CODEC_OTHER


class OpenQueue(QueueHandle):
    """Base of Queue. The engine opens one of these where it needs a queue that no user has asked for."""

    _membership: Membership
    _name: str
    _codec: AnyCodec
    _pool: TakingPool | None = None  # the pool that takes by this handle
    _dead_letters: tuple[int, OpenQueue] | None = None  # the queue for its dead, while the settings have this version

    @classmethod
    def _opened(cls, membership: Membership, name: str, codec: AnyCodec, index: int, incarnation: int) -> Self:
        self = cls.__new__(cls)
        self._membership, self._name, self._codec = membership, name, codec
        self._bind(membership.live(), index, incarnation, _kind_of(codec))
        return self

    def __repr__(self) -> str:
        try:
            ready = f", {self._ready():,} ready"
        except ShmqError:  # deleted, or closed here
            ready = ""
        return f"<{type(self).__name__} {self._name!r} of {self._membership.name}{ready}>"

    @property
    def name(self) -> str:
        """The queue's name."""
        return self._name

    # ---- called by the native core -----------------------------------------------------------------------------

    def _attach(self) -> None:
        self._membership.live()
        raise AssertionError("a queue without a binding")  # reached only between __new__ and _opened

    def _failure(self, status: str, trail: str, errno: int) -> BaseException:
        return failure_of(self, self._name, self._membership, status, trail, errno)

    def _waits_for_room(self, status: str, seconds: float) -> bool:
        return tell_of_long_wait(self, self._name, self._membership, status, seconds)


def open_queue(membership: Membership, name: str, index: int, incarnation: int) -> OpenQueue:
    """Opens the queue of a directory entry, with the default codec. Raises NotFound when it was deleted meanwhile."""
    return OpenQueue._opened(membership, name, None, index, incarnation)


def same_queue(queue: OpenQueue) -> OpenQueue:
    """Returns another handle on the queue, of the same class, which keeps no Broker."""
    return type(queue)._opened(queue._membership, queue._name, queue._codec, *queue._identity())


# A user of Queue is to see none of these; no frame of Python where each message is read.
membership_of: Final[Callable[[OpenQueue], Membership]] = attrgetter("_membership")
codec_of: Final[Callable[[OpenQueue], AnyCodec]] = attrgetter("_codec")
pool_of: Final[Callable[[OpenQueue], TakingPool | None]] = attrgetter("_pool")


dead_letters_of: Final[Callable[[OpenQueue], tuple[int, OpenQueue] | None]] = attrgetter("_dead_letters")


def set_dead_letters(queue: OpenQueue, found: tuple[int, OpenQueue] | None) -> None:
    """Notes the queue for its dead, and the version of the settings that name it; None: forgets it."""
    queue._dead_letters = found


def set_pool(queue: OpenQueue, pool: TakingPool | None) -> None:
    """Notes which pool takes by the handle from now on; None: no pool."""
    queue._pool = pool
