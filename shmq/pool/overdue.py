"""Workers that take too long: past the pool's time limit, past the lease of their message, or in the way of its end.

A handler that hangs says nothing, so the pool looks: at the words that its workers write, and at the queue.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from shmq.core.clock import monotonic_ns
from shmq.core.handles import browse_entry
from shmq.errors import ShmqError
from shmq.options.value import NEVER
from shmq.pool.hand import lease_of
from shmq.wait_time import LONG_CALL, OVERDUE_LOOK, PROCESS_END

if TYPE_CHECKING:
    from shmq.engine.queue.queue import Queue
    from shmq.pool.hand import InHand
    from shmq.pool.worker_process import WorkerProcess

__all__ = ["Overdue", "say"]

_LOG: Final = logging.getLogger("shmq.pool")


def say(queue: str, worker: WorkerProcess, text: str) -> None:
    """Logs a warning about one worker."""
    _LOG.warning("worker %d of queue %r: %s", worker.pid, queue, text, extra={"queue": queue, "pid": worker.pid})


class Overdue:
    """Looks at the workers of one run.

    Arguments:
        name: of the queue.
        time_limit: seconds for one call of the handler; None: as long as it takes.
    """

    def __init__(self, name: str, time_limit: float | None) -> None:
        self._name = name
        self._time_limit = NEVER if time_limit is None else time_limit
        self._lease = NEVER
        self._look_at = NEVER

    def due_in(self, workers: Iterable[WorkerProcess], queue: Queue[Any] | None, *, waits: bool) -> float | None:
        """Seconds until a look may find something; None: never.

        queue: a handle that is for looks alone; None: it was deleted.
        waits: the pool does nothing but wait for them.
        """
        self._lease = NEVER if queue is None else lease_of(queue)
        now = monotonic_ns() / 1e9
        found = [at for worker in workers for at in self._times(worker, now, waits)]
        self._look_at = min(found, default=NEVER)
        return None if self._look_at == NEVER else max(0.0, self._look_at - now)

    def _times(self, worker: WorkerProcess, now: float, waits: bool) -> Iterator[float]:
        if worker.killed_for is not None:
            return
        hand = worker.hand.seen()
        since = now if hand is None else hand.since_ns / 1e9
        lease = self._lease if hand is None or hand.lent else NEVER
        for limit in (self._time_limit, lease):
            if limit != NEVER:
                yield max(since + limit, now + OVERDUE_LOOK) if since + limit <= now < self._look_at else since + limit
        state = _state_of(worker, hand, waits)
        if state is not None and state[0] != worker.told:
            yield state[1]

    def look(self, workers: Iterable[WorkerProcess], queue: Queue[Any] | None, *, waits: bool) -> None:
        """Kills workers whose time is over, and logs those for which the pool waits. Arguments as due_in()."""
        now = monotonic_ns() / 1e9
        if now < self._look_at:
            return
        for worker in workers:
            if worker.killed_for is not None:
                continue
            hand = worker.hand.seen()
            why = None if hand is None else self._why_over(worker, hand, queue, now)
            if why is not None:
                back = "" if worker.was_robbed else "; the message goes back, counted as a death"
                say(self._name, worker, f"{why}; it is killed and replaced{back}")
                worker.kill(why)
                continue
            state = _state_of(worker, hand, waits)
            if state is not None and state[0] != worker.told and now >= state[1]:
                worker.told = state[0]
                say(self._name, worker, state[2])

    def _why_over(self, worker: WorkerProcess, hand: InHand, queue: Queue[Any] | None, now: float) -> str | None:
        age = now - hand.since_ns / 1e9
        if age >= self._time_limit:
            return f"its handler is over time_limit={self._time_limit:g} s with {_message_of(worker)}"
        if queue is None or age < self._lease or not hand.lent:
            return None
        if _was_taken(worker, hand, queue) and worker.hand.seen() == hand:
            worker.was_robbed = True
            lease = f"the lease of {self._lease:g} s"
            return f"its handler hangs on {_message_of(worker)}, which {lease} has given back as a failed attempt"
        return None


def _message_of(worker: WorkerProcess) -> str:
    begun = worker.tally.still_open()
    return "its message" if begun is None else f"message {begun[0]}"


def _was_taken(worker: WorkerProcess, hand: InHand, queue: Queue[Any]) -> bool:
    """Says whether the queue has ended the lease of the worker's message: the message is not the worker's any more."""
    try:
        queue.statistics()  # what is due is done before
        _, seen = browse_entry(queue, hand.position)
    except ShmqError:
        return False
    begun = worker.tally.still_open()
    if begun is None or seen is None or seen[:2] != (hand.position, begun[0]):
        return begun is not None
    return seen[4] + seen[5] > hand.attempts


def _state_of(worker: WorkerProcess, hand: InHand | None, waits: bool) -> tuple[int | str, float, str] | None:
    """Returns the state of the worker that is to be logged, from when on, and the text; None: no such state."""
    if worker.ended is not None:
        what = worker.ended.left or "code that runs at its exit"
        return (
            "end",
            worker.ended_at + PROCESS_END,
            f"has ended, and its process is kept by {what}; the pool waits for it",
        )
    if worker.ready_at is None:
        return "start", worker.started_at + LONG_CALL, f"has not begun after {LONG_CALL:g} s, in imports or initializer"
    if waits and hand is not None:
        text = f"the pool waits for {_message_of(worker)}, in its handler for {LONG_CALL:g} s"
        return hand.since_ns, hand.since_ns / 1e9 + LONG_CALL, f"{text}; time_limit= would bound that"
    return None
