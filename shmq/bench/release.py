"""The cost of giving the first message back, and of getting it again, beside few and beside many that are in hand."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from shmq.engine.consumer.consumer import Consumer
from shmq.engine.message.message import Message
from shmq.runtime import open as open_broker

__all__ = ["FEW", "ReleaseRow", "measure_release", "release_round"]

FEW: Final = 10  # messages in hand, beside which the many are compared
_BODY: Final = bytes(64)
_SLOT_BYTES: Final = 192
_ROOM: Final = 64 << 20  # of memory, besides slots
_BATCH: Final = 1000

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """One contestant's result: microseconds of CPU time, medians of the rounds; how many times the first's."""

    name: str
    release: float  # a release and the receive that gets the same message again
    ratio: float


def release_round(consumer: Consumer[bytes], first: Message[bytes], times: int) -> tuple[float, Message[bytes]]:
    """Microseconds of CPU time, and the message, in hand again. Raises AssertionError if it was another one."""
    position = first.position
    begin = time.thread_time()
    for _ in range(times):
        first.release()
        first = consumer.receive(timeout=0)
    spent = time.thread_time() - begin
    if first.position != position:
        raise AssertionError(f"position {position} was given back, and {first.position} came")
    return spent / times * 1e6, first


def measure_release(
    *, held: int, messages: int, rounds: int, progress: Say = lambda text: None
) -> Iterator[ReleaseRow]:
    """In a queue of FEW messages and in one of `held`, all of them in a consumer's hand."""
    names = {f"{many:,} in hand": many for many in (FEW, held)}
    slots = sum(1 << max(10, (many - 1).bit_length()) for many in names.values())
    with open_broker(None, memory=slots * _SLOT_BYTES * 21 // 20 + _ROOM) as broker:
        hands: dict[str, tuple[Consumer[bytes], list[Message[bytes]]]] = {}
        for name, many in names.items():
            progress(f"taking {name}")
            queue = broker.queue(name, codec="bytes", maxsize=many)
            for begin in range(0, many, _BATCH):
                queue.put_many([_BODY] * min(_BATCH, many - begin), timeout=0)
            consumer = queue.consumer()
            hands[name] = consumer, consumer.receive_many(many, timeout=0)
        times: dict[str, list[float]] = {name: [] for name in names}
        for number in range(rounds):
            for name, (consumer, mine) in hands.items():
                progress(f"round {number + 1} of {rounds}: {name}")
                spent, mine[0] = release_round(consumer, mine[0], messages)
                times[name].append(spent)
        for consumer, _ in hands.values():
            consumer.close()
    first = times[next(iter(names))]
    for name, found in times.items():
        ratios = [ours / max(theirs, 1e-9) for ours, theirs in zip(found, first, strict=True)]
        yield ReleaseRow(name, statistics.median(found), statistics.median(ratios))
