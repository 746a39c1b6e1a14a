"""The outcome of a delivery that failed, or that no consumer may have: back into its queue, or to the dead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shmq.core.handles import settings_of, steal_poisoned
from shmq.core.queue import SETTINGS
from shmq.engine.dead_lettering.dead_letter import is_for_the_dead, is_waiting, move_to_dead_letters
from shmq.engine.handle.open_queue import pool_of

if TYPE_CHECKING:
    from shmq.core.queue import Delivery
    from shmq.engine.handle.open_queue import OpenQueue

__all__ = ["dead_letter_found", "dead_letter_poisoned", "reject", "retry", "retry_delay_ns", "settle_expired"]

_RETRY_DELAY_BIT: Final = 1 << SETTINGS.index("retry_delay")


def retry_delay_ns(queue: OpenQueue, delivery: Delivery) -> int:
    """Returns how long a message that has failed once more rests before its next attempt."""
    settings, pool = settings_of(queue), pool_of(queue)
    if pool is not None and not settings["given"] & _RETRY_DELAY_BIT:
        return pool.retry_delay_ns(delivery.delivery)
    steps = settings["retry_delay"]
    return steps[min(delivery.delivery, len(steps) - 1)] if steps else 0


def retry(queue: OpenQueue, delivery: Delivery, error: BaseException | str | None, delay_ns: int | None = None) -> bool:
    """Gives a message back after a failed attempt, or moves it to the dead. False: another process has it.

    Arguments:
        queue: where it was received.
        error: as move_to_dead_letters() takes it.
        delay_ns: until it is tried again; None: as the queue says.
    """
    pool = pool_of(queue)
    if pool is not None:
        pool.fails(delivery)
    if delivery.is_last_attempt:
        return move_to_dead_letters(queue, delivery, "max_attempts", error)
    return delivery.release(True, retry_delay_ns(queue, delivery) if delay_ns is None else delay_ns)


def reject(queue: OpenQueue, delivery: Delivery, error: BaseException | str | None) -> bool:
    """Moves a message to the dead at once. False: another process has it."""
    if is_for_the_dead(queue):
        return delivery.release(True)  # nothing dies further from here
    return move_to_dead_letters(queue, delivery, "rejected", error)


def dead_letter_found(queue: OpenQueue, delivery: Delivery) -> None:
    """Moves a message to the dead that has expired, or whose consumers died too often. No consumer gets it again."""
    reason = delivery.why_dead or "max_attempts"
    if reason == "expired":
        settle_expired(queue, delivery)
        return
    move_to_dead_letters(queue, delivery, reason)


def settle_expired(queue: OpenQueue, delivery: Delivery) -> None:
    """Settles a message whose time to live is over."""
    if is_for_the_dead(queue):
        delivery.expire()  # nothing dies further from here
    else:
        move_to_dead_letters(queue, delivery, "expired")


def dead_letter_poisoned(queue: OpenQueue) -> None:
    """Moves to the dead the messages that failed on their last attempt in a process that could not move them.

    Where there is no room among the dead, the rest stays where it is. The next taker does the same.
    """
    while not is_waiting(queue) and (delivery := steal_poisoned(queue)) is not None:
        dead_letter_found(queue, delivery)
