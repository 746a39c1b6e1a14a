"""A pool that handles some of a queue's messages and leaves the others."""

import multiprocessing
import threading
from typing import Any

import pytest

import shmq
from tests.pool import handlers


def pool(queue: shmq.Queue[Any], processes: int, **options: Any) -> shmq.WorkerPool[Any, Any]:
    return shmq.WorkerPool(queue, handlers.square, processes=processes, **options)


@pytest.mark.parametrize("processes", [0, 2])
def test_a_pool_with_a_selector_leaves_the_other_messages(broker: shmq.Broker, processes: int) -> None:
    jobs, squares = broker.queue("jobs"), broker.queue("squares")
    for number in range(40):
        jobs.put(number, headers={"even": number % 2 == 0, "number": number})
    jobs.put(100, headers={"even": True}, delay=0.2)
    pool(jobs, processes, results=squares, selector="even AND (number <> 4 OR number IS NULL)").run(until_empty=True)
    done = [n * n for n in (*range(0, 40, 2), 100) if n != 4]
    assert sorted(squares.get_many(100, timeout=0)) == done
    assert jobs.get_many(100, timeout=0) == sorted([4, *range(1, 40, 2)])


def test_a_run_until_empty_waits_for_what_is_selected_and_with_others(broker: shmq.Broker) -> None:
    jobs, squares = broker.queue("jobs"), broker.queue("squares")
    jobs.put(1, headers={"kind": "x"})
    jobs.put(2, headers={"kind": "y"})
    held = jobs.receive(timeout=0)
    thread = threading.Thread(
        target=pool(jobs, 0, results=squares, selector="kind = 'x'").run, kwargs={"until_empty": True}
    )
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    held.release()
    thread.join(60.0)
    assert not thread.is_alive()
    assert squares.get_many(9, timeout=0) == [1]
    assert jobs.get_many(9, timeout=0) == [2]


@pytest.mark.parametrize("selector", ["kind = ", "kind = 'a", "1 + "])
def test_a_malformed_selector_is_refused_before_a_worker_starts(broker: shmq.Broker, selector: str) -> None:
    with pytest.raises(shmq.SelectorError):
        shmq.WorkerPool(broker.queue("jobs"), handlers.square, processes=2, selector=selector)
    with pytest.raises(TypeError):
        shmq.WorkerPool(broker.queue("jobs"), handlers.square, processes=2, selector=7)  # type: ignore[arg-type]
    assert not multiprocessing.active_children()


def test_an_empty_selector_is_none(broker: shmq.Broker) -> None:
    jobs = broker.queue("jobs")
    jobs.put_many(range(3))
    assert pool(jobs, 0, selector="").run(until_empty=True).handled == 3
