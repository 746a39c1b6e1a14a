"""The memory that all queues of a broker may use by their max_memory, compared with the broker's own."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from shmq.core.handles import settings_of
from shmq.core.queue import queue_names
from shmq.engine.handle.open_queue import open_queue
from shmq.errors import ShmqError

if TYPE_CHECKING:
    from shmq.engine.membership.membership import Membership

__all__ = ["excess_of", "warn_of_excess"]

_LOG: Final = logging.getLogger("shmq.flow")
_NAMED: Final = 5


def excess_of(membership: Membership) -> str | None:
    """Describes the excess for the log; None: all queues can reach their max_memory at the same time.

    A sixteenth of the memory is kept for slots, so bodies have the rest of it.
    """
    found: list[tuple[int, str]] = []
    for raw, index, incarnation in queue_names(membership.live()):
        name = raw.decode(errors="replace")
        try:
            limit = settings_of(open_queue(membership, name, index, incarnation))["max_memory"]
        except ShmqError:
            continue  # deleted meanwhile, or damaged, which is told where it is used
        if limit:
            found.append((limit, name))
    total, most = sum(limit for limit, _ in found), membership.memory - membership.memory // 16
    if total <= most:
        return None
    found.sort(key=lambda each: (-each[0], each[1]))
    named = ", ".join(f"{name!r} {limit:,}" for limit, name in found[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return (
        f"the max_memory of its queues is {total:,} bytes in all ({named}{more}), and it has {most:,} for messages: "
        "some flow to disk before they have theirs; give some a smaller max_memory, or make it with a larger memory="
    )


def warn_of_excess(membership: Membership) -> None:
    """Warns of an excess after a max_memory was given. This process does not warn of the same sum again."""
    excess = excess_of(membership)
    if excess is not None and excess != membership.excess:
        _LOG.warning("broker %s: %s", membership.name, excess)
    membership.excess = excess
