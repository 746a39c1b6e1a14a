"""Queues between processes that are forked, spawned, or forked from a server; the same for each."""

import multiprocessing
import subprocess
import sys
import textwrap
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from shmq.mp import JoinableQueue, Queue, SimpleQueue, get_context
from tests.mp import children

Start = Callable[..., BaseProcess]
MEGABYTE = 1 << 20


@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue"])
def test_objects_go_to_a_child_and_come_back_in_order(ctx: Any, start: Start, kind: str) -> None:
    todo, done = getattr(ctx, kind)(), getattr(ctx, kind)()
    child = start(ctx, children.echo, todo, done)
    objects = [1, "two", b"three", {"four": [4, (5,)]}, b"x" * MEGABYTE, 1.5]
    for item in [*objects, None]:
        todo.put(item)
    assert [done.get() for _ in objects] == objects
    child.join(30)
    assert child.exitcode == 0


def test_a_bounded_queue_keeps_its_bound_in_the_child(ctx: Any, start: Start) -> None:
    queue, done = ctx.Queue(3), ctx.Queue()
    for number in range(3):
        queue.put(number)
    child = start(ctx, children.put_each, queue, [3, 4, 5])
    assert queue.full()
    assert [queue.get(timeout=30) for _ in range(6)] == list(range(6))
    child.join(30)
    assert child.exitcode == 0
    assert queue.empty()
    assert done.empty()


def test_a_queue_that_only_the_arguments_name_lives_for_the_child(ctx: Any, start: Start) -> None:
    done: Queue[Any] = Queue()
    todo = Queue[Any]()
    for item in ("first", "second", None):
        todo.put(item)
    child = ctx.Process(target=children.echo, args=(todo, done))
    child.start()
    del todo  # from here on only the child has it
    others = [Queue[int]() for _ in range(20)]  # each looks for queues that nobody has
    child.join(30)
    assert child.exitcode == 0
    assert [done.get(timeout=1) for _ in range(2)] == ["first", "second"]
    assert all(other.empty() for other in others)


def test_a_producer_can_be_joined_before_anybody_reads(ctx: Any, start: Start) -> None:
    """300 MB: a feeder thread would never get rid of them."""
    blocks, size = 30, 10 * MEGABYTE
    memory = Queue[int]()._queue._membership.memory
    if memory < 2 * blocks * size:
        pytest.skip(f"a broker has {memory // MEGABYTE} MB here: half of /dev/shm")
    queue = ctx.Queue()
    child = start(ctx, children.put_blocks, queue, blocks, size)
    child.join(60)
    assert child.exitcode == 0
    assert queue.qsize() == blocks
    for number in range(blocks):
        block = queue.get(timeout=1)
        assert len(block) == size
        assert block[0] == block[-1] == number
    assert queue.empty()


def test_a_grandchild_of_another_start_method_has_the_same_queue(ctx: Any, start: Start) -> None:
    queue = ctx.Queue()
    for method in ("fork", "spawn"):
        child = start(ctx, children.put_by_a_grandchild, method, queue)
        assert queue.get(timeout=30) == "from a grandchild"
        child.join(30)
        assert child.exitcode == 0


def test_children_of_all_start_methods_share_one_queue(start: Start) -> None:
    todo: Queue[Any] = Queue()
    done: Queue[Any] = Queue()
    methods = ["fork", "spawn", "forkserver"]
    started = [start(multiprocessing.get_context(method), children.echo, todo, done) for method in methods]
    for number in range(300):
        todo.put(number)
    for _ in methods:
        todo.put(None)
    assert sorted(done.get(timeout=30) for _ in range(300)) == list(range(300))
    for child in started:
        child.join(30)
        assert child.exitcode == 0


def test_a_queue_that_a_child_made_reaches_its_parent(ctx: Any, start: Start) -> None:
    queue, go = ctx.Queue(), ctx.Queue()
    child = start(ctx, children.put_a_queue, queue, go)
    theirs = queue.get(timeout=30)
    go.put("end")
    child.join(30)
    assert child.exitcode == 0
    assert theirs.get(timeout=1) == "from the queue of a child"  # its broker lives for as long as it is used


def test_a_child_without_standard_input_can_put(ctx: Any, start: Start) -> None:
    queue = ctx.Queue()
    child = start(ctx, children.close_standard_input_and_put, queue)
    assert queue.get(timeout=30) == "without standard input"
    child.join(30)
    assert child.exitcode == 0


