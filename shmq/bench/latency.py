"""Microseconds from a put to the return of a get that was asleep: contestants in turn, several rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shmq.bench.contestant import Contestant, contestant
from shmq.bench.processes import run_together
from shmq.bench.throughput import contestant_name

__all__ = ["LatencyRow", "measure_latency"]


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """One contestant's result, microseconds one way."""

    name: str
    p50: float  # medians of the rounds
    p90: float
    p99: float
    ratio: float  # shmq's median by this one's: below 1 is faster


def _send(one: Contestant, size: int, count: int, pause: float) -> int:
    padding = bytes(max(0, size - 8))
    for _ in range(count):
        time.sleep(pause)  # long enough for the consumer to be asleep in the kernel
        one.put(time.monotonic_ns().to_bytes(8, "little") + padding)
    return count


def _receive(one: Contestant, size: int, count: int) -> list[float]:
    delays = []
    for _ in range(count):
        body = one.get(max(8, size))
        delays.append((time.monotonic_ns() - int.from_bytes(body[:8], "little")) / 1e3)
    return delays


def _round(key: str, size: int, messages: int, pause: float) -> list[float]:
    one = contestant(key, max(8, size))
    try:
        _, answers = run_together([(_send, (one, size, messages, pause)), (_receive, (one, size, messages))])
    finally:
        one.close()
    delays: list[float] = answers[1]
    return sorted(delays[len(delays) // 10 :])  # without the first tenth: page faults and first calls


def measure_latency(
    keys: list[str],
    *,
    size: int,
    messages: int,
    rounds: int,
    pause: float = 0.002,
    progress: Callable[[str], None] = lambda text: None,
) -> Iterator[LatencyRow]:
    """One producer that sleeps `pause` seconds before each message, one consumer that is asleep when it comes."""
    samples: dict[str, list[list[float]]] = {key: [] for key in keys}
    for number in range(rounds):
        for key in keys:
            progress(f"round {number + 1} of {rounds}: {key}")
            samples[key].append(_round(key, size, messages, pause))

    def at(key: str, share: float) -> list[float]:
        return [delays[min(len(delays) - 1, int(len(delays) * share))] for delays in samples[key]]

    first = at(keys[0], 0.5)
    for key in keys:
        ratios = [ours / theirs for ours, theirs in zip(first, at(key, 0.5), strict=True)]
        yield LatencyRow(
            name=contestant_name(key),
            p50=statistics.median(at(key, 0.5)),
            p90=statistics.median(at(key, 0.9)),
            p99=statistics.median(at(key, 0.99)),
            ratio=statistics.median(ratios),
        )
