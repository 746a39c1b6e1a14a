"""The cost of calls that should not depend on how much there is: CPU time of small and large, in turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from shmq.engine.queue.queue import Queue
from shmq.quantity import quantity
from shmq.runtime import open as open_broker

__all__ = ["SHALLOW", "ScaleRow", "measure_consumers", "measure_depth", "measure_round"]

SHALLOW: Final = 10  # messages in the queue that the deep one is compared with
_BODY: Final = bytes(64)
_SLOT_BYTES: Final = 192
_ROOM: Final = 64 << 20  # of memory, besides slots
_BATCH: Final = 1000

Times = tuple[float, float, float]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ScaleRow:
    """One contestant's result: microseconds of CPU time a call, medians of the rounds; how many times the first's."""

    name: str
    put: float
    get: float
    ack: float  # receive and ack
    put_ratio: float
    get_ratio: float
    ack_ratio: float


def _microseconds(call: Callable[[], object], times: int) -> float:
    # CPU time of this thread: what else the machine does is no part of it.
    begin = time.thread_time()
    for _ in range(times):
        call()
    return (time.thread_time() - begin) / times * 1e6


def measure_round(queue: Queue[bytes], messages: int) -> Times:
    """As many out as in: the queue is as deep behind it as it was before."""

    def settle() -> None:
        queue.receive(timeout=0).ack()

    put = _microseconds(lambda: queue.put(_BODY, timeout=0), 2 * messages)
    get = _microseconds(lambda: queue.get(timeout=0), messages)
    return put, get, _microseconds(settle, messages)


def _measured(queues: dict[str, Queue[bytes]], messages: int, rounds: int, say: Say) -> Iterator[ScaleRow]:
    times: dict[str, list[Times]] = {name: [] for name in queues}
    for name, queue in queues.items():
        say(f"warm-up: {name}")
        measure_round(queue, messages)
    for number in range(rounds):
        for name, queue in queues.items():
            say(f"round {number + 1} of {rounds}: {name}")
            times[name].append(measure_round(queue, messages))
    first = times[next(iter(times))]
    for name, found in times.items():
        medians = [statistics.median(one[i] for one in found) for i in range(3)]
        pairs = list(zip(found, first, strict=True))
        ratios = [statistics.median(ours[i] / max(theirs[i], 1e-9) for ours, theirs in pairs) for i in range(3)]
        yield ScaleRow(name, medians[0], medians[1], medians[2], ratios[0], ratios[1], ratios[2])


def _slots(messages: int) -> int:
    return 1 << max(10, (messages - 1).bit_length())


def measure_depth(
    *, depth: int, messages: int, rounds: int, memory: int | None = None, progress: Say = lambda text: None
) -> Iterator[ScaleRow]:
    """put, get, and receive with ack, in a queue of SHALLOW messages and in one of `depth`.

    Arguments:
        memory: of the broker, in bytes; what exceeds it lies on disk. None: there is memory for all.
    """
    depths = (SHALLOW, depth)
    slots = sum(_slots(wanted + 2 * messages) for wanted in depths)
    with open_broker(None, memory=memory or slots * _SLOT_BYTES * 21 // 20 + _ROOM) as broker:
        queues = {
            f"depth {wanted:,}": broker.queue(f"depth {wanted}", codec="bytes", maxsize=wanted + 2 * messages)
            for wanted in depths
        }
        for queue, wanted in zip(queues.values(), depths, strict=True):
            progress(f"putting {quantity(wanted, 'message')}")
            for begin in range(0, wanted, _BATCH):
                queue.put_many([_BODY] * min(_BATCH, wanted - begin), timeout=0)
        yield from _measured(queues, messages, rounds, progress)


def measure_consumers(
    *, consumers: int, messages: int, rounds: int, progress: Say = lambda text: None
) -> Iterator[ScaleRow]:
    """The same in a queue with one registered consumer and in one with `consumers`, of which none takes anything."""
    with open_broker(None, memory=2 * _slots(4 * messages) * _SLOT_BYTES + _ROOM) as broker, ExitStack() as others:
        queues = {}
        for many in (1, consumers):
            name = quantity(many, "consumer")
            queues[name] = broker.queue(name, codec="bytes", maxsize=4 * messages)
            for _ in range(many):
                others.enter_context(queues[name].consumer())
        yield from _measured(queues, messages, rounds, progress)
