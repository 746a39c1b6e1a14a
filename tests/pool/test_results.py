"""The value that a handler returns: whose it is, and whether it is a result at all."""

import collections
import concurrent.futures
import functools
import itertools
import logging
import multiprocessing.pool
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import shmq
from tests.engine.child import eventually
from tests.pool import handlers

done: list[Any] = []


async def fetch(message: shmq.Message[Any]) -> None:
    done.append(message.body)


def items(message: shmq.Message[Any]) -> Iterator[Any]:
    done.append(message.body)
    yield message.body


async def stream(message: shmq.Message[Any]) -> AsyncIterator[Any]:
    done.append(message.body)
    yield message.body


def decorated(call: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*arguments: Any) -> Any:
        return call(*arguments)

    return wrapper


class Pooled(multiprocessing.pool.ApplyResult[Any]):
    def __init__(self) -> None:
        pass  # without a pool


class Waits:
    def __await__(self) -> Iterator[None]:
        yield


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (lambda m: fetch(m), "returned a coroutine"),
        (decorated(fetch), "returned a coroutine"),
        (functools.wraps(fetch)(decorated(fetch)), "returned a coroutine"),
        (lambda m: items(m), "returned a generator"),
        (lambda m: (str(n) for n in [m.body]), "returned a generator"),
        (lambda m: stream(m), "returned an asynchronous generator"),
        (lambda m: Waits(), "returned an awaitable, of type Waits"),
        (lambda m: map(done.append, [m.body]), "returned an iterator, of type map"),
        (lambda m: itertools.takewhile(done.append, [m.body]), "returned an iterator, of type takewhile"),
        (lambda m: concurrent.futures.Future(), "returned a future, of type Future"),
        (lambda m: Pooled(), "returned a result of a multiprocessing.Pool, of type Pooled"),
        (lambda m: [fetch(m), fetch(m)], "returned a list with a coroutine, of type coroutine"),
        (lambda m: ("status", fetch(m)), "returned a tuple with a coroutine"),
        (lambda m: {"work": items(m)}, "returned a dict with a generator"),
        (lambda m: {concurrent.futures.Future()}, "returned a set with a future"),
        (lambda m: collections.deque([Waits()]), "returned a deque with an awaitable"),
    ],
)
def test_work_that_was_not_done_is_a_failed_attempt(
    broker: shmq.Broker, handler: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows G2."""
    done.clear()
    jobs = broker.queue("jobs", max_attempts=2, retry_delay=0)
    jobs.put("a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as: coroutine was never awaited
        counts = shmq.WorkerPool(jobs, handler, processes=0, results=broker.queue("results")).run(until_empty=True)
    assert counts == shmq.PoolCounts(handled=0, retried=1, dead={"max_attempts": 1})
    (dead,) = broker.queue("jobs.dead").browse()
    assert dead.death is not None
    assert words in (dead.death.error or "")
    assert "its work is not done; the function has to" in (dead.death.error or "")
    assert (dead.death.error or "").count("\n") == 0
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.ERROR]
    assert done == []


@pytest.mark.parametrize("result", [[1], "text", b"", 0, None, {"a": 1}, True, [[]], {"a": [None]}])
def test_plain_results_are_results(broker: shmq.Broker, result: Any) -> None:
    jobs, results = broker.queue("jobs"), broker.queue("results")
    jobs.put("a")
    shmq.WorkerPool(jobs, lambda m: result, processes=0, results=results).run(until_empty=True)
    assert results.get(timeout=0) == result


def test_an_initializer_that_does_not_run_is_refused(broker: shmq.Broker) -> None:
    jobs = broker.queue("jobs")
    jobs.put("a")
    with pytest.raises(TypeError, match=r"initializer=.*coroutine function"):
        shmq.WorkerPool(jobs, print, processes=0, initializer=fetch)
    pool = shmq.WorkerPool(jobs, print, processes=0, initializer=decorated(fetch), initargs=(None,))
    with pytest.raises(TypeError, match=r"initializer .*returned a coroutine"):
        pool.run(until_empty=True)
    assert jobs.qsize() == 1


@pytest.mark.parametrize("arguments", ["db", b"db", {"name": "db"}, 5, None])
def test_arguments_that_are_no_tuple_are_refused(broker: shmq.Broker, arguments: Any) -> None:
    with pytest.raises(TypeError, match=r"initargs=.*with one argument \(argument,\)"):
        shmq.WorkerPool(broker.queue("jobs"), print, processes=0, initializer=print, initargs=arguments)


def test_a_process_that_a_handler_has_forked_does_not_do_its_parents_work_again(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    jobs, results = broker.queue("jobs"), broker.queue("results")
    jobs.put_many([0, 1, 2])
    with shmq.WorkerPool(jobs, handlers.fork_and_forget, processes=1, results=results):
        eventually(lambda: len(caplog.records) >= 3, "three lines")
    assert results.get_many(10, timeout=0) == [0, 1, 2]
    lines = sorted(record.getMessage() for record in caplog.records)
    text = (
        "a process that its handler has forked came back from it, and was ended; end it in the handler, by os._exit()"
    )
    assert lines == [f"message {number}: {text}" for number in (1, 2, 3)]


def text_of_body(message: shmq.Message[Any]) -> str:
    return str(message.body)


@pytest.mark.parametrize("processes", [0, 2])
def test_a_result_names_the_message_that_it_belongs_to(broker: shmq.Broker, processes: int) -> None:
    jobs, results = broker.queue("jobs"), broker.queue("results")
    jobs.put_many(range(20))
    ids = {message.id: str(message.body) for message in jobs.browse()}
    shmq.WorkerPool(jobs, text_of_body, processes=processes, results=results).run(until_empty=True)
    assert {message.headers["job"]: message.body for message in results.browse()} == ids
