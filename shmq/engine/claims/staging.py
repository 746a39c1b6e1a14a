"""Messages that are put into one queue to be moved into another: with the rules of the second one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from shmq.core.handles import counters_of, settings_of
from shmq.engine.arrow.bodies import Bodies
from shmq.engine.arrow.outgoing import Outgoing
from shmq.engine.arrow.put_rows import Rules, put_bodies, put_row
from shmq.engine.handle.open_queue import membership_of
from shmq.engine.queue.queue import put_settings
from shmq.errors import Full
from shmq.wait_time import OTHERS_FLOW

if TYPE_CHECKING:
    from shmq.engine.queue.queue import Queue

__all__ = ["put_count", "put_staged", "roomy_stages", "takes_more"]

_SLOTS: Final = 65_536  # of a queue without options, where a sixteenth of memory has them
_SLOT_BYTES: Final = 192


def put_staged(stage: Queue[Any], target: Queue[Any], rows: Outgoing | Bodies) -> None:
    """Puts into `stage` what shall be moved into `target`, if that takes such options.

    Arguments:
        stage: a queue without priorities and groups: its order is that of the puts.
        target: says what is allowed: priorities, groups, times.
        rows: one, or several as columns.

    Raises Full, OutOfSpace at once, with `accepted` for columns, Full for want of memory after ten seconds; ValueError,
    TypeError for an option that does not fit; MessageTooLarge.
    """
    rules = partial(put_settings, target)
    try:
        _put(stage, target, rules, rows, 0)
    except Full as full:
        if full.resource != "memory":
            raise
        left = rows.behind(full.accepted) if isinstance(rows, Bodies) else rows
        try:
            _put(stage, target, rules, left, OTHERS_FLOW)
        except Full as again:
            again.accepted += full.accepted
            raise


def _put(stage: Queue[Any], target: Queue[Any], rules: Rules, rows: Outgoing | Bodies, timeout: float) -> None:
    if isinstance(rows, Bodies):
        put_bodies(stage, target.name, rules, rows, timeout)
    else:
        put_row(stage, target.name, rules, rows, timeout)


def put_count(queue: Queue[Any]) -> int:
    """Returns how many messages were ever put into the queue, gone or not."""
    return counters_of(queue)["put"]


def takes_more(queue: Queue[Any], count: int, more: int, stages: Callable[[], int]) -> bool:
    """Says whether so many more messages shall go into a queue that has `count`, rather than into another queue.

    False: it has no slots for them, so its oldest would go to disk and come back; and there is memory for the slots of
    another queue, since half of the broker's is free, and will be when all `stages` have filled theirs.
    """
    if count + more <= settings_of(queue)["slots"]:
        return True
    usage = membership_of(queue).live().usage()
    return bool(2 * usage["used"] > usage["memory"]) or stages() >= roomy_stages(usage["memory"])


def roomy_stages(memory: int) -> int:
    """Returns how many queues without options fill half of a broker's memory when all their slots are in use."""
    ring = min(memory // 16, _SLOTS * _SLOT_BYTES)
    return memory // 2 // (ring + ring // 4)  # a queue without options has a front ring, too
