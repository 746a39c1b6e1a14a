"""Declares a queue: finds or makes it, and opens it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from shmq.core.queue import declare
from shmq.engine.handle.failure import no_memory_for_queue, options_mismatch
from shmq.engine.handle.max_memory import warn_of_excess
from shmq.engine.handle.open_queue import OpenQueue, open_queue
from shmq.errors import Full, NotFound, OptionsMismatch, OutOfSpace
from shmq.names import check_queue_name
from shmq.options import QueueSettings

if TYPE_CHECKING:
    from shmq.engine.membership.membership import Membership

__all__ = ["declared"]

Q = TypeVar("Q", bound=OpenQueue)


def declared(
    membership: Membership, name: str, settings: QueueSettings, *, create: bool, opened: Callable[[int, int], Q]
) -> Q:
    """Returns the queue of this name, as `opened` makes it.

    Arguments:
        settings: what it has, or gets.
        create: False: NotFound when there is none.
        opened: of index and incarnation; raises NotFound when the queue was deleted meanwhile.

    Raises what Broker.queue() says.
    """
    encoded = check_queue_name(name)
    for _ in range(100):
        try:
            index, incarnation, differs = declare(membership.live(), encoded, settings, create)
        except (Full, OutOfSpace) as lacking:
            raise no_memory_for_queue(lacking, membership.live(), name, membership.name) from None
        except NotFound:
            raise NotFound(
                f"there is no queue {name!r} in the broker {membership.name}",
                remedy="check the name, or leave out create=False to make it",
            ) from None
        if differs is not None:
            raise _mismatch(membership, name, settings, differs)
        try:
            queue = opened(index, incarnation)
        except NotFound:
            continue  # the queue was deleted in between
        if settings.max_memory:
            warn_of_excess(membership)
        return queue
    raise NotFound(f"queue {name!r} is deleted again and again", remedy="find the process that deletes it")


def _mismatch(membership: Membership, name: str, settings: QueueSettings, differs: str) -> OptionsMismatch:
    there = declared(
        membership,
        name,
        QueueSettings(),
        create=False,
        opened=lambda index, incarnation: open_queue(membership, name, index, incarnation),
    )
    return options_mismatch(there, name, settings, differs)
