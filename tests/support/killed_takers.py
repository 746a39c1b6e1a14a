"""Children that take from a queue until they are killed; each puts a message into the results before it settles it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import shmq
from tests.support.offspring import Offspring, Say, eventually

__all__ = ["kill", "start_taker", "wait_for_results"]

Queue = shmq.Queue[Any]
LIMIT = 120.0  # seconds; as offspring.LIMIT


def start_taker(
    queue: Queue, results: Queue, gives_back: Callable[[shmq.Message[Any]], bool], **options: Any
) -> Offspring:
    """A child that has a consumer, with these options of Queue.consumer.

    Arguments:
        gives_back: the message is released, neither put into results nor settled. Called once for each.
    """
    child = Offspring(_take, queue, results, gives_back, options)
    child.expect("here")
    return child


def wait_for_results(results: Queue, queue: Queue, more: int) -> None:
    """Until so many more are there, or the queue is empty."""
    eventually(partial(_has_come_to, results, queue, results.qsize() + more), "some are taken")


def kill(child: Offspring) -> None:
    child.kill()
    child.close()


def _take(
    queue: Queue,
    results: Queue,
    gives_back: Callable[[shmq.Message[Any]], bool],
    options: dict[str, Any],
    say: Say,
) -> None:
    with queue.consumer(**options) as consumer:
        say("here")
        while True:
            try:
                message = consumer.receive(timeout=1)
            except shmq.Empty:
                continue
            if gives_back(message):
                message.release()
                continue
            results.put(message.body, timeout=LIMIT)
            message.ack()


def _has_come_to(results: Queue, queue: Queue, goal: int) -> bool:
    return results.qsize() >= goal or queue.qsize() == 0