def test_a_queue_works_while_the_module_that_made_it_is_being_imported(ctx: Any, start: Start, tmp_path: Path) -> None:
    queue = ctx.Queue()
    child = start(ctx, children.import_a_module_that_puts, str(tmp_path), queue)
    assert queue.get(timeout=30) == "put during import"
    child.join(30)
    assert child.exitcode == 0


def test_a_connection_inside_an_object_works_in_the_child(ctx: Any, start: Start) -> None:
    ours, theirs = multiprocessing.Pipe()
    queue = ctx.Queue()
    child = start(ctx, children.add_through_a_connection, queue)
    queue.put((theirs, 41))
    assert ours.poll(30)
    assert ours.recv() == 42
    child.join(30)
    assert child.exitcode == 0
    ours.close()
    theirs.close()


def test_many_producers_and_consumers_lose_and_double_nothing(ctx: Any, start: Start) -> None:
    queue, sums = ctx.Queue(100), ctx.Queue()
    producers = [start(ctx, children.put_numbers, queue, k * 500, 500) for k in range(4)]
    consumers = [start(ctx, children.sum_up, queue, sums) for _ in range(4)]
    for child in producers:
        child.join(60)
        assert child.exitcode == 0
    for _ in consumers:
        queue.put(None)
    for child in consumers:
        child.join(60)
        assert child.exitcode == 0
    found = [sums.get(timeout=1) for _ in consumers]
    assert sum(count for count, _ in found) == 2000
    assert sum(total for _, total in found) == sum(range(2000))
    assert queue.empty()


# ---- contexts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_context_makes_our_queues_and_is_multiprocessings_in_all_else(method: str) -> None:
    context: Any = get_context(method)
    theirs: Any = multiprocessing.get_context(method)
    assert isinstance(context, type(theirs))
    assert context.get_start_method() == method
    assert context.Process is theirs.Process
    assert type(context.Queue(3)) is Queue
    assert type(context.JoinableQueue(maxsize=3)) is JoinableQueue
    assert type(context.SimpleQueue()) is SimpleQueue
    assert type(context.Lock()) is type(theirs.Lock())
    assert context.get_context() is context
    assert context.get_context("spawn") is get_context("spawn")


def test_the_default_context_has_the_start_method_in_force() -> None:
    context: Any = get_context()
    assert context.get_start_method() == multiprocessing.get_context().get_start_method()
    assert type(context.Queue()) is Queue


def test_an_unknown_start_method_is_a_value_error() -> None:
    with pytest.raises(ValueError):
        get_context("thread")


def test_the_pool_of_a_context_works(ctx: Any) -> None:
    with ctx.Pool(1) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]


def test_a_context_can_be_pickled(ctx: Any) -> None:
    import pickle

    assert pickle.loads(pickle.dumps(ctx)).get_start_method() == ctx.get_start_method()


# ---- whole programs --------------------------------------------------------------------------------------------

SQUARES = """
    import multiprocessing, sys
    from shmq.mp import Queue

    def square(todo: "Queue[int | None]", done: "Queue[int]") -> None:
        while (n := todo.get()) is not None:
            done.put(n * n)

    if __name__ == "__main__":
        multiprocessing.set_start_method(sys.argv[1])
        todo: Queue[int | None] = Queue()
        done: Queue[int] = Queue()
        process = multiprocessing.Process(target=square, args=(todo, done))
        process.start()
        for n in [*range(1000), None]:
            todo.put(n)
        process.join()
        print(sum(done.get() for _ in range(1000)))
"""
ENDS_BEFORE_ITS_CHILD = """
    import multiprocessing, sys
    from shmq.mp import Queue

    def say(queue: "Queue[str]") -> None:
        print(queue.get(timeout=10), flush=True)

    if __name__ == "__main__":
        multiprocessing.set_start_method(sys.argv[1])
        queue = Queue()
        queue.put("the parent was at its end")
        multiprocessing.Process(target=say, args=(queue,)).start()
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize(
    ("program", "output"), [(SQUARES, "332833500"), (ENDS_BEFORE_ITS_CHILD, "the parent was at its end")]
)
def test_a_program_runs_with_no_more_than_its_import_changed(
    method: str, program: str, output: str, tmp_path: Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(program))
    result = subprocess.run([sys.executable, path, method], capture_output=True, text=True, timeout=600, check=False)
    assert (result.stdout.strip(), result.stderr, result.returncode) == (output, "", 0)
