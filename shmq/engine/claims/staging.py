"""Messages that are put into one queue to be moved into another: with the rules of the second one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from shmq.core.handles import counters_of
from shmq.engine.arrow.bodies import Bodies
from shmq.engine.arrow.outgoing import Outgoing
from shmq.engine.arrow.put_rows import put_bodies, put_row
from shmq.engine.queue.queue import put_settings

if TYPE_CHECKING:
    from shmq.engine.queue.queue import Queue

__all__ = ["put_count", "put_staged"]


def put_staged(stage: Queue[Any], target: Queue[Any], rows: Outgoing | Bodies) -> None:
    """Puts into `stage` what shall be moved into `target`, if that takes such options.

    Arguments:
        stage: a queue without priorities and groups: its order is that of the puts.
        target: says what is allowed: priorities, groups, times.
        rows: one, or several as columns.

    Raises Full, OutOfSpace at once, with `accepted` for columns; ValueError, TypeError for an option that does not
    fit; MessageTooLarge.
    """
    rules = partial(put_settings, target)
    if isinstance(rows, Bodies):
        put_bodies(stage, target.name, rules, rows, 0)
    else:
        put_row(stage, target.name, rules, rows, 0)


def put_count(queue: Queue[Any]) -> int:
    """How many messages were ever put into it, whatever became of them."""
    return counters_of(queue)["put"]
