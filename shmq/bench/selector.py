"""Entries a second that a selector looks at: a consumer, the native core, what Python does in its place, in turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from shmq.core.selector import Selector
from shmq.engine.queue.queue import Queue
from shmq.headers import Header, decode_headers, encode_headers
from shmq.quantity import quantity
from shmq.runtime import open as open_broker
from shmq.selector import compiled

__all__ = ["SELECTOR", "SelectorRow", "measure_selectors"]

SELECTOR: Final = "kind = 'png' AND width > 4500"  # true for one entry in 100
_DIFFERENT: Final = 1000  # heads; each entry has a copy of one for itself
_ENTRY_BYTES: Final = 320  # of memory: a slot, and room for all else
_PARTS: Final = 20  # Python looks at one part of the entries: it is that much slower


@dataclass(frozen=True, slots=True)
class SelectorRow:
    """One contestant's result."""

    name: str
    entries_per_second: float  # median of the rounds
    lowest: float
    highest: float
    selected: int  # of all entries
    ratio: float  # the first one's rate by this one's, in the same rounds


def _headers(number: int) -> dict[str, Header]:
    return {
        "kind": "png" if number % 10 == 7 else "jpeg",
        "width": number * 5,  # up to 4,995
        "source": f"camera-{number % 7}",
        "urgent": number % 3 == 0,
    }


def _wanted(headers: Mapping[str, Header]) -> bool:
    width = headers.get("width")
    return headers.get("kind") == "png" and isinstance(width, int) and width > 4500


def _rate(look: Callable[[], int], entries: int) -> tuple[float, int]:
    # CPU time of this thread: what else the machine does is no part of it.
    begin = time.thread_time()
    selected = look()
    return entries / max(time.thread_time() - begin, 1e-9), selected


def _fill(queue: Queue[bytes], dicts: list[dict[str, Header]], entries: int) -> None:
    for number in range(entries):
        queue.put(b"", headers=dicts[number % len(dicts)])


def _taken(queue: Queue[bytes]) -> int:
    """Counts the messages that a consumer gets until it has looked at all entries. Its close gives them back."""
    taken = []
    with queue.consumer(selector=SELECTOR) as consumer:
        while batch := consumer.receive_many(1000, timeout=0):
            taken += batch
    return len(taken)


def measure_selectors(
    *, entries: int, rounds: int, progress: Callable[[str], None] = lambda text: None
) -> Iterator[SelectorRow]:
    """A selector that takes 1 entry in 100, over headers of four values, in memory of their own."""
    dicts = [_headers(number) for number in range(_DIFFERENT)]
    with open_broker(None, memory=max(entries * _ENTRY_BYTES, 64 << 20)) as broker:
        progress(f"putting {quantity(entries, 'message')}")
        queue = broker.queue("images", codec="bytes", maxsize=entries)
        _fill(queue, dicts, entries)
        yield from _measure(queue, dicts, entries, rounds, progress)


def _measure(
    queue: Queue[bytes],
    dicts: list[dict[str, Header]],
    entries: int,
    rounds: int,
    progress: Callable[[str], None],
) -> Iterator[SelectorRow]:
    different = [bytearray(encode_headers(headers)) for headers in dicts]
    heads = [bytes(different[number % _DIFFERENT]) for number in range(entries)]
    part = heads[: max(entries // _PARTS, _DIFFERENT)]
    decoded = [dicts[number % _DIFFERENT] for number in range(len(part))]
    selector = Selector(compiled(SELECTOR))
    source = memoryview(b"".join(heads))
    target = memoryview(bytearray(len(source)))

    def copy() -> int:
        target[:] = source
        return 0

    contestants: dict[str, tuple[Callable[[], int], int]] = {
        "shmq, a consumer": (lambda: _taken(queue), entries),
        "shmq, heads alone": (lambda: selector.count(heads), entries),
        "memcpy of the heads": (copy, entries),
        "Python, over dicts": (lambda: sum(map(_wanted, decoded)), len(part)),
        "Python, decoding heads": (lambda: sum(_wanted(decode_headers(head).user) for head in part), len(part)),
    }
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    selected: dict[str, int] = {}
    for number in range(rounds):
        for name, (look, many) in contestants.items():
            progress(f"round {number + 1} of {rounds}: {name}")
            rate, found = _rate(look, many)
            rates[name].append(rate)
            selected[name] = found * entries // many
    first = rates[next(iter(contestants))]
    for name, found_rates in rates.items():
        yield SelectorRow(
            name=name,
            entries_per_second=statistics.median(found_rates),
            lowest=min(found_rates),
            highest=max(found_rates),
            selected=selected[name],
            ratio=statistics.median(ours / theirs for ours, theirs in zip(first, found_rates, strict=True)),
        )
