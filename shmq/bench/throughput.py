"""Messages a second through one queue: contestants in turn, several rounds, medians and ratios."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from shmq.bench.contestant import contestant
from shmq.bench.processes import run_together

__all__ = ["ThroughputRow", "measure_throughput", "rate_of"]


@dataclass(frozen=True, slots=True)
class ThroughputRow:
    """One contestant's result."""

    name: str
    messages_per_second: float  # median of the rounds
    megabytes_per_second: float
    lowest: float  # messages a second of the slowest and fastest round
    highest: float
    ratio: float  # shmq's median by this one's, of the same rounds


def rate_of(
    key: str, *, size: int, producers: int, consumers: int, batch: int, messages: int, maxsize: int = 0
) -> float:
    """Messages a second of one contestant in one round of about `messages` messages."""
    unit = producers * consumers * batch
    count = max(1, messages // unit) * unit
    one = contestant(key, size, maxsize)
    body = bytes(size)
    try:
        jobs: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        jobs += [(one.produce, (body, count // producers, batch)) for _ in range(producers)]
        jobs += [(one.consume, (size, count // consumers, batch)) for _ in range(consumers)]
        seconds, answers = run_together(jobs)
    finally:
        one.close()
    received = sum(answers[producers:])
    if received != count:
        raise RuntimeError(f"{key}: {received:,} of {count:,} messages arrived")
    return count / seconds


def _enough(key: str, seconds: float, measure: Callable[[int], float]) -> int:
    """How many messages take about so many seconds: doubled until a round is long enough to tell."""
    messages = 64
    while True:
        rate = measure(messages)
        if messages / rate >= seconds / 4:
            return max(64, int(rate * seconds))
        messages *= 4


def measure_throughput(
    keys: list[str],
    *,
    size: int,
    producers: int,
    consumers: int,
    batch: int,
    rounds: int,
    seconds: float,
    maxsize: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> Iterator[ThroughputRow]:
    """Measure the contestants in turn, round by round, so that each round sees the same machine.

    Arguments:
        keys: of CONTESTANTS; the first is the one that ratios are of.
        size: bytes of a message.
        batch: messages a call, where the contestant can.
        maxsize: most messages waiting, for those that are queues; 0: no limit.
        rounds, seconds: how many rounds, and about how long each is.
        progress: told what is being measured.
    """

    def measure(key: str, messages: int) -> float:
        return rate_of(
            key,
            size=size,
            producers=producers,
            consumers=consumers,
            batch=batch,
            messages=messages,
            maxsize=maxsize,
        )

    counts = {}
    for key in keys:
        progress(f"warm-up: {key}")
        counts[key] = _enough(key, seconds, lambda messages, key=key: measure(key, messages))  # type: ignore[misc]
    rates: dict[str, list[float]] = {key: [] for key in keys}
    for number in range(rounds):
        for key in keys:
            progress(f"round {number + 1} of {rounds}: {key}")
            rates[key].append(measure(key, counts[key]))
    first = rates[keys[0]]
    for key in keys:
        median = statistics.median(rates[key])
        yield ThroughputRow(
            name=contestant_name(key),
            messages_per_second=median,
            megabytes_per_second=median * size / 1e6,
            lowest=min(rates[key]),
            highest=max(rates[key]),
            ratio=statistics.median(ours / theirs for ours, theirs in zip(first, rates[key], strict=True)),
        )


def contestant_name(key: str) -> str:
    from shmq.bench.contestant import CONTESTANTS

    name: str = CONTESTANTS[key].name
    return name
