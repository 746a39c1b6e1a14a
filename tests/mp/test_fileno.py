"""shmq.mp.Queue among the descriptors that a program waits for."""

import asyncio
import gc
import os
import selectors
import threading
from collections import Counter
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from queue import Empty
from typing import Any

import pytest

from shmq.errors import ShutDown
from shmq.mp import JoinableQueue, Queue, SimpleQueue, get_context
from tests.engine.child import eventually
from tests.engine.descriptors import is_closed
from tests.mp import children

Start = Callable[..., BaseProcess]
SLOW = 30.0


def wait(objects: list[Any], timeout: float | None = None) -> list[Any]:
    return connection.wait(objects, timeout)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("shmq-")]


def drain(queue: Any) -> list[Any]:
    """Until there is nothing: from then on it waits."""
    bodies = []
    while True:
        try:
            bodies.append(queue.get_nowait())
        except Empty:
            return bodies


def fail() -> None:
    raise EOFError("it cannot be had again")


class Unreadable:
    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return fail, ()


@pytest.fixture(params=[Queue, JoinableQueue])
def queue(request: pytest.FixtureRequest) -> Any:
    return request.param()


def test_it_is_waited_for_like_a_connection(queue: Any) -> None:
    assert wait([queue], timeout=0) == []
    for number in range(3):
        queue.put(number)
        assert wait([queue], timeout=SLOW) == [queue]
        assert wait([queue._reader], timeout=SLOW) == [queue._reader]
        assert drain(queue) == [number]
        assert wait([queue], timeout=0) == []


@pytest.mark.in_hand
@pytest.mark.parametrize("kind", [Queue, JoinableQueue, SimpleQueue])
def test_with_the_last_object_it_is_not_readable_any_more(kind: Callable[[], Any]) -> None:
    """A loop that waits, and gets one each time, as it may with multiprocessing's queue, never waits in get()."""
    queue = kind()
    assert wait([queue._reader], timeout=0) == []
    for number in range(5):
        queue.put(number)
    for number in range(5):
        assert wait([queue], timeout=SLOW) == [queue]
        assert queue.get() == number
    assert wait([queue], timeout=0) == []
    queue.put(Unreadable())
    assert wait([queue], timeout=SLOW) == [queue]
    with pytest.raises(EOFError):
        queue.get()
    assert wait([queue], timeout=0) == []
    queue.put("again")
    assert wait([queue], timeout=SLOW) == [queue]


def test_several_are_waited_for_at_once_beside_a_child(start: Start) -> None:
    ctx = get_context("spawn")
    todo, done = ctx.Queue(), ctx.Queue()
    child = start(ctx, children.echo, todo, done)
    seen: list[Any] = []
    for number in range(5):
        todo.put(number)
        while len(seen) == number:
            assert wait([done, child.sentinel], timeout=SLOW) == [done]
            seen += drain(done)
    assert seen == list(range(5))
    todo.put(None)
    assert wait([done, child.sentinel], timeout=SLOW) == [child.sentinel]


def test_it_is_readable_when_get_has_something_else_to_say(queue: Any) -> None:
    assert wait([queue], timeout=0) == []
    queue.shutdown()
    assert wait([queue], timeout=SLOW) == [queue]
    with pytest.raises(ShutDown):
        queue.get_nowait()


def test_a_selector_and_an_event_loop_take_it() -> None:
    async def read(queue: Any) -> Any:
        loop = asyncio.get_running_loop()
        came: asyncio.Future[Any] = loop.create_future()
        loop.add_reader(queue, lambda: came.set_result(queue.get_nowait()))
        queue.put("b")
        try:
            return await asyncio.wait_for(came, SLOW)
        finally:
            loop.remove_reader(queue)

    queue: Queue[str] = Queue()
    with selectors.DefaultSelector() as selector:
        selector.register(queue, selectors.EVENT_READ)
        queue.put("a")
        assert [key.fileobj for key, _ in selector.select(SLOW)] == [queue]
        assert drain(queue) == ["a"]
    assert asyncio.run(read(queue)) == "b"


@pytest.mark.parametrize("end", ["close", "garbage"])
def test_a_thread_is_there_from_the_first_fileno_to_the_end(end: str) -> None:
    queue: Queue[int] | None = Queue()
    assert queue is not None
    queue.put(1)
    queue.get()
    assert threads() == []
    number = queue.fileno()
    assert queue.fileno() == number
    assert threads() == [f"shmq-fileno-{queue._queue.name}"]
    if end == "close":
        queue.close()
        with pytest.raises(ValueError, match="closed"):
            queue.fileno()
    queue = None
    gc.collect()
    eventually(lambda: threads() == [], "the end of the thread")
    eventually(lambda: is_closed(number), "the end of the descriptor")


def serve(todo: Any, done: Any, stop: connection.Connection) -> None:
    """Waits by its own descriptor until there is something at `stop`, and says how much it got."""
    count = 0
    while stop not in (ready := wait([todo, stop])):
        for number in drain(todo) if ready else []:
            done.put(number)
            count += 1
    done.put(None)


def test_children_that_wait_by_it_get_each_object_once(start: Start) -> None:
    ctx = get_context("fork")
    todo, done = ctx.Queue(), ctx.Queue()
    assert wait([todo], timeout=0) == []  # a forked child inherits a descriptor that is not its own
    reading, writing = ctx.Pipe(duplex=False)
    for _ in range(2):
        start(ctx, serve, todo, done, reading)
    for number in range(200):
        todo.put(number)
    seen = [done.get(timeout=SLOW) for _ in range(200)]
    writing.send("end")
    assert [done.get(timeout=SLOW), done.get(timeout=SLOW)] == [None, None]
    assert Counter(seen) == Counter(range(200))
    assert drain(todo) == []


def test_what_a_parent_was_told_of_a_forked_child_does_not_take_away() -> None:
    queue: Queue[int] = Queue()
    queue.put(1)
    assert wait([queue], timeout=SLOW) == [queue]
    pid = os.fork()
    if pid == 0:
        got = drain(queue)  # and Empty
        queue.close()
        os._exit(0 if got == [1] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert wait([queue], timeout=0) == [queue]  # worth a try, which finds nothing
    assert drain(queue) == []
    assert wait([queue], timeout=0) == []
    queue.put(2)
    assert wait([queue], timeout=SLOW) == [queue]
