"""How objects lie in shared memory, and what other handles of shmq make of them."""

import io
import multiprocessing.reduction
from typing import Any

import pytest

from shmq.errors import DecodeError
from shmq.mp import Queue
from shmq.mp.process_broker import own_broker


class Reduced:
    """Pickles by a reducer of multiprocessing only."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stream = io.BytesIO()
        self.lock = multiprocessing.reduction  # a module: no pickle of this object can be made without the reducer


def reduce(item: Reduced) -> Any:
    return Reduced, (item.name + ", reduced",)


def test_bytes_and_text_lie_there_as_they_are_and_all_else_is_pickled() -> None:
    queue: Queue[Any] = Queue()
    for item in (b"octets", "text", "\udc80", 7, bytearray(b"array"), type("Text", (str,), {})("x").upper()):
        queue.put(item)
    assert [m.content_type for m in queue._queue.browse()] == [
        "application/octet-stream",
        "text/plain; charset=utf-8",
        "application/x-python-pickle",
        "application/x-python-pickle",
        "application/x-python-pickle",
        "text/plain; charset=utf-8",
    ]


def test_an_ordinary_handle_reads_bytes_and_text_and_unpickles_nothing() -> None:
    queue: Queue[Any] = Queue()
    queue.put(b"octets")
    queue.put("text")
    queue.put({1, 2})
    plain = own_broker().queue(queue._queue.name)
    assert [plain.get(), plain.get()] == [b"octets", "text"]
    with pytest.raises(DecodeError):
        plain.get(timeout=0)
    assert queue.get() == {1, 2}


def test_what_an_ordinary_handle_puts_comes_out_as_it_was() -> None:
    queue: Queue[Any] = Queue()
    plain = own_broker().queue(queue._queue.name)
    for item in ({"a": [1, None]}, "text", b"octets"):
        plain.put(item)
    assert [queue.get(), queue.get(), queue.get()] == [{"a": [1, None]}, "text", b"octets"]


def test_a_reducer_that_is_registered_late_is_used_at_once() -> None:
    queue: Queue[Any] = Queue()
    with pytest.raises(TypeError):
        queue.put(Reduced("before"))
    multiprocessing.reduction.ForkingPickler.register(Reduced, reduce)
    queue.put([Reduced("after")])
    assert queue.get()[0].name == "after, reduced"
    assert queue.empty()


def test_large_buffers_are_read_where_they_lie_and_pin_nothing_afterwards() -> None:
    import numpy

    queue: Queue[Any] = Queue()
    used = own_broker().statistics().memory_used
    for _ in range(20):
        queue.put(numpy.ones(1_000_000))
        taken = queue.get()
        assert taken.sum() == 1_000_000
    assert own_broker().statistics().processes[0].pinned_bytes == 0
    assert own_broker().statistics().memory_used <= used + 3 * 8_000_000
