"""Deleting a queue: its messages go to the dead first, if a queue for them was named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shmq.core.handles import browse_entry, delete_at_once, ends_of, settings_of, shut_down, steal, steal_left
from shmq.core.queue import STOPPED, reap
from shmq.engine.dead_lettering.dead_letter import (
    dead_letter_name,
    give_back_undeleted,
    is_named,
    is_waiting,
    move_to_dead_letters,
    retry_dead_letters,
)
from shmq.engine.handle.open_queue import membership_of
from shmq.engine.handle.places import first_of
from shmq.errors import Full

if TYPE_CHECKING:
    from shmq.core.queue import Delivery
    from shmq.engine.handle.open_queue import OpenQueue

__all__ = ["dead_letter_left", "delete"]


def delete(queue: OpenQueue) -> None:
    """Implements Queue.delete."""
    named = is_named(queue)
    if named:
        before = settings_of(queue)["shut_down"]
        retry_dead_letters(membership_of(queue))
        shut_down(queue, STOPPED)
        try:
            _move_to_the_dead(queue)
        except BaseException:
            give_back_undeleted(queue)
            shut_down(queue, before)  # it was not deleted, and is in service as it was
            raise
    delete_at_once(queue)
    if named:
        dead_letter_left(queue)


def _move_to_the_dead(queue: OpenQueue) -> None:
    reap(membership_of(queue).live())  # a dead mover's message is to be in one queue before it is stolen from there
    _check_room(queue)
    for place in first_of(ends_of(queue)):
        while True:
            place, seen = browse_entry(queue, place)
            if seen is None:
                break
            delivery: Delivery | None = steal(queue, seen[0], True)
            if delivery is not None:
                move_to_dead_letters(queue, delivery, "queue_deleted")
                _check_room(queue)


def _check_room(queue: OpenQueue) -> None:
    if is_waiting(queue):
        raise Full(
            f"queue {queue.name!r} is not deleted: no room for its messages among the dead",
            figures=f"dead_letter={dead_letter_name(queue)!r}",
            remedy="take messages out there, or purge() this queue first",
        )


def dead_letter_left(queue: OpenQueue) -> None:
    """Dead-letters the messages that came back to a deleted queue, or were put, during its deletion or later."""
    while (delivery := steal_left(queue)) is not None:
        move_to_dead_letters(queue, delivery, "queue_deleted")
