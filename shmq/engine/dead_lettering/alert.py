"""Alerts for people, about queues and the disk: one process looks, one tells, in the log."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from shmq.core.handles import alert_flow, alert_is_ours, alert_largest, alert_look, census_of, settings_of
from shmq.core.queue import ALERT_AGE, ALERT_BYTES, ALERT_MESSAGES, alert_queues, oldest_ready
from shmq.engine.handle.failure import full_disk
from shmq.engine.handle.open_queue import membership_of, open_queue
from shmq.errors import ShmqError
from shmq.quantity import quantity

if TYPE_CHECKING:
    from shmq.engine.handle.open_queue import OpenQueue
    from shmq.engine.membership.membership import Membership

__all__ = ["raised", "tell_alerts", "tell_alerts_of"]

_LOG: Final = logging.getLogger("shmq.alert")
_local = threading.local()

_FLOW: Final = {
    "began": "flows to disk: it has more than fits into memory, and its oldest or delayed messages wait in files",
    "recovered": "has recovered: all of its messages are in memory again",
    "both": "has flowed to disk, and has recovered: all of its messages are in memory again",
}


def tell_alerts(membership: Membership) -> None:
    """Looks for what is to be told, and tells what no other process has, if anybody here listens.

    Counts messages once a second, whichever process looks. A queue that cannot be looked at just now (it is being
    deleted) is left to the next look. A process that looks tells as well how many messages more have died.
    """
    membership.deaths.tell_rest()
    if _begins():
        try:
            for name, index, incarnation in alert_queues(membership.live()):
                with suppress(ShmqError):  # deleted meanwhile
                    _tell_of(open_queue(membership, name.decode(errors="replace"), index, incarnation))
            _tell_of_disk(membership)
        except ShmqError:
            pass  # closed meanwhile: the call itself says so next
        finally:
            _local.telling = False


def tell_alerts_of(queue: OpenQueue) -> None:
    """Tells at once the alerts of one queue whose messages its user counts just now."""
    if _begins():
        try:
            _tell_of(queue, at_once=True)
        except ShmqError:
            pass  # as above
        finally:
            _local.telling = False


def _begins() -> bool:
    """Begins a look, but not during another one: a log handler that puts into a queue would look again."""
    if not _is_heard() or getattr(_local, "telling", False):
        return False
    _local.telling = True
    return True


def _is_heard() -> bool:
    """Says whether a log record has a handler. A process without one leaves the telling to other processes."""
    logger: logging.Logger | None = _LOG
    if not _LOG.isEnabledFor(logging.WARNING):
        return False
    while logger is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def _tell(queue: str | None, alert: str, text: str) -> None:
    named = "the broker" if queue is None else f"queue {queue!r}"
    _LOG.warning("%s %s", named, text, extra={"queue": queue, "alert": alert, "pid": os.getpid()})


def _tell_of(queue: OpenQueue, *, at_once: bool = False) -> None:
    flow = alert_flow(queue)
    if flow is not None:
        _tell(queue.name, "flowed" if flow == "began" else "recovered", _FLOW[flow])
    largest = alert_largest(queue)
    if largest:
        _tell(queue.name, "message_bytes", f"was given a message of {largest:,} bytes")
    if alert_look(queue) or at_once:
        for alert, kind, text in _reached(queue):
            if alert_is_ours(queue, kind):
                _tell(queue.name, alert, text)


def raised(queue: OpenQueue) -> list[str]:
    """Returns which thresholds of the queue are reached at this moment, in words. It logs nothing."""
    return [text for _, _, text in _reached(queue)]


def _reached(queue: OpenQueue) -> Iterator[tuple[str, int, str]]:
    messages, size, _, age_ns, _ = settings_of(queue)["alerts"]
    if not messages and not size and not age_ns:
        return
    seen = census_of(queue)
    count = seen["ready"] + seen["unsettled"] + seen["delayed"]
    if messages and count >= messages:
        yield "messages", ALERT_MESSAGES, f"has {quantity(count, 'message')}, its alerts= says {messages:,}"
    if size and seen["bytes"] >= size:
        yield "bytes", ALERT_BYTES, f"has {seen['bytes']:,} bytes of messages, its alerts= says {size:,}"
    oldest = oldest_ready(queue, seen) if age_ns else 0
    age = membership_of(queue).member.age_ns(oldest) if oldest else 0
    if age_ns and age >= age_ns:
        text = f"has a message that has been ready for {age / 1e9:,.1f} s, its alerts= says {age_ns / 1e9:g}"
        yield "age", ALERT_AGE, text


def _tell_of_disk(membership: Membership) -> None:
    marked, refused, used = membership.live().disk_alerts()
    if refused:
        full = full_disk("", membership)
        text = f"found no room on disk for messages that do not fit into memory: {full.figures}"
        _tell(None, "disk_full", f"{text}. Until there is room, producers wait or are told Full: {full.remedy}")
    elif marked:
        _tell(None, "disk", f"has {used:,} bytes on disk, nine tenths of its disk= or more")
