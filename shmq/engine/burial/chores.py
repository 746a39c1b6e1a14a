"""What waits in a broker for whoever looks or takes: burials, and queues that nobody uses."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shmq.core.queue import do_due, ending_queues, queue_names, reap
from shmq.engine.burial.dead_letter import bury, retry_graves
from shmq.errors import ShmqError

if TYPE_CHECKING:
    from shmq.engine.broker.broker import Broker
    from shmq.engine.queue.queue import Queue

__all__ = ["bury_expired", "bury_left", "do_chores", "end_unused", "put_in_order"]

_LOG = logging.getLogger("shmq.broker")


def put_in_order(broker: Broker) -> None:
    """What the dead held, and what was due, is where it belongs: for who counts. Raises what a look would raise."""
    reap(broker._membership.live())
    end_unused(broker)
    _bury_all_left(broker)  # also what came back to deleted queues by somebody who has not buried it


def end_unused(broker: Broker) -> None:
    """Queues that nobody has used for their time are deleted, and whatever else was due is done."""
    do_due(broker._membership.live())
    do_chores(broker)


def do_chores(broker: Broker) -> None:
    """What the core cannot do by itself, if there is any."""
    retry_graves(broker._membership)
    if broker._membership.member.burials():
        bury_expired(broker)


def bury_expired(broker: Broker) -> None:
    """Takes to the dead what has expired, on every queue that says so, and what deleted queues have left.

    Called when the core has found that there is something.
    """
    member = broker._membership.live()
    member.burials()
    for queue in _opened(broker, queue_names(member)):
        try:
            if queue._settings()["dead_letter_expired"]:
                while (delivery := queue._steal_expired()) is not None:
                    queue._bury_one_expired(delivery)
            if queue._is_unused():
                queue.delete()
        except ShmqError as error:  # deleted meanwhile, or no room: the core looks again
            _LOG.debug("expired messages of queue %r: %s", queue.name, error)
    _bury_all_left(broker)


def _bury_all_left(broker: Broker) -> None:
    for queue in _opened(broker, ending_queues(broker._membership.live())):
        try:
            bury_left(queue)
        except ShmqError as error:  # no room: the core looks again
            _LOG.debug("messages of queue %r, which is deleted: %s", queue.name, error)


def bury_left(queue: Queue[Any]) -> None:
    """Of a deleted queue: what has come back, or was put, while it was deleted, or since."""
    while (delivery := queue._steal_left()) is not None:
        bury(queue, delivery, "queue_deleted")


def _opened(broker: Broker, found: list[tuple[bytes, int, int]]) -> Iterator[Queue[Any]]:
    from shmq.engine.queue.queue import Queue  # which is built on this

    for name, index, incarnation in found:
        if not name:
            continue  # it is damaged: told to who wants to know the names
        try:
            queue = Queue._open(broker, name.decode(errors="replace"), None, index, incarnation)
        except ShmqError:
            continue  # gone meanwhile
        yield queue
