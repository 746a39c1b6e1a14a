"""The queues of a pool's broker: one for requests, and one for the replies to each task.

A request is one batch, with the number it has in its task and the name of the task's queue. A reply has the same
number. The queue of replies goes with the process of its task; who finds none has nothing to do any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shmq.errors import NotFound

if TYPE_CHECKING:
    from shmq.engine.broker.broker import Broker
    from shmq.engine.queue.queue import Queue

__all__ = ["ERROR", "NUMBER", "REPLIES", "replies_named", "requests_of"]

NUMBER: Final = "n"
REPLIES: Final = "replies"
ERROR: Final = "error"  # of a reply: its body is the text of an error

_NAME: Final = "requests"
_SHARE: Final = 3  # requests take this part of the memory at most, so that there is always room for replies


def requests_of(broker: Broker, memory: int) -> Queue[bytes]:
    """Returns the queue of requests; the first process that needs it makes it."""
    # No batch is ever given up here: the pool itself answers for one that kills its workers.
    return broker.queue(_NAME, codec="bytes", max_bytes=memory // _SHARE, max_attempts=0, max_deaths=0)


def replies_named(broker: Broker, name: str) -> Queue[bytes] | None:
    """Returns the queue of replies of this name; None: its task has ended."""
    try:
        return broker.queue(name, codec="bytes", create=False)
    except NotFound:
        return None
