"""How fast a queue is again after its backlog was on disk, beside one that never flowed and one made anew."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shmq.engine.broker.broker import Broker
from shmq.engine.queue.queue import Queue
from shmq.runtime import open as open_broker

__all__ = ["OverflowRow", "measure_overflow", "overflow"]

_NEVER: Final = "it never flowed"
_DRAINED: Final = "it flowed, and was drained"
_ANEW: Final = "it flowed, was deleted and made anew"
_BURST: Final = 1000  # messages put, then taken: as a queue that keeps up
_BURSTS: Final = 20

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class OverflowRow:
    """One queue's result, medians of the rounds: a put with its get, and its speed by that of one that never flowed."""

    name: str
    put_get: float  # microseconds of CPU time
    share: float


def _pairs(queue: Queue[bytes], body: bytes, burst: int) -> float:
    """Microseconds of CPU time of a put and a get, while what waits stays below the queue's memory."""
    put, get = queue.put, queue.get
    begin = time.thread_time()
    for _ in range(_BURSTS):
        for _ in range(burst):
            put(body)
        for _ in range(burst):
            get(timeout=0)
    return (time.thread_time() - begin) / (_BURSTS * burst) * 1e6


def overflow(queue: Queue[bytes], body: bytes, messages: int) -> None:
    """Puts so many that it flows. RuntimeError if it does not."""
    for _ in range(messages):
        queue.put(body)
    if not queue.statistics().flowed:
        raise RuntimeError(f"{messages:,} messages of {len(body):,} bytes did not flow to disk")


def _drain(queue: Queue[bytes], messages: int) -> None:
    left = messages
    while left:
        left -= len(queue.get_many(min(left, 1000), timeout=60.0))


def measure_overflow(
    size: int, memory: int, *, rounds: int, directory: str | None = None, progress: Say = lambda text: None
) -> Iterator[OverflowRow]:
    """Three queues of one broker, in turn; each may use a quarter of its memory, and two have twice as much to hold.

    Arguments:
        size: bytes of a body.
        memory: budget of the broker.
        directory: where its files go; None: that of temporary files.
    """
    limit = memory // 4
    messages, burst = 2 * limit // size + 1, max(1, min(_BURST, limit // 4 // size))
    spent: dict[str, list[float]] = {_NEVER: [], _DRAINED: [], _ANEW: []}
    body = bytes(size)
    with tempfile.TemporaryDirectory(prefix="shmq-bench-", dir=directory) as home:
        broker = open_broker(Path(home) / "broker", memory=memory)
        try:
            queues = {name: _made(broker, name, limit) for name in spent}
            for queue in queues.values():
                _pairs(queue, body, burst)
            for number in range(rounds):
                progress(f"round {number + 1} of {rounds}: after an overflow")
                for name in (_DRAINED, _ANEW):
                    overflow(queues[name], body, messages)
                _drain(queues[_DRAINED], messages)
                queues[_ANEW].delete()
                queues[_ANEW] = _made(broker, _ANEW, limit)
                for name, queue in queues.items():
                    spent[name].append(_pairs(queue, body, burst))
        finally:
            broker.delete()
    for name, found in spent.items():
        shares = [theirs / max(ours, 1e-9) for ours, theirs in zip(found, spent[_NEVER], strict=True)]
        yield OverflowRow(name, statistics.median(found), statistics.median(shares))


def _made(broker: Broker, name: str, limit: int) -> Queue[bytes]:
    return broker.queue(name, codec="bytes", max_memory=limit)
