"""Upkeep that needs Python, done at looks and takes: dead letters, alerts, and queues that no process uses."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shmq.core.handles import hurry_rows, is_unused, settings_of, steal_expired
from shmq.core.queue import do_due, ending_queues, queue_names, reap
from shmq.engine.dead_lettering.alert import tell_alerts
from shmq.engine.dead_lettering.dead_letter import retry_dead_letters
from shmq.engine.dead_lettering.deletion import dead_letter_left, delete
from shmq.engine.dead_lettering.outcome import settle_expired
from shmq.engine.handle.open_queue import open_queue
from shmq.errors import ShmqError

if TYPE_CHECKING:
    from shmq.engine.handle.open_queue import OpenQueue
    from shmq.engine.membership.membership import Membership

__all__ = ["do_upkeep", "end_unused", "put_in_order", "settle_all_expired"]

_LOG = logging.getLogger("shmq.broker")


def put_in_order(membership: Membership) -> None:
    """Moves messages that the dead held, or that are due, to their places before a count. Raises as a look would."""
    reap(membership.live())
    end_unused(membership)
    tell_alerts(membership)  # a process that only looks tells as well as one that waits
    _dead_letter_all_left(membership)  # also what came back to deleted queues since they were deleted


def end_unused(membership: Membership) -> None:
    """Deletes queues that no process has used for their time, and does what else is due."""
    do_due(membership.live())
    do_upkeep(membership)


def do_upkeep(membership: Membership) -> None:
    """Does the duties that the core cannot do by itself, if there are any."""
    retry_dead_letters(membership)
    if membership.member.dead_letters_due():
        settle_all_expired(membership)
    if membership.member.alerts():
        tell_alerts(membership)


def settle_all_expired(membership: Membership) -> None:
    """Takes to the dead what has expired, on every queue that says so, and what deleted queues have left.

    Called when the core has found that there is something.
    """
    member = membership.live()
    member.dead_letters_due()
    for queue in _opened(membership, queue_names(member)):
        try:
            if settings_of(queue)["dead_letter_expired"]:
                _settle_expired_of(queue)
            if is_unused(queue):
                delete(queue)
        except ShmqError as error:  # deleted meanwhile, or no room: the core looks again
            _LOG.debug("expired messages of queue %r: %s", queue.name, error)
    _dead_letter_all_left(membership)


def _settle_expired_of(queue: OpenQueue) -> None:
    if (delivery := steal_expired(queue)) is None:
        return
    while delivery is not None:
        settle_expired(queue, delivery)
        delivery = steal_expired(queue)
    hurry_rows(queue)


def _dead_letter_all_left(membership: Membership) -> None:
    for queue in _opened(membership, ending_queues(membership.live())):
        try:
            dead_letter_left(queue)
        except ShmqError as error:  # no room: the core looks again
            _LOG.debug("messages of queue %r, which is deleted: %s", queue.name, error)


def _opened(membership: Membership, found: list[tuple[bytes, int, int]]) -> Iterator[OpenQueue]:
    for name, index, incarnation in found:
        if not name:
            continue  # it is damaged: told where names are listed
        try:
            queue = open_queue(membership, name.decode(errors="replace"), index, incarnation)
        except ShmqError:
            continue  # gone meanwhile
        yield queue
