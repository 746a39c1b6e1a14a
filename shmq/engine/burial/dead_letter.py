"""Dead messages: out of their queue, into the one for the dead, with the reason. Never lost on the way.

It is moved in one step: whoever dies when, it is in its queue or among the dead, never in both, never in none. Where
the queue of the dead has no room the message stays locked by this process and is tried again.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, cast, get_args

from shmq.core.queue import DEAD, EXPIRED, NAME_MAX, Delivery
from shmq.death import Death, DeathReason
from shmq.engine.membership.obituary import endings
from shmq.errors import DecodeError, Full, OutOfSpace, ShmqError, ShutDown
from shmq.headers import decode_headers, encode_headers

if TYPE_CHECKING:
    from shmq.engine.membership.membership import Membership
    from shmq.engine.queue.queue import Queue

__all__ = [
    "SUFFIX",
    "FailureReason",
    "Grave",
    "TakingPool",
    "bury",
    "check_error",
    "default_name",
    "last_line",
    "retry_graves",
]

SUFFIX: Final = ".dead"
FailureReason = Literal["rejected", "max_deliveries", "max_deaths"]  # those of which the log tells
_FAILURES: Final = get_args(FailureReason)
_LOG: Final = logging.getLogger("shmq.broker")


class TakingPool(Protocol):
    """A pool of workers, as far as the queue's handle by which it takes knows of it."""

    def fails(self, delivery: Delivery) -> None:
        """An attempt has failed, and the message is about to go back or to die."""

    def dies(self, delivery: Delivery, reason: FailureReason) -> None:
        """A message is about to die."""

    def died(self, delivery: Delivery, reason: FailureReason, error: str | None) -> None:
        """It has; the pool tells of it in the log."""

    def retry_delay_ns(self, failed: int) -> int:
        """Where the queue names no retry_delay: until the next attempt of what had failed so often before."""


@dataclass(slots=True)
class Grave:
    """A dead message that is locked by this process and not yet among the dead."""

    queue: Queue[Any]
    delivery: Delivery
    death: Death


def default_name(name: str) -> str:
    """The queue for the dead of a queue that names none. A name that is too long for the suffix is shortened."""
    room = NAME_MAX - len(SUFFIX)
    shortened = name.encode()[:room].decode(errors="ignore")
    if shortened + SUFFIX == name:  # as long as a name can be, with the suffix: it would be its own
        shortened = shortened[:-1]
    return shortened + SUFFIX


def check_error(error: object) -> None:
    """Raises TypeError for what cannot be kept as a reason; while the message is still in hand."""
    if error is not None and not isinstance(error, BaseException | str):
        raise TypeError(f"error={error!r:.60}: an exception or a text is expected; a delay is given as delay=seconds")


def _reason_text(error: BaseException | str | None) -> str | None:
    if error is None or isinstance(error, str):
        return error
    import traceback  # when first needed: few messages die

    return "".join(traceback.format_exception(error)).rstrip()


def _death_of(queue: Queue[Any], delivery: Delivery, reason: DeathReason, error: BaseException | str | None) -> Death:
    pids, number = endings(queue._membership.live(), delivery.message_id)
    return Death(queue=queue.name, reason=reason, error=_reason_text(error), at=time.time(), pids=pids, signal=number)


def _entomb(grave: Grave) -> bool:
    """Moves it. False: not ours any more. Raises Full, OutOfSpace, and it stays locked by this process."""
    delivery = grave.delivery
    target = grave.queue._dead_letter_queue()
    try:
        block = decode_headers(delivery.head())
        head = encode_headers(block.user, content_type=block.content_type, group=block.group, death=grave.death)
    except (DecodeError, ValueError, TypeError):
        head = encode_headers(None, death=grave.death)  # damaged headers must not keep it out of the grave
    view = delivery.view()
    body = memoryview(view) if view is not None else delivery.body()
    if body is False:
        if not delivery.ours():
            return False  # deleted with its queue: what was read is another message's
        body = b""  # damaged: the report says so, and its headers remain
    why = EXPIRED if grave.death.reason == "expired" else DEAD
    return delivery.move(target, delivery.content, head, (body,), why)


def bury(queue: Queue[Any], delivery: Delivery, reason: DeathReason, error: BaseException | str | None = None) -> bool:
    """Move an acquired message to the dead.

    Arguments:
        queue: where it died.
        delivery: acquired or locked by this process.
        reason: as in Death.
        error: text, or an exception whose traceback is kept.

    Returns False if the message is not ours any more. Without room among the dead it stays locked, and is tried again
    by later calls of this process.
    """
    if not delivery.lock():
        return False
    grave = Grave(queue, delivery, _death_of(queue, delivery, reason, error))
    pool, failure = queue._pool if reason in _FAILURES else None, cast("FailureReason", reason)
    if pool is not None:
        pool.dies(delivery, failure)
    try:
        dead = _entomb(grave)
    except (Full, OutOfSpace, ShutDown) as full:
        _say(grave, f", but it cannot go among the dead: {full}; it is tried again")
        dead, told = _keep(grave), True
    except BaseException:
        delivery.release(True)
        raise
    else:
        told = reason not in _FAILURES or pool is not None
    if dead and not told:
        _say(grave, f"; it went to queue {queue._dead_letter_name()!r}")
    if dead and pool is not None:
        pool.died(delivery, failure, grave.death.error)
    return dead


def _say(grave: Grave, fate: str) -> None:
    queue, death, message_id = grave.queue, grave.death, grave.delivery.message_id
    why = f": {last_line(death.error)}" if death.error else ""
    extra = {"queue": queue.name, "message_id": message_id, "reason": death.reason, "error": death.error}
    _LOG.warning(
        "message %d of queue %r is dead (%s%s)%s", message_id, queue.name, death.reason, why, fate, extra=extra
    )


def last_line(text: str) -> str:
    """Of a traceback: the error."""
    return text.rstrip().rpartition("\n")[2]


def _keep(grave: Grave) -> bool:
    """Until there is room. In the name of the process: its consumer may be closed before, and the row be another's."""
    mine = grave.queue._steal(grave.delivery.position)
    if mine is None:
        return False  # deleted with its queue
    grave.delivery = mine
    grave.queue._membership.keep(grave)
    return True


def retry_graves(membership: Membership) -> None:
    """Try again to bury what found no room. Called wherever somebody looks or takes."""
    if not membership.graves:
        return
    with membership.lock:
        waiting = membership.take_graves()
        for grave in waiting:
            try:
                if grave.delivery.lock():  # else deleted with its queue
                    _entomb(grave)
            except ShmqError:
                membership.keep(grave)
