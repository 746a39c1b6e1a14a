"""Queues that nobody can have any more are deleted; those that somebody may have are not."""

import gc
import os
import pickle
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from shmq.mp import Queue, SimpleQueue, get_context, heirs
from shmq.mp.process_broker import own_broker
from tests.mp import children

Start = Callable[..., BaseProcess]
Eventually = Callable[[Callable[[], object]], None]


def names() -> set[str]:
    return {queue.name for queue in own_broker().queues()}


def used() -> int:
    return own_broker().statistics().memory_used


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_two_thousand_short_lived_queues_do_not_grow() -> None:
    Queue[int](1).put(1)
    gc.collect()  # what other tests have left
    before, files = used(), open_files()
    for number in range(2000):
        queue: Queue[Any] = Queue(1)
        queue.put(number)
        del queue
    assert names() == set()
    assert used() <= before + (4 << 20)
    assert open_files() <= files


def test_a_queue_goes_with_its_object() -> None:
    queue: Queue[Any] = Queue()
    simple: SimpleQueue[Any] = SimpleQueue()
    assert len(names()) == 2
    queue.put(queue._queue.name)
    del queue, simple
    assert names() == set()


def test_a_queue_in_a_cycle_goes_with_the_garbage() -> None:
    queue: Any = Queue()
    queue.myself = queue
    del queue
    gc.collect()
    assert names() == set()


def test_a_pickled_queue_stays_for_whoever_has_the_pickle() -> None:
    queue: Queue[str] = Queue()
    queue.put("kept")
    pickled = pickle.dumps(queue)
    del queue
    Queue[int]()
    assert pickle.loads(pickled).get(timeout=1) == "kept"


def test_a_queue_that_a_child_has_stays_until_the_child_has_ended(ctx: Any, start: Start) -> None:
    done: Queue[Any] = Queue()
    todo = Queue[Any]()
    handle, name = todo._queue, todo._queue.name
    child = start(ctx, children.echo, todo, done)
    child_arguments = getattr(child, "_args", None)
    assert child_arguments is None  # Process forgets them when it has started
    del todo
    Queue[int]()  # looks for queues that nobody has
    assert name in names()
    handle.put("for the child")
    assert done.get(timeout=30) == "for the child"
    handle.put(None)
    child.join(30)
    assert child.exitcode == 0
    Queue[int]()
    assert name not in names()


def test_a_queue_for_each_child_does_not_grow(ctx: Any, start: Start) -> None:
    for number in range(5):
        queue = ctx.Queue(1)
        child = start(ctx, children.put_each, queue, [number])
        assert queue.get(timeout=30) == number
        child.join(30)
    del queue
    Queue[int]()
    assert names() == set()
    assert not heirs._families
    assert not heirs._waiting


def test_a_queue_stays_for_a_grandchild_of_a_plain_fork(eventually: Eventually, tmp_path: Path) -> None:
    """The child ends at once; what it forked has the queue and is nobody's child that anybody could wait for."""
    queue: Queue[str] = Queue()
    name = queue._queue.name
    go = tmp_path / "go"
    os.mkfifo(go)
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            try:
                with go.open() as fifo:
                    fifo.read()
                queue.put("from a grandchild")
            finally:
                os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
    handle = queue._queue
    del queue
    try:
        Queue[int]()
        assert name in names()
    finally:
        go.write_text("go")  # else it would wait for ever
    assert handle.get(timeout=30) == "from a grandchild"

    def is_gone() -> bool:
        Queue[int]()
        return name not in names()

    eventually(is_gone)


def test_a_child_that_pickles_a_queue_keeps_it_for_others(start: Start) -> None:
    ctx = get_context("fork")
    inner: Queue[str] = Queue()
    inner.put("kept")
    outer: Queue[Any] = Queue()
    child = start(ctx, children.put_each, outer, [inner])
    child.join(30)
    assert child.exitcode == 0
    del inner
    Queue[int]()
    assert outer.get(timeout=1).get(timeout=1) == "kept"


def test_forks_without_queues_cost_no_descriptor() -> None:
    Queue[int]()
    gc.collect()
    files = open_files()
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert open_files() <= files
    os.waitpid(child, 0)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_has_a_broker_of_its_own_for_what_it_makes(method: str, start: Start) -> None:
    ctx = get_context(method)
    results: Queue[Any] = Queue()
    go: Queue[Any] = Queue()
    start(ctx, children.put_a_queue, results, go)
    theirs = results.get(timeout=30)
    assert theirs._queue._membership.key != results._queue._membership.key
    segment = Path("/dev/shm", theirs._queue._membership.key)
    assert segment.exists()
    go.put("end")
    assert theirs.get(timeout=10) == "from the queue of a child"
