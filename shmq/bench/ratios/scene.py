"""The state in which a verb is measured: a broker, a queue, and what lies and waits in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from shmq.bench.ratios.child import Child
from shmq.engine.broker.broker import Broker
from shmq.engine.consumer.consumer import Consumer
from shmq.engine.message.message import Message
from shmq.engine.queue.queue import Queue
from shmq.pool.interruption import no_ctrl_c
from shmq.runtime import open as open_broker

__all__ = ["CHUNK", "WAIT", "Scene", "Situation"]

CHUNK: Final = 100  # calls between two looks at the clock
_BATCH: Final = 1000
WAIT: Final = 1.0  # seconds; a call beside the measured ones that waits so long has found no room, or nothing
_HOUR: Final = 3600.0
_PREPARED: Final = 120.0  # seconds within which what others do for a scene is done
_SOON: Final = 0.5  # seconds until what shall come back by its delay is due


@dataclass(frozen=True, slots=True)
class Situation:
    """Its fields are the keys of a row in ratios.toml; as they stand here they are the comfortable case."""

    depth: int = 100  # messages that are ready
    size: int = 64  # bytes of a body
    body: Any = None  # in place of `size` bytes
    codec: str | None = "bytes"  # "json": that of a queue for which nobody says one
    memory: str = "256MiB"  # of the broker
    queue: dict[str, Any] = field(default_factory=dict)  # its options
    options: dict[str, Any] = field(default_factory=dict)  # of each put
    elsewhere: bool = False  # the measured calls are another process's
    copied: int = 0  # bytes that are copied beside each call, each time to another place: the least a body asks for
    delayed: int = 0  # messages before all others, due in an hour
    held: int = 0  # messages before all others, in a consumer's hand; of a group each, where there are groups
    passed: int = 0  # messages that are put and taken before anything is measured
    back: int = 0  # messages that were away meanwhile, and are the first ones again
    came_by: str = "close"  # how: close, retry, delay
    consumers: int = 0  # registered, and idle
    selector: bool = False  # each of them, each sleeper, has one of its own
    queues: int = 1  # of the broker, and of the consumer of receive-any
    members: int = 0  # other processes that use the broker
    sleepers: int = 0  # other processes that wait in receive()
    apart: bool = False  # each of them at a queue of its own


class Scene:
    """A situation that has been made; all of it ends with the stack."""

    def __init__(self, situation: Situation, stack: ExitStack) -> None:
        self.situation, self.stack = situation, stack
        with no_ctrl_c():  # an anonymous broker: it goes with this process, however that ends
            self.broker: Broker = open_broker(memory=situation.memory, disk="4GiB")
            stack.callback(self.broker.close)
        self.queue: Queue[Any] = self._declare("measured")
        self.queues = [*(self._declare(f"other {i}") for i in range(situation.queues - 1)), self.queue]
        self.body = bytes(situation.size) if situation.body is None else situation.body
        self.put: Callable[[], object] = partial(self.queue.put, self.body, **situation.options)
        self.get: Callable[[], object] = self.queue.get
        own = range(situation.sleepers)
        self.sleeps_at = [self._declare(f"of {i}") if situation.apart else self.queue for i in own]  # by sleeper
        self.children: list[Child] = []
        self._fill()
        self._surround()

    def _declare(self, name: str) -> Queue[Any]:
        codec: Any = None if self.situation.codec == "json" else self.situation.codec
        return self.broker.queue(name, codec=codec, **self.situation.queue)

    def _fill(self) -> None:
        it = self.situation
        if it.delayed:
            self.add(it.delayed, delay=_HOUR)
        if it.held:
            self._hold(it.held, own_group="groups" in it.queue)
        give_back = self._take_away(it.back) if it.back else None
        for _ in range(0, it.passed, _BATCH):
            self.add(_BATCH)
            self.take(_BATCH)
        if give_back is not None:
            give_back()
        self.add(it.depth)

    def _surround(self) -> None:
        it = self.situation
        for number in range(it.consumers):
            selector = f"k = {number}" if it.selector else None
            self.stack.enter_context(self.queue.consumer(selector=selector))
        for _ in range(it.members):
            self.child(self.queue.qsize)()
        for number, queue in enumerate(self.sleeps_at):
            self.child(partial(_answer, queue, self.broker, number if it.selector else None)).start()
        if self.sleeps_at:
            self._until(lambda: sum(queue.statistics().consumers for queue in {*self.sleeps_at}) >= it.sleepers)
            self._until(self._all_sleep)

    def _hold(self, count: int, *, own_group: bool) -> None:
        if own_group:
            for number in range(count):
                self.queue.put(self.body, timeout=WAIT, group=f"held {number}")
        else:
            self.add(count)
        mine = _received(self.stack.enter_context(self.queue.consumer()), count)
        self.stack.callback(mine.clear)
        if len(mine) < count and not own_group:  # all places of groups may be taken
            raise RuntimeError(f"{len(mine)} of {count} messages came into a hand")

    def _take_away(self, count: int) -> Callable[[], None]:
        """Messages that are not there until the answered function has been called."""
        if self.situation.came_by == "delay":
            self.add(count, delay=_SOON)
            due = time.monotonic() + _SOON  # those on disk come in as others are taken
            return lambda: self._until(lambda: self.queue.statistics().delayed == 0 or time.monotonic() > due + _SOON)
        self.add(count)
        consumer = self.queue.consumer()
        mine = _received(consumer, count)

        def give_back() -> None:
            if self.situation.came_by == "retry":
                for message in mine:
                    message.retry()
            mine.clear()
            consumer.close()

        return give_back

    def _all_sleep(self) -> bool:
        before = self.cpu()
        time.sleep(0.2)
        return self.cpu() - before < 0.03  # of CPU time: less than they take as they begin

    def _until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PREPARED
        while not holds():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.situation} was not there within {_PREPARED:.0f} s")
            time.sleep(0.02)

    def add(self, count: int = CHUNK, **options: Any) -> None:
        """Puts so many, uncounted."""
        for begin in range(0, count, _BATCH):
            many = min(_BATCH, count - begin)
            self.queue.put_many([self.body] * many, timeout=WAIT, **(self.situation.options | options))

    def take(self, count: int = CHUNK) -> None:
        """Takes so many, uncounted."""
        left = count
        while left:
            came = len(self.queue.get_many(left, timeout=WAIT))
            if not came:
                raise RuntimeError(f"{left} of {count} messages are missing")
            left -= came

    def child(self, work: Callable[[], Any]) -> Child:
        child = Child(work)
        self.stack.callback(child.close)
        self.children.append(child)
        return child

    def cpu(self) -> float:
        """Seconds of CPU time of this thread and of all children."""
        return time.thread_time() + sum(child.cpu() for child in self.children)


def _received(consumer: Consumer[Any], count: int) -> list[Message[Any]]:
    """So many, or what there is."""
    mine: list[Message[Any]] = []
    while len(mine) < count and (some := consumer.receive_many(count - len(mine), timeout=WAIT)):
        mine += some
    return mine


def _answer(queue: Queue[Any], broker: Broker, number: int | None) -> None:
    """A sleeper: answers what it wants, for ever."""
    answers = broker.queue("answers", codec="bytes")
    with queue.consumer(selector=None if number is None else f"k = {number}") as consumer:
        while True:
            consumer.receive().ack()
            answers.put(b"")
