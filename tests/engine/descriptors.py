"""Asking descriptors, and who waits behind them."""

import os
import select
import threading
from typing import Any

import shmq
from shmq.errors import Empty
from tests.engine.child import eventually

Queue = shmq.Queue[Any]
Consumer = shmq.Consumer[Any]
SLOW = 30.0


def is_readable(taker: Any, seconds: float = 0.0) -> bool:
    poll = select.poll()
    poll.register(taker, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def take(consumer: Consumer) -> Any:
    with consumer.receive(timeout=0) as m:
        return m.body


def drain(consumer: Consumer) -> list[Any]:
    """Until Empty: from then on it waits."""
    bodies = []
    while True:
        try:
            bodies.append(take(consumer))
        except Empty:
            return bodies


def is_one_told(found: list[Any], told: Consumer) -> bool:
    return bool(found) or is_readable(told)


def are_readable(consumers: list[Consumer], count: int) -> bool:
    return sum(map(is_readable, consumers)) == count


def waiters() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("shmq-"))


def is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False


def asleep(queue: Queue) -> int:
    return queue._waiters()["asleep"]


def all_wait(queue: Queue, count: int) -> None:
    eventually(lambda: asleep(queue) == count, f"{count} asleep")
