"""Logs a put that has waited long for room, and has no time-out that would end the wait."""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Final

from shmq.core.handles import takers_of
from shmq.engine.handle.failure import failure_of
from shmq.errors import Full, ShmqError
from shmq.quantity import quantity
from shmq.wait_time import LONG_WAIT

if TYPE_CHECKING:
    from shmq.core.queue import QueueHandle
    from shmq.engine.membership.membership import Membership

__all__ = ["LONG_WAIT", "tell_of_long_wait", "takers"]

_LOG: Final = logging.getLogger("shmq.queue")
_MOST_PIDS: Final = 5
_local = threading.local()

# Which limit was reached, and what raises it.
_LIMITS: Final = {
    "FULL_COUNT": ("full at its maxsize", "give it a larger maxsize"),
    "FULL_BYTES": ("full at its max_bytes", "give it a larger max_bytes"),
    "FULL_RESIDENT": ("all its memory in use, and another process at work on it", "look for a stopped process"),
    "FULL_RING": ("all slots in use", "make it with a maxsize that has room for all"),
    "FULL_DISK": ("no room on the disk for messages that do not fit into memory", ""),  # the remedy depends on the disk
    "FULL_MEMORY": ("the broker's memory is used up", "open a broker with more memory="),
}


def takers(queue: QueueHandle) -> str:
    """Names the processes that have a consumer of the queue, for the log."""
    pids = sorted(takers_of(queue))
    if not pids:
        return "consumers: none"
    shown = ", ".join(f"{pid} (this process)" if pid == os.getpid() else str(pid) for pid in pids[:_MOST_PIDS])
    more = f" and {len(pids) - _MOST_PIDS} more" if len(pids) > _MOST_PIDS else ""
    return f"consumers: pid {shown}{more}"


def tell_of_long_wait(queue: QueueHandle, name: str, membership: Membership, status: str, seconds: float) -> bool:
    """Logs that a put waits for room, if it has waited for long. The put calls this between two pieces of its wait.

    Returns True if the wait is logged, so that the put does not call again.

    Arguments:
        queue: the queue without room.
        name: its name.
        membership: the process's, in the queue's broker.
        status: the core's; it says which limit is reached.
        seconds: how long the put has waited so far.
    """
    if seconds < LONG_WAIT:
        return False
    if getattr(_local, "telling", False):
        return True  # a handler of the log puts into a queue, and waits there: that is this very wait
    _local.telling = True
    try:
        full = failure_of(queue, name, membership, status, "", 0)
        limit, larger = _LIMITS[status]
        _LOG.warning(
            "put into queue %r waits for room for %s now, and goes on waiting: %s (%s); %s; "
            "start consumers, %s, or put with a timeout",
            name,
            quantity(round(seconds), "second") if seconds >= 1 else f"{seconds:.1f} s",
            limit,
            full.figures if isinstance(full, Full) else "",
            takers(queue),
            larger or getattr(full, "remedy", ""),
            extra={"queue": name, "pid": os.getpid()},
        )
    except ShmqError:
        pass  # the queue was deleted or closed meanwhile: the put itself raises that next
    finally:
        _local.telling = False
    return True
