"""What waits in a broker for whoever looks or takes: burials, and queues that nobody uses."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shmq.core.handles import is_unused, settings_of, steal_expired
from shmq.core.queue import do_due, ending_queues, queue_names, reap
from shmq.engine.burial.alert import tell_alerts
from shmq.engine.burial.dead_letter import retry_graves
from shmq.engine.burial.deletion import bury_left, delete
from shmq.engine.burial.outcome import bury_expired_one
from shmq.engine.handle.open_queue import open_queue
from shmq.errors import ShmqError

if TYPE_CHECKING:
    from shmq.engine.handle.open_queue import OpenQueue
    from shmq.engine.membership.membership import Membership

__all__ = ["bury_expired", "do_chores", "end_unused", "put_in_order"]

_LOG = logging.getLogger("shmq.broker")


def put_in_order(membership: Membership) -> None:
    """What the dead held, and what was due, is where it belongs: for who counts. Raises what a look would raise."""
    reap(membership.live())
    end_unused(membership)
    tell_alerts(membership)  # who only looks is as good as who waits
    _bury_all_left(membership)  # also what came back to deleted queues by somebody who has not buried it


def end_unused(membership: Membership) -> None:
    """Queues that nobody has used for their time are deleted, and whatever else was due is done."""
    do_due(membership.live())
    do_chores(membership)


def do_chores(membership: Membership) -> None:
    """What the core cannot do by itself, if there is any."""
    retry_graves(membership)
    if membership.member.burials():
        bury_expired(membership)
    if membership.member.alerts():
        tell_alerts(membership)


def bury_expired(membership: Membership) -> None:
    """Takes to the dead what has expired, on every queue that says so, and what deleted queues have left.

    Called when the core has found that there is something.
    """
    member = membership.live()
    member.burials()
    for queue in _opened(membership, queue_names(member)):
        try:
            if settings_of(queue)["dead_letter_expired"]:
                while (delivery := steal_expired(queue)) is not None:
                    bury_expired_one(queue, delivery)
            if is_unused(queue):
                delete(queue)
        except ShmqError as error:  # deleted meanwhile, or no room: the core looks again
            _LOG.debug("expired messages of queue %r: %s", queue.name, error)
    _bury_all_left(membership)


def _bury_all_left(membership: Membership) -> None:
    for queue in _opened(membership, ending_queues(membership.live())):
        try:
            bury_left(queue)
        except ShmqError as error:  # no room: the core looks again
            _LOG.debug("messages of queue %r, which is deleted: %s", queue.name, error)


def _opened(membership: Membership, found: list[tuple[bytes, int, int]]) -> Iterator[OpenQueue]:
    for name, index, incarnation in found:
        if not name:
            continue  # it is damaged: told to who wants to know the names
        try:
            queue = open_queue(membership, name.decode(errors="replace"), index, incarnation)
        except ShmqError:
            continue  # gone meanwhile
        yield queue
