"""The calls that are measured, and the steps that put the queue back into its situation between them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from shmq.bench.ratios.scene import CHUNK, WAIT, Scene
from shmq.core.handles import browse_columns
from shmq.engine.claims.claim import Claimer, bounds_of, queue_of_claims

__all__ = ["VERBS", "Verb"]

_IDLE: Final = 1.0  # seconds in which nothing happens
_SOME: Final = 500  # messages of a browse, a move or a claim
_ROWS, _BYTES = 16_384, 16 << 20  # of a batch, at most, as readers for Arrow ask for it

Call = Callable[[], object]


def _nothing() -> None: ...


@dataclass(frozen=True, slots=True)
class Verb:
    """One that is ready to be called in a scene; `before` and `after` are not counted."""

    call: Call
    before: Call = _nothing
    after: Call = _nothing
    times: int = CHUNK  # calls between them
    operations: int = 1  # of a call, by which its time is divided
    spent: Callable[[], float] = time.thread_time  # the clock that counts
    uses_up: bool = False  # the scene has to be made anew for each round


def put(s: Scene) -> Verb:
    # A delayed message cannot be taken.
    return Verb(s.put, after=s.queue.purge if "delay" in s.situation.options else s.take)


def put_growing(s: Scene) -> Verb:
    return Verb(s.put, uses_up=True)


def put_many(s: Scene) -> Verb:
    call = partial(s.queue.put_many, [s.body] * CHUNK, **s.situation.options)
    return Verb(call, after=partial(s.take, 10 * CHUNK), times=10, operations=CHUNK)


def get(s: Scene) -> Verb:
    """Of what came back each message is got: the first get of a process pays for many."""
    back = s.situation.back
    return Verb(s.get, uses_up=True, times=back) if back else Verb(s.get, before=s.add)


def get_many(s: Scene) -> Verb:
    call = partial(s.queue.get_many, CHUNK)
    return Verb(call, before=partial(s.add, 10 * CHUNK), times=10, operations=CHUNK)


def receive_ack(s: Scene) -> Verb:
    consumer = s.stack.enter_context(s.queue.consumer())
    return Verb(lambda: consumer.receive().ack(), before=s.add)


def receive_any(s: Scene) -> Verb:
    """The last queue of a consumer's has the message."""
    consumer = s.stack.enter_context(s.broker.consumer(*s.queues))
    return Verb(lambda: consumer.receive().ack(), before=s.add)


def _settling(by: str, s: Scene) -> Verb:
    consumer = s.stack.enter_context(s.queue.consumer())
    mine: list[Any] = []

    def before() -> None:
        s.add()
        while len(mine) < CHUNK:
            mine.extend(consumer.receive_many(CHUNK - len(mine), timeout=WAIT))

    after = {"ack": _nothing, "reject": lambda: s.broker.queue(f"{s.queue.name}.dead").purge()}.get(by, s.take)
    return Verb(lambda: getattr(mine.pop(), by)(), before=before, after=after)


def browse(s: Scene) -> Verb:
    def call() -> None:
        for _ in itertools.islice(s.queue.browse(), _SOME):
            pass

    # A browser sees what is held, too.
    return Verb(call, times=1, operations=min(_SOME, s.situation.depth + s.situation.held))


def browse_batches(s: Scene) -> Verb:
    """All that there is, as columns: what a task of Spark reads."""

    def call() -> None:
        place, end = bounds_of(s.queue)
        ended = False
        while not ended:
            place, ended, _, _ = browse_columns(s.queue, place, end, _ROWS, _BYTES)

    return Verb(call, times=1, operations=s.situation.depth)


def claim(s: Scene) -> Verb:
    """The call by which the planner of Spark's streams moves entries, as does a sink's commit."""
    claims = queue_of_claims(s.broker, "claims")
    some = min(_SOME, s.situation.depth)

    def after() -> None:
        claims.purge()
        s.add(some)

    claimer = Claimer(s.queue, claims)
    return Verb(lambda: claimer.claim(some, 1 << 62), after=after, times=1, operations=some)


def move(s: Scene) -> Verb:
    other = s.broker.queue("moved to", codec="bytes", **s.situation.queue)
    some = min(_SOME, s.situation.depth)

    def after() -> None:
        other.purge()
        s.add(some)

    return Verb(partial(s.queue.move, other, limit=some), after=after, times=1, operations=some)


def purge(s: Scene) -> Verb:
    return Verb(s.queue.purge, times=1, operations=s.situation.depth, uses_up=True)


def qsize(s: Scene) -> Verb:
    return Verb(s.queue.qsize, times=10)


def statistics(s: Scene) -> Verb:
    return Verb(s.queue.statistics, times=10)


def broker_statistics(s: Scene) -> Verb:
    """By queues of which it tells."""
    return Verb(s.broker.statistics, times=5, operations=len(s.queues))


def _mp_queue(s: Scene) -> Any:
    from shmq.mp import Queue

    queue: Any = Queue()
    s.stack.callback(queue.close)
    for number in range(s.situation.depth):
        queue.put(number)
    return queue


def mp_put_get(s: Scene) -> Verb:
    """Of the queue in place of that of multiprocessing."""
    queue = _mp_queue(s)

    def call() -> None:
        queue.put(7)
        queue.get()

    return Verb(call)


def mp_full(s: Scene) -> Verb:
    return Verb(_mp_queue(s).full, times=10)


def wake(s: Scene) -> Verb:
    """From a put to the answer of the sleeper that is meant, or of any: the CPU time of all of them."""
    answers = s.broker.queue("answers", codec="bytes")
    turns = itertools.cycle(range(s.situation.sleepers))

    def call() -> None:
        number = next(turns)
        s.sleeps_at[number].put(s.body, headers={"k": number})
        answers.get(timeout=60.0)

    return Verb(call, times=50, spent=s.cpu)


def idle(s: Scene) -> Verb:
    """The CPU time of sleepers in a second without messages."""
    return Verb(partial(time.sleep, _IDLE), times=1, spent=s.cpu)


_MEASURED = (put, put_growing, put_many, get, get_many, receive_ack, receive_any)
_OF_MANY = (browse, browse_batches, claim, move, purge)
_ASKED = (qsize, statistics, broker_statistics, mp_put_get, mp_full, wake, idle)
# By the name of their part of the table.
VERBS: Final[dict[str, Callable[[Scene], Verb]]] = {
    **{verb.__name__.replace("_", "-"): verb for verb in (*_MEASURED, *_OF_MANY, *_ASKED)},
    **{by: partial(_settling, by) for by in ("ack", "release", "retry", "reject")},
}
