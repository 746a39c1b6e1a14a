"""Threads that wait for a queue of multiprocessing's kind, so that its descriptor becomes readable."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from shmq.core.handles import open_row
from shmq.engine.consumer.readiness import Readiness
from shmq.engine.handle.open_queue import membership_of

if TYPE_CHECKING:
    from shmq.core.queue import Part
    from shmq.mp.object_queue import ObjectQueue

__all__ = ["Watch"]


class Watch:
    """The descriptor of one handle, in one process. It takes nothing: get() does.

    Arguments:
        handle: the queue that the program has; when it is gone, so is the watch.
        queue: what it stands for.
    """

    takers = 0  # a watch takes no objects
    can_take = True

    def __init__(self, handle: object, queue: ObjectQueue) -> None:
        self._queue = queue
        self._row = open_row(queue, 0, False)
        try:
            self._readiness = Readiness(weakref.ref(self), membership_of(queue), queue.name, True, (self._row,))
        except BaseException:
            self._row.close()
            raise
        # At the end of the process the broker's close ends the thread.
        self._end = weakref.finalize(handle, self._leave)
        self._end.atexit = False

    def fileno(self) -> int:
        """The descriptor."""
        return self._readiness.fileno()

    def is_ours(self) -> bool:
        """False in a forked child, which lacks the waiting thread."""
        return self._readiness.is_ours()

    def reset(self) -> None:
        """Makes the descriptor unreadable: get() found no object."""
        self._readiness.reset()

    def close(self) -> None:
        """Ends the thread; the descriptor is closed with the last reference to this. Twice is fine."""
        self._end()

    def parts(self) -> tuple[Part, ...]:
        """Returns the queue and the row on which the thread waits."""
        return ((self._queue, self._row.number, None),)

    def _leave(self) -> None:
        if not self._readiness.is_ours():
            return
        self._readiness.stop()
        if membership_of(self._queue).closed:
            return
        self._row.closing()
        if self._readiness.join():
            self._row.close()
        else:
            self._row.keep()
