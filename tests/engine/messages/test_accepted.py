"""An error of a call with many messages says how many of them are in, whatever it is; one of another call says 0."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child, eventually
from tests.engine.lifecycle.test_shutdown import finish, in_thread


def failed_with_100_in(broker: shmq.Broker, name: str) -> BaseException:
    """The error of a put_many of 200 that waits behind its 100th message while the queue is shut down."""
    queue = broker.queue(name, maxsize=100)
    thread, results = in_thread(lambda: queue.put_many(range(200)))
    eventually(lambda: queue.statistics().producers_waiting == 1, "a waiting producer")
    queue.shutdown()
    finish(thread)
    error: BaseException = results[0]
    return error


def test_a_shutdown_amid_a_batch_says_how_many_are_in(broker: shmq.Broker) -> None:
    error = failed_with_100_in(broker, "jobs")
    assert isinstance(error, shmq.ShutDown)
    assert error.accepted == 100
    assert "100 of this call accepted" in str(error)
    assert pickle.loads(pickle.dumps(error)).accepted == 100


@pytest.mark.parametrize("way", ["put", "loan"])
def test_the_next_error_of_this_thread_counts_nothing_of_an_older_batch(broker: shmq.Broker, way: str) -> None:
    small, queue = broker.queue("small", maxsize=1), broker.queue("jobs", maxsize=100)
    small.put(0)

    def end_it() -> None:
        eventually(lambda: queue.statistics().producers_waiting == 1, "a waiting producer")
        queue.shutdown()

    other, _ = in_thread(end_it)
    with pytest.raises(shmq.ShutDown):  # in this thread, as what follows
        queue.put_many(range(200))
    finish(other)
    calls: dict[str, Callable[[], object]] = {
        "put": lambda: small.put(1, timeout=0),
        "loan": lambda: small.loan(4, timeout=0).commit(),
    }
    with pytest.raises(shmq.Full) as caught:
        calls[way]()
    assert caught.value.accepted == 0
    assert "of this call" not in str(caught.value)


def test_a_deletion_amid_a_batch_says_how_many_are_in(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=70)
    thread, results = in_thread(lambda: queue.put_many(range(200)))
    eventually(lambda: queue.statistics().producers_waiting == 1, "a waiting producer")
    queue.delete()
    finish(thread)
    assert isinstance(results[0], shmq.NotFound)
    assert results[0].accepted == 70


def after(count: int, error: BaseException) -> Iterator[int]:
    yield from range(count)
    raise error


LARGE = bytes(5_000_000)
FAILURES: dict[str, tuple[type[BaseException], Callable[[int], Any]]] = {
    "a body that the codec refuses": (TypeError, lambda count: [*range(count), {1}, 2]),
    "a body that is too large": (shmq.MessageTooLarge, lambda count: [*range(count), LARGE]),
    "an iterator that fails": (ZeroDivisionError, lambda count: after(count, ZeroDivisionError())),
    "Ctrl-C in the iterator": (KeyboardInterrupt, lambda count: after(count, KeyboardInterrupt())),
}


@pytest.mark.parametrize("count", [0, 5, 64, 130])
@pytest.mark.parametrize("name", sorted(FAILURES))
def test_every_error_of_a_batch_says_how_many_are_in(queue: shmq.Queue[Any], name: str, count: int) -> None:
    kind, bodies = FAILURES[name]
    with pytest.raises(kind) as caught:
        queue.put_many(bodies(count))
    assert caught.value.accepted == count  # type: ignore[attr-defined]
    assert queue.qsize() == count


def test_a_batch_that_does_not_begin_has_nothing_in(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    calls: list[Callable[[], object]] = [
        lambda: queue.put_many(5),  # type: ignore[arg-type]
        lambda: queue.put_many([1], timeout=-1),
        lambda: queue.put_many([1], headers={"shmq-x": 1}),
        lambda: queue.put_many(),  # type: ignore[call-arg]
    ]
    for call in calls:
        with pytest.raises((TypeError, ValueError)) as caught:
            call()
        assert caught.value.accepted == 0  # type: ignore[attr-defined]
    broker.close()
    with pytest.raises(shmq.Closed) as closed:
        queue.put_many([1])
    assert closed.value.accepted == 0


def test_an_exception_without_attributes_is_raised_as_it_is(queue: shmq.Queue[Any]) -> None:
    class Stubborn(Exception):
        @property
        def accepted(self) -> str:
            return "mine"

    with pytest.raises(Stubborn) as caught:
        queue.put_many(after(3, Stubborn()))
    assert caught.value.accepted == "mine"
    assert queue.qsize() == 3


def test_ctrl_c_in_the_wait_for_room_says_how_many_are_in(broker_dir: Path, broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=70)
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
say("waits")
try:
    q.put_many(range(200))
except KeyboardInterrupt as error:
    say(error.accepted)
listen()
"""
    with Child(program, broker_dir) as child:
        assert child.line() == "waits"
        child.sleeps()
        child.interrupt()
        assert child.line() == "70"
        child.tell("end")
        child.end()
    assert queue.qsize() == 70


def test_a_move_that_fails_says_how_many_went(broker: shmq.Broker) -> None:
    here, there = broker.queue("here"), broker.queue("there", maxsize=3)
    here.put_many(range(5))
    with pytest.raises(shmq.Full, match="3 of this call accepted") as caught:
        here.move(there)
    assert caught.value.accepted == 3
    there.shutdown()
    with pytest.raises(shmq.ShutDown) as shut:
        here.move(there)
    assert shut.value.accepted == 0
