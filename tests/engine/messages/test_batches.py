"""Many at once: put_many, get_many, receive_many, purge, join."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child
from tests.engine.lifecycle.test_shutdown import finish, in_thread


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000])
def test_put_many_keeps_the_order(queue: shmq.Queue[Any], count: int) -> None:
    mixed = [(b"b", "t", n, {"n": n}, b"x" * 5000)[n % 5] for n in range(count)]
    assert queue.put_many(iter(mixed), headers={"batch": 1}) is None  # type: ignore[func-returns-value]
    assert queue.qsize() == count
    assert all(m.headers["batch"] == 1 for m in queue.browse())
    assert queue.get_many(count + 5, timeout=0) == mixed


def test_a_faulty_body_in_the_middle_ends_the_batch_behind_what_came_before(queue: shmq.Queue[Any]) -> None:
    for before in (0, 1, 70):
        with pytest.raises(TypeError):
            queue.put_many([*range(before), {1, 2}, *range(5)])
        assert queue.get_many(1000, timeout=0) == list(range(before))


def test_an_iterator_that_fails_ends_the_batch_behind_what_came_before(queue: shmq.Queue[Any]) -> None:
    def numbers() -> Iterator[int]:
        yield from range(70)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        queue.put_many(numbers())
    assert queue.get_many(1000, timeout=0) == list(range(70))


def test_an_iterator_may_use_the_queue_itself(queue: shmq.Queue[Any]) -> None:
    queue.put_many(range(3))
    queue.put_many(n * 2 for n in iter(lambda: queue.get(timeout=0) if queue.qsize() else None, None) if n is not None)
    assert queue.get_many(9, timeout=0) == [0, 2, 4]


def test_a_waiting_put_many_goes_on_when_there_is_room(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=10)
    thread, results = in_thread(lambda: queue.put_many(range(500)))
    taken: list[int] = []
    while len(taken) < 500:
        taken += queue.get_many(7, timeout=10)
    finish(thread)
    assert taken == list(range(500))
    assert results == [None]


@pytest.mark.in_hand
@pytest.mark.parametrize("way", ["get_many", "receive_many", "consumer"])
def test_takers_of_many_wait_for_the_first_and_take_what_is_there(queue: shmq.Queue[Any], way: str) -> None:
    source: Any = queue.consumer() if way == "consumer" else queue
    take = source.get_many if way == "get_many" else source.receive_many
    assert take(5, timeout=0) == []
    start = time.monotonic()
    assert take(5, timeout=0.05) == []
    assert time.monotonic() - start >= 0.05  # a lower bound: no load of the machine can break it
    queue.put_many(range(7))
    for expected in ([0, 1, 2, 3, 4], [5, 6]):
        batch = take(5, timeout=0)
        assert [item if way == "get_many" else item.body for item in batch] == expected
        for item in batch:
            if way != "get_many":
                item.ack()
    thread, results = in_thread(lambda: take(5))
    queue.put("late")
    finish(thread)
    last: Any = results[0]
    assert [item if way == "get_many" else item.body for item in last] == ["late"]


def test_takers_of_many_drain_before_they_hear_of_the_shutdown(queue: shmq.Queue[Any]) -> None:
    queue.put_many(range(5))
    queue.shutdown()
    assert queue.get_many(3) == [0, 1, 2]
    assert [m.body for m in queue.receive_many(10)] == [3, 4]


def test_purge_takes_what_is_ready_and_nothing_else(queue: shmq.Queue[Any]) -> None:
    """Shows S86, E5, E16."""
    queue.put_many(range(10))
    held = queue.receive_many(3, timeout=0)
    assert queue.purge() == 7
    assert queue.purge() == 0
    assert (queue.qsize(), queue.statistics().unsettled) == (0, 3)
    held[0].release()
    held[1].ack()
    assert queue.get(timeout=0) == 0
    held[2].ack()
    queue.put("new")
    assert queue.get(timeout=0) == "new"


def test_purge_gives_the_memory_back(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    """Shows G5."""
    for _ in range(10):
        queue.put_many([b"x" * 500_000] * 10, timeout=0)
        assert queue.purge() == 10
    assert broker.statistics().queues["jobs"].bytes == 0


def test_join_waits_until_nothing_is_ready_or_unsettled(broker_dir: Path, queue: shmq.Queue[Any]) -> None:
    queue.join()
    queue.put_many(["a", "b", "c"])
    for timeout in (0, 0.01):
        with pytest.raises(shmq.Timeout, match="'jobs'"):
            queue.join(timeout=timeout)
    done = threading.Event()

    def wait() -> None:
        queue.join(timeout=30)
        done.set()

    thread, results = in_thread(wait)
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
for n in range(3):
    m = q.receive(timeout=5)
    say("has", m.body)
    listen()
    m.ack()
listen()
"""
    with Child(program, broker_dir) as child:
        for body in "abc":
            assert child.line() == f"has {body}"
            assert not done.is_set()
            child.tell("ack")
        finish(thread)
        assert done.is_set()
        assert results == [None]
        child.tell("end")
        child.end()


def test_join_is_done_by_messages_that_die_and_hindered_by_messages_that_come_back(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", max_attempts=1)
    queue.put("a")
    m = queue.receive(timeout=0)
    m.release()
    with pytest.raises(shmq.Timeout):
        queue.join(timeout=0)
    queue.receive(timeout=0).retry()
    queue.join(timeout=0)


def test_no_wait_ends_before_its_timeout(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=1)
    for call, error in (
        (lambda: queue.get(timeout=0.1), shmq.Empty),
        (lambda: queue.receive(timeout=0.1), shmq.Empty),
        (lambda: queue.consumer().receive(timeout=0.1), shmq.Empty),
    ):
        start = time.monotonic()
        with pytest.raises(error):
            call()
        assert time.monotonic() - start >= 0.1
    queue.put("a")
    puts: list[Callable[[], object]] = [lambda: queue.put("b", timeout=0.1), lambda: queue.put([1], timeout=0.1)]
    for put in puts:
        start = time.monotonic()
        with pytest.raises(shmq.Full):
            put()
        assert time.monotonic() - start >= 0.1
    start = time.monotonic()
    with pytest.raises(shmq.Timeout):
        queue.join(timeout=0.1)
    assert time.monotonic() - start >= 0.1
