"""Messages a second through a pool of workers whose handler does nothing, beside multiprocessing.Pool, in turn."""

from __future__ import annotations

import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from shmq.engine.message.message import Message
from shmq.pool.worker_pool import WorkerPool
from shmq.runtime import open as open_broker

__all__ = ["PoolRow", "answer", "echo", "measure_pool"]

_PEER: Final = "multiprocessing.Pool.imap_unordered"
_OURS: Final = "shmq.WorkerPool with results"
_MEMORY: Final = 256 << 20
_BATCH: Final = 1000

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PoolRow:
    """One contestant's result: messages a second, the median of the rounds; how many times the first's."""

    name: str
    rate: float
    ratio: float


def echo(body: bytes) -> bytes:
    """The peer's workers run this."""
    return body


def answer(message: Message[bytes]) -> bytes:
    """The pool's workers run this."""
    return message.body


def _peer_round(body: bytes, messages: int, processes: int) -> float:
    with multiprocessing.Pool(processes) as pool:
        pool.map(echo, [body] * processes, chunksize=1)  # they have started
        begin = time.perf_counter()
        count = sum(1 for _ in pool.imap_unordered(echo, (body for _ in range(messages)), chunksize=1))
        spent = time.perf_counter() - begin
    return _rate(count, messages, spent)


def _our_round(body: bytes, messages: int, processes: int) -> float:
    with open_broker(None, memory=_MEMORY) as broker:
        work, results = broker.queue("work", codec="bytes"), broker.queue("results", codec="bytes")
        with WorkerPool(work, answer, processes=processes, results=results):
            work.put_many([body] * processes)
            for _ in range(processes):
                results.get()
            feeder = threading.Thread(target=work.put_many, args=((body for _ in range(messages)),))
            begin = time.perf_counter()
            feeder.start()
            count = 0
            while count < messages:
                count += len(results.get_many(_BATCH))
            spent = time.perf_counter() - begin
            feeder.join()
    return _rate(count, messages, spent)


def _rate(count: int, messages: int, spent: float) -> float:
    if count != messages:
        raise RuntimeError(f"{count:,} of {messages:,} results came")
    return count / spent


def measure_pool(
    *, size: int, messages: int, processes: int, rounds: int, progress: Say = lambda text: None
) -> Iterator[PoolRow]:
    """As many messages through each, one at a time, the process that feeds taking the results.

    Arguments:
        size: bytes of a message.
        messages: a round.
        processes: of each pool.
    """
    contestants = {_PEER: _peer_round, _OURS: _our_round}
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds):
        for name, measured in contestants.items():
            progress(f"round {number + 1} of {rounds}: {name}")
            rates[name].append(measured(bytes(size), messages, processes))
    for name, found in rates.items():
        ratios = [ours / theirs for ours, theirs in zip(found, rates[_PEER], strict=True)]
        yield PoolRow(name, statistics.median(found), statistics.median(ratios))
