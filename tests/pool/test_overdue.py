"""Handlers that hang, and what else is in the way of a pool's end: killed and replaced, or told. Shows G2."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.pool import others, overdue
from tests.engine.child import eventually
from tests.pool import handlers


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "shmq.pool"]


def test_a_worker_whose_message_its_lease_has_taken_is_killed_and_told(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    jobs, results = broker.queue("jobs", lease=1.0), broker.queue("results")
    jobs.put_many([0, 1, 2, 3, 4, 5])
    counts = shmq.WorkerPool(jobs, handlers.hang_at_first_on_three, processes=2, results=results).run(until_empty=True)
    assert sorted(results.get_many(10, timeout=0)) == [0, 1, 2, 3, 4, 5]
    assert counts == shmq.PoolCounts(handled=6, retried=0, dead={})
    (line,) = said(caplog)
    assert "its handler hangs on message 4, which the lease of 1 s has given back as a failed attempt" in line
    assert jobs.statistics().deaths == 0


def test_a_message_that_hangs_each_time_is_dead_after_its_attempts(broker: shmq.Broker) -> None:
    jobs = broker.queue("jobs", lease=1.0, max_attempts=2)
    jobs.put_many(["hang", "food"])
    shmq.WorkerPool(jobs, handlers.hang, processes=1).run(until_empty=True)
    (dead,) = broker.queue("jobs.dead").browse()
    assert (dead.body, dead.death.reason if dead.death else None) == ("hang", "max_attempts")
    assert jobs.statistics().acked == 1


@pytest.mark.parametrize(
    "handler", [handlers.touch_for_long, handlers.ack_and_go_on, handlers.leave_the_block_and_go_on]
)
def test_a_worker_that_keeps_its_lease_or_needs_none_any_more_is_left_alone(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture, handler: object
) -> None:
    jobs, results = broker.queue("jobs", lease=1.0), broker.queue("results")
    jobs.put(2.5)
    jobs.put(0.0)
    counts = shmq.WorkerPool(jobs, handler, processes=2, results=results).run(until_empty=True)  # type: ignore[arg-type]
    assert counts.handled == 2
    assert said(caplog) == []
    assert results.qsize() == 2


def test_a_call_that_is_over_the_time_limit_is_killed_and_counts_as_a_death(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = broker.queue("jobs", max_deaths=2)
    jobs.put_many(["hang", "food"])
    counts = shmq.WorkerPool(jobs, handlers.hang, processes=1, time_limit=1.0).run(until_empty=True)
    assert counts == shmq.PoolCounts(handled=1, retried=0, dead={"max_deaths": 1})
    (dead,) = broker.queue("jobs.dead").browse()
    assert dead.death is not None
    assert (dead.body, dead.death.reason, dead.death.signal) == ("hang", "max_deaths", signal.SIGKILL)
    lines = said(caplog)
    over = "its handler is over time_limit=1 s with message 1; it is killed and replaced; the message goes back"
    assert [over in line for line in lines] == [True, True, False]
    assert "is dead now" in lines[2]


def test_a_time_limit_is_for_each_call_and_not_for_waiting(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    jobs, results = broker.queue("jobs"), broker.queue("results", maxsize=1)
    with shmq.WorkerPool(jobs, handlers.pid, processes=1, results=results, time_limit=2.0):
        jobs.put_many([1, 2])
        eventually(lambda: results.statistics().producers_waiting == 1, "a result that waits for room")
        threading.Event().wait(2.5)  # longer than the limit
        first, second = results.get(timeout=60), results.get(timeout=60)
    assert first == second
    assert said(caplog) == []


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"time_limit": 0}, ValueError, "more than 0 seconds"),
        ({"time_limit": -1}, ValueError, "out of range"),
        ({"time_limit": "5"}, TypeError, "time_limit='5'"),
        ({"time_limit": 5, "processes": 0}, ValueError, "nothing can be killed"),
        ({"log_tracebacks": 1}, TypeError, "log_tracebacks=1"),
    ],
)
def test_an_unfit_limit_is_refused(
    broker: shmq.Broker, options: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        shmq.WorkerPool(broker.queue("jobs"), handlers.square, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("processes", [1, 2])
def test_handlers_that_take_sigterm_do_not_keep_the_pool(broker: shmq.Broker, processes: int) -> None:
    jobs = broker.queue("jobs")
    jobs.put_many(["ignore", "handle", "mask", "raise", "default"])
    counts = shmq.WorkerPool(jobs, handlers.take_sigterm, processes=processes).run(until_empty=True)
    assert counts == shmq.PoolCounts(handled=5, retried=0, dead={})


@pytest.mark.parametrize("way", ["ignore", "mask"])
def test_stop_ends_a_worker_that_ignores_sigterm_and_waits(broker: shmq.Broker, way: str) -> None:
    jobs, results = broker.queue("jobs"), broker.queue("results")
    with shmq.WorkerPool(jobs, handlers.take_sigterm, processes=1, results=results) as pool:
        jobs.put(way)
        results.get(timeout=60)
        pool.stop(timeout=100.0)
        assert pool.processes() == []


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (handlers.leave_a_thread, "its process is kept by thread left-thread"),
        (handlers.leave_a_child, "its process is kept by child process left-child (pid "),
    ],
)
def test_what_a_handler_leaves_behind_is_named_when_it_keeps_the_pool(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture, tmp_path: Path, handler: Any, words: str
) -> None:
    jobs, gate = broker.queue("jobs"), tmp_path / "gate"
    os.mkfifo(gate)
    jobs.put(str(gate))
    pool: shmq.WorkerPool[Any, Any] = shmq.WorkerPool(jobs, handler, processes=1)
    running = threading.Thread(target=lambda: pool.run(until_empty=True), name="test-run")
    running.start()
    eventually(lambda: said(caplog), "a line")
    os.close(os.open(gate, os.O_WRONLY))
    running.join(120)
    assert not running.is_alive()
    (line,) = said(caplog)
    assert words in line


def test_a_pool_that_waits_for_one_handler_says_for_which_message(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overdue, "LONG_CALL", 0.2)
    jobs = broker.queue("jobs")
    jobs.put(1)
    pool = shmq.WorkerPool(jobs, handlers.hold, processes=2)
    running = threading.Thread(target=lambda: pool.run(until_empty=True), name="test-run")
    running.start()
    worker = broker.queue("begun").get(timeout=120)
    eventually(lambda: [line for line in said(caplog) if "waits for message" in line], "a line")
    broker.queue("go").put(None)
    running.join(120)
    lines = [line for line in said(caplog) if "has not begun" not in line]
    text = "the pool waits for message 1, in its handler for 0.2 s; time_limit= would bound that"
    assert lines == [f"worker {worker} of queue 'jobs': {text}"]


@pytest.mark.parametrize("processes", [0, 1])
def test_a_pool_that_waits_for_what_others_hold_says_so_once(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    monkeypatch.setattr(others, "LONG_CALL", 0.2)
    jobs = broker.queue("jobs")
    jobs.put_many([1, 2])
    held = jobs.receive(timeout=0)
    pool = shmq.WorkerPool(jobs, handlers.square, processes=processes)
    running = threading.Thread(target=lambda: pool.run(until_empty=True), name="test-run")
    running.start()
    eventually(lambda: said(caplog), "a line")
    held.ack()
    running.join(120)
    assert not running.is_alive()
    (line,) = said(caplog)
    assert line.startswith("the pool of queue 'jobs' waits for 1 message that other consumers have in hand")
