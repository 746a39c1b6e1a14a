"""Processes that are killed or interrupted while they use a queue hold nobody up and lose nothing."""

import os
import queue as standard
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

from shmq.mp import Queue, get_context
from tests.mp import children

Start = Callable[..., BaseProcess]
Eventually = Callable[[Callable[[], object]], None]


def asleep(queue: Queue[Any]) -> int:
    return queue._queue._waiters()["asleep"]


@pytest.mark.parametrize("attempt", range(10))
def test_a_consumer_killed_while_it_waits_freezes_nobody(attempt: int, start: Start, eventually: Eventually) -> None:
    """Shows G4."""
    ctx = get_context("fork")
    queue: Queue[Any] = Queue()
    results: Queue[Any] = Queue()
    victim = start(ctx, children.get_one, queue, results)
    eventually(lambda: asleep(queue) == 1)
    survivor = start(ctx, children.get_one, queue, results)
    eventually(lambda: asleep(queue) == 2)
    victim.kill()
    victim.join(30)
    queue.put("for the survivor")
    assert results.get(timeout=10) == "for the survivor"
    survivor.join(30)
    assert survivor.exitcode == 0


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_producer_killed_at_work_leaves_whole_objects_only(
    ctx: Any, start: Start, eventually: Eventually, signal_number: signal.Signals
) -> None:
    """Shows G2."""
    queue = ctx.Queue()
    child = start(ctx, children.put_numbers, queue, 0, 10_000_000)
    eventually(lambda: queue.qsize() > 100)
    assert child.pid is not None
    os.kill(child.pid, signal_number)
    child.join(30)
    queue.put("the last one")
    expected = 0
    while (item := queue.get(timeout=10)) != "the last one":
        assert item == expected
        expected += 1
    assert expected > 100
    with pytest.raises(standard.Empty):
        queue.get(timeout=0)


def test_an_interrupt_ends_a_wait_at_once_and_takes_nothing(ctx: Any, start: Start, eventually: Eventually) -> None:
    queue, results = ctx.Queue(), ctx.Queue()
    child = start(ctx, children.say_what_interrupts, queue, results)
    assert results.get(timeout=30) == "ready"
    eventually(lambda: asleep(queue) == 1)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGINT)
    assert results.get(timeout=30) == "interrupted"  # nothing else would end its wait
    child.join(30)
    assert child.exitcode == 0
    queue.put("not taken")
    assert queue.get(timeout=1) == "not taken"


def test_shutdown_wakes_those_who_wait(ctx: Any, start: Start, eventually: Eventually) -> None:
    queue, results = ctx.Queue(), ctx.Queue()
    waiting = [start(ctx, children.get_until_shut_down, queue, results) for _ in range(2)]
    eventually(lambda: asleep(queue) == 2)
    queue.put("last")
    queue.shutdown()
    assert sorted(results.get(timeout=10) for _ in range(3)) == ["last", "shut down", "shut down"]
    for child in waiting:
        child.join(30)
        assert child.exitcode == 0
