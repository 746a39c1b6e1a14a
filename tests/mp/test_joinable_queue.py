"""JoinableQueue: what was got is not done before task_done() says so, and a death gives it back."""

import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

from shmq.mp import JoinableQueue, Queue, get_context
from shmq.mp.process_broker import own_broker
from tests.mp import children

Start = Callable[..., BaseProcess]


def test_join_returns_when_each_object_is_done() -> None:
    queue: JoinableQueue[int] = JoinableQueue()
    queue.join()  # nothing was put
    for number in range(3):
        queue.put(number)
    joined = threading.Event()

    def join() -> None:
        queue.join()
        joined.set()

    thread = threading.Thread(target=join)
    thread.start()
    for number in range(3):
        assert not joined.is_set()
        assert queue.get() == number
    assert queue.empty()
    assert not joined.is_set()
    for _ in range(3):
        assert not joined.is_set()
        queue.task_done()
    thread.join(10)
    assert joined.is_set()


def test_task_done_once_too_often_is_a_value_error() -> None:
    queue: JoinableQueue[int] = JoinableQueue()
    with pytest.raises(ValueError, match="called too many times"):
        queue.task_done()
    queue.put(1)
    with pytest.raises(ValueError, match="called too many times"):
        queue.task_done()
    queue.get()
    queue.task_done()
    with pytest.raises(ValueError, match="called too many times"):
        queue.task_done()


def test_task_done_settles_the_oldest() -> None:
    queue: JoinableQueue[str] = JoinableQueue()
    for item in ("a", "b", "c"):
        queue.put(item)
    assert [queue.get(), queue.get()] == ["a", "b"]
    queue.task_done()
    assert queue._queue._census()["unsettled"] == 1
    position = queue._queue._census()["first_position"]
    assert [m.body for m in queue._queue.browse()][-1] == "c"
    assert position == 1  # that of "b"


def test_what_was_got_and_not_done_counts_against_maxsize() -> None:
    queue: JoinableQueue[int] = JoinableQueue(1)
    queue.put(1)
    assert queue.get() == 1
    assert queue.full()
    assert queue.empty()
    queue.task_done()
    assert not queue.full()
    queue.put(2, False)


def test_workers_of_each_start_method_work_off_what_is_there(ctx: Any, start: Start) -> None:
    queue, results = ctx.JoinableQueue(), ctx.Queue()
    workers = [start(ctx, children.work_off, queue, results) for _ in range(2)]
    for number in range(100):
        queue.put(number)
    queue.join()
    assert sorted(results.get(timeout=1) for _ in range(100)) == list(range(100))
    for _ in workers:
        queue.put(None)
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    queue.join()


def test_a_forked_child_has_nothing_that_its_parent_has_got(start: Start) -> None:
    ctx = get_context("fork")
    queue: JoinableQueue[int] = JoinableQueue()
    results: Queue[str] = Queue()
    queue.put(1)
    assert queue.get() == 1
    child = start(ctx, children.done_too_often, queue, results)
    assert "called too many times" in results.get(timeout=30)
    child.join(30)
    assert child.exitcode == 0
    assert queue._queue._census()["unsettled"] == 1  # it is the parent's as before
    queue.task_done()
    queue.join()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_consumer_gives_back_what_it_had_not_done(ctx: Any, start: Start, end: signal.Signals) -> None:
    queue, results, go = ctx.JoinableQueue(), ctx.Queue(), ctx.Queue()
    queue.put("first")
    queue.put("second")
    child = start(ctx, children.get_and_wait, queue, results, go)
    assert results.get(timeout=30) == "first"
    assert child.pid is not None
    os.kill(child.pid, end)
    child.join(30)
    assert own_broker().statistics() is not None  # looks for the dead; else whoever waits next does
    assert [queue.get(timeout=5), queue.get(timeout=5)] == ["first", "second"]  # in its place
    queue.task_done()
    queue.task_done()
    queue.join()


def test_what_comes_back_after_many_others_have_gone_is_there(start: Start) -> None:
    """More of them than the ring has places: the oldest then lies where the ring's head says nothing of it."""
    ctx = get_context("fork")
    queue, results, go = ctx.JoinableQueue(1000), ctx.Queue(), ctx.Queue()
    queue.put("oldest")
    child = start(ctx, children.get_and_wait, queue, results, go)
    assert results.get(timeout=30) == "oldest"
    for number in range(3000):
        queue.put(number)
        assert queue.get(timeout=5) == number
        queue.task_done()
    assert queue.empty()
    child.kill()
    child.join(30)
    assert own_broker().statistics() is not None  # looks for the dead
    assert not queue.empty()
    assert queue.get(timeout=5) == "oldest"


def test_a_consumer_that_ends_gives_back_what_it_had_not_done(ctx: Any, start: Start) -> None:
    queue, results, go = ctx.JoinableQueue(), ctx.Queue(), ctx.Queue()
    queue.put("only")
    go.put("end")
    child = start(ctx, children.get_and_wait, queue, results, go)
    child.join(30)
    assert child.exitcode == 0
    assert results.get(timeout=1) == "only"
    assert queue.get(timeout=5) == "only"
    queue.task_done()
    queue.join()


def test_nothing_dies_however_often_its_consumer_is_killed(start: Start) -> None:
    """A queue of shmq has a dead letter queue; multiprocessing's has not."""
    ctx = get_context("fork")
    queue: JoinableQueue[str] = JoinableQueue()
    results: Queue[str] = Queue()
    go: Queue[str] = Queue()
    queue.put("survivor")
    for _ in range(6):
        child = start(ctx, children.get_and_wait, queue, results, go)
        assert results.get(timeout=30) == "survivor"
        child.kill()
        child.join(30)
    assert queue.get(timeout=5) == "survivor"


def test_threads_share_what_their_process_has_got() -> None:
    queue: JoinableQueue[int] = JoinableQueue()

    def work() -> None:
        while queue.get() >= 0:
            queue.task_done()
        queue.task_done()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in [*range(1000), -1, -1, -1, -1]:
        queue.put(number)
    queue.join()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    with pytest.raises(ValueError):
        queue.task_done()


def test_a_dropped_handle_gives_back_what_nobody_can_do_any_more() -> None:
    import pickle

    queue: JoinableQueue[str] = JoinableQueue()
    queue.put("in hand")
    other = pickle.loads(pickle.dumps(queue))
    assert other.get() == "in hand"
    assert queue.empty()
    del other
    assert queue.get(timeout=1) == "in hand"
    queue.task_done()
