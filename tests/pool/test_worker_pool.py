"""A pool in the process of the test: what becomes of messages, results, exceptions and workers."""

import logging
import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child
from tests.pool import handlers
from tests.support.size import sized


def pool(queue: shmq.Queue[Any], handler: Any, processes: int = 2, **options: Any) -> shmq.WorkerPool[Any, Any]:
    return shmq.WorkerPool(queue, handler, processes=processes, **options)


@pytest.mark.parametrize("processes", [0, 1, 3])
def test_each_message_is_handled_once_and_its_result_put(broker: shmq.Broker, processes: int) -> None:
    jobs, squares = broker.queue("jobs"), broker.queue("squares")
    jobs.put_many(range(200))
    pool(jobs, handlers.square, processes, results=squares).run(until_empty=True)
    assert sorted(squares.get_many(1000, timeout=0)) == [n * n for n in range(200)]
    assert jobs.statistics().acked == 200


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_start_by_every_method(broker: shmq.Broker, method: str) -> None:
    jobs, squares = broker.queue("jobs"), broker.queue("squares")
    jobs.put_many(range(10))
    context = multiprocessing.get_context(method)
    pool(jobs, handlers.square, 1, results=squares, mp_context=context).run(until_empty=True)
    assert sorted(squares.get_many(1000, timeout=0)) == [n * n for n in range(10)]


@pytest.mark.parametrize("processes", [0, 2])
def test_nothing_to_do_ends_a_run_until_empty_at_once(broker: shmq.Broker, processes: int) -> None:
    jobs = broker.queue("jobs")
    pool(jobs, handlers.square, processes).run(until_empty=True)
    assert jobs.statistics().delivered == 0


@pytest.mark.parametrize("processes", [0, 2])
def test_a_run_ends_when_the_queue_is_shut_down_and_drained(broker: shmq.Broker, processes: int) -> None:
    jobs, squares = broker.queue("jobs"), broker.queue("squares")
    jobs.put_many(range(20))
    jobs.shutdown()
    pool(jobs, handlers.square, processes, results=squares).run()
    assert sorted(squares.get_many(1000, timeout=0)) == [n * n for n in range(20)]


@pytest.mark.parametrize("processes", [0, 2])
def test_a_message_that_always_fails_is_dead_with_its_traceback_and_the_others_are_done(
    broker: shmq.Broker, processes: int, caplog: pytest.LogCaptureFixture
) -> None:
    jobs, results = broker.queue("jobs", max_attempts=4), broker.queue("results")
    jobs.put_many(range(6))
    pool(jobs, handlers.fail_on_three, processes, results=results).run(until_empty=True)
    assert sorted(results.get_many(1000, timeout=0)) == [0, 1, 2, 4, 5]
    (dead,) = broker.queue("jobs.dead").browse()
    assert dead.body == 3
    assert dead.death is not None
    assert dead.death.reason == "max_attempts"
    assert "LookupError: three" in (dead.death.error or "")
    dead_id = 1 + dead.body
    logged = [record for record in caplog.records if record.name == "shmq.pool"]
    assert all(record.queue == "jobs" and record.pid > 0 for record in logged)  # type: ignore[attr-defined]
    assert [record.message_id for record in logged] == [dead_id] * 4  # type: ignore[attr-defined]
    assert [record.levelno for record in logged] == [logging.WARNING] * 3 + [logging.ERROR]
    *retried, last = [record.getMessage() for record in logged]
    for attempt, text in enumerate(retried, 1):
        assert text.startswith(f"message {dead_id} of queue 'jobs' failed (attempt {attempt} of 4, pid ")
        assert text.endswith("): LookupError: three")
    head, *trace = last.splitlines()
    assert head.startswith(f"message {dead_id} of queue 'jobs' is dead now (attempt 4 of 4, pid ")
    assert head.endswith("): LookupError: three; it went to queue 'jobs.dead'")
    assert (trace[0], trace[-1]) == ("Traceback (most recent call last):", "LookupError: three")


def test_a_handler_that_leaves_by_sys_exit_fails_like_any_other(broker: shmq.Broker) -> None:
    jobs = broker.queue("jobs", max_attempts=2)
    jobs.put("x")
    pool(jobs, handlers.leave, 1).run(until_empty=True)
    (dead,) = broker.queue("jobs.dead").browse()
    assert dead.death is not None
    assert "SystemExit" in (dead.death.error or "")


def test_a_result_that_cannot_be_put_is_a_failure_of_its_message(broker: shmq.Broker) -> None:
    jobs = broker.queue("jobs", max_attempts=2)
    jobs.put("no bytes")
    pool(jobs, handlers.poison, 1, results=broker.queue("results", codec="bytes")).run(until_empty=True)
    (dead,) = broker.queue("jobs.dead").browse()
    assert dead.death is not None
    assert "TypeError" in (dead.death.error or "")


def test_a_handler_may_settle_and_only_what_did_not_fail_has_a_result(broker: shmq.Broker) -> None:
    jobs, results = broker.queue("jobs"), broker.queue("results")
    jobs.put_many(["reject", "ack", "neither"])
    pool(jobs, handlers.settle_itself, 0, results=results).run(until_empty=True)
    assert results.get_many(10, timeout=0) == ["ack", "neither"]
    (dead,) = broker.queue("jobs.dead").browse()
    assert dead.death is not None
    assert (dead.body, dead.death.reason, dead.death.error) == ("reject", "rejected", "not wanted")


def test_a_message_that_kills_three_workers_is_dead_with_signal_and_pids(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    jobs, results = broker.queue("jobs"), broker.queue("results")
    jobs.put_many([*range(20), "poison", *range(20, 40)])
    pool(jobs, handlers.poison, 2, results=results).run(until_empty=True)
    assert sorted(results.get_many(1000, timeout=0)) == list(range(40))
    (dead,) = broker.queue("jobs.dead").browse()
    assert dead.body == "poison"
    assert dead.death is not None
    assert dead.death.reason == "max_deaths"
    assert dead.death.signal == signal.SIGKILL
    assert len(set(dead.death.pids)) == 3
    pids = ", ".join(map(str, dead.death.pids))
    assert dead.death.error == f"3 processes died with it, pids {pids}; the last one killed by SIGKILL"
    assert jobs.statistics().deaths == 3
    texts = [record.getMessage() for record in caplog.records]
    assert sum("killed by SIGKILL; its message 21 goes back, it is replaced" in text for text in texts) == 3
    said = (
        "message 21 of queue 'jobs' is dead now (3 processes died with it, max_deaths=3); it went to queue 'jobs.dead'"
    )
    assert said in texts


def test_a_pool_without_processes_says_what_it_found_dead(broker_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    broker = shmq.open(broker_dir, memory="16MiB")
    jobs = broker.queue("jobs", max_deaths=1, dead_letter="dead_letters")
    jobs.put_many(["deadly", "usual"])
    with Child('m = shmq.open(sys.argv[1]).queue("jobs").receive(); say(m.body); listen()', broker_dir) as child:
        assert child.line() == "deadly"
        child.kill()
    with caplog.at_level(logging.ERROR, "shmq.pool"):
        shmq.WorkerPool(jobs, handlers.pid, processes=0).run(until_empty=True)
    (record,) = caplog.records
    said = (
        "message 1 of queue 'jobs' is dead now (1 process died with it, max_deaths=1); it went to queue 'dead_letters'"
    )
    assert (record.getMessage(), record.message_id) == (said, 1)  # type: ignore[attr-defined]
    assert jobs._pool is None
    broker.close()


def test_many_poisonous_messages_in_a_row_do_not_end_the_pool(broker: shmq.Broker) -> None:
    jobs, results = broker.queue("jobs", max_deaths=1), broker.queue("results")
    jobs.put_many([*["poison"] * 8, "food"])
    pool(jobs, handlers.poison, 1, results=results).run(until_empty=True)
    assert results.get_many(10, timeout=0) == ["food"]
    assert broker.queue("jobs.dead").qsize() == 8


def test_the_signal_is_known_though_others_bury_the_message_before_the_pool_knows_it(broker: shmq.Broker) -> None:
    """A thread that always waits for messages repairs and buries what a killed worker had, mostly before the pool hears
    of that death; the signal is told later then."""
    count = sized(20, 200)
    jobs = broker.queue("jobs", max_deaths=1)
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            try:
                jobs.receive(timeout=0.05).release()
            except shmq.Empty:
                pass

    bystander = threading.Thread(target=look)
    bystander.start()
    try:
        for _ in range(count // 10):
            jobs.put_many(["poison"] * 10)
            pool(jobs, handlers.poison, 2).run(until_empty=True)
    finally:
        ended.set()
        bystander.join()
    deaths = [message.death for message in broker.queue("jobs.dead").browse()]
    late = sum(message._headers().death.signal is None for message in broker.queue("jobs.dead").browse())  # type: ignore[union-attr]
    print(f"{late} of {len(deaths)} were buried before the pool knew the signal")
    assert len(deaths) == count
    known = deaths[-50:]  # the broker keeps 128 notes, here two on each death
    assert [death for death in known if death is None or death.signal != signal.SIGKILL] == []
    assert {(death.error or "").partition("; ")[2] for death in known if death is not None} == {"killed by SIGKILL"}


def test_handlers_may_put_more_while_a_run_until_empty_goes_on(broker: shmq.Broker) -> None:
    """Shows S99."""
    jobs, results, pause = broker.queue("jobs"), broker.queue("results"), broker.queue("pause")
    jobs.put(25)
    pause.put(None)
    pool(jobs, handlers.countdown, 2, results=results).run(until_empty=True)
    assert sorted(results.get_many(100, timeout=0)) == list(range(26))


def test_a_run_until_empty_waits_for_what_others_hold(broker: shmq.Broker) -> None:
    jobs, results = broker.queue("jobs"), broker.queue("results")
    jobs.put(1)
    held = jobs.receive(timeout=0)
    jobs.put(2)
    running = threading.Thread(
        target=lambda: pool(jobs, handlers.square, 1, results=results).run(until_empty=True), name="test-run"
    )
    running.start()
    assert results.get(timeout=120.0) == 4
    held.release()
    assert results.get(timeout=120.0) == 1
    running.join(120.0)
    assert not running.is_alive()


def test_a_worker_is_replaced_after_max_messages(broker: shmq.Broker) -> None:
    jobs, results = broker.queue("jobs"), broker.queue("results")
    jobs.put_many(range(9))
    pool(jobs, handlers.pid, 1, results=results, max_messages=3).run(until_empty=True)
    assert sorted(Counter(results.get_many(100, timeout=0)).values()) == [3, 3, 3]


@pytest.mark.parametrize("processes", [0, 2])
def test_the_initializer_runs_before_the_first_message(broker: shmq.Broker, processes: int) -> None:
    handlers.ended_by.clear()
    jobs, results = broker.queue("jobs"), broker.queue("results")
    jobs.put_many(["a", "b"])
    options: dict[str, Any] = {"initializer": handlers.prepare, "initargs": ("hello",), "results": results}
    pool(jobs, handlers.greeting, processes, **options).run(until_empty=True)
    assert sorted(results.get_many(10, timeout=0)) == ["hello a", "hello b"]


def test_an_initializer_that_fails_ends_the_pool_with_its_error(broker: shmq.Broker) -> None:
    jobs = broker.queue("jobs")
    jobs.put(1)
    with pytest.raises(shmq.WorkerError, match="OSError: no connection to db") as raised:
        pool(jobs, handlers.square, 2, initializer=handlers.break_down, initargs=("db",)).run(until_empty=True)
    assert "in break_down" in "".join(raised.value.__notes__)
    assert raised.value.remedy
    assert jobs.qsize() == 1


def test_workers_that_die_without_a_word_end_the_pool_with_their_exit_code(broker: shmq.Broker) -> None:
    jobs = broker.queue("jobs")
    jobs.put(1)
    with pytest.raises(shmq.WorkerError, match="ended with exit code 9"):
        pool(jobs, handlers.square, 2, initializer=handlers.die_at_once).run(until_empty=True)
    assert jobs.qsize() == 1


def test_a_handler_that_cannot_be_sent_is_refused_before_anything_starts(broker: shmq.Broker) -> None:
    jobs = broker.queue("jobs")
    jobs.put(1)
    with pytest.raises(TypeError, match=r"cannot be sent to a worker process.*top of a module"):
        pool(jobs, lambda message: None, 1).run(until_empty=True)
    with pytest.raises(TypeError, match="cannot be sent to a worker process"):
        pool(jobs, lambda message: None, 1).__enter__()
    assert jobs.qsize() == 1


async def coroutine(message: shmq.Message[Any]) -> None: ...


def generator(message: shmq.Message[Any]) -> Iterator[Any]:
    yield message.body


def field(name: str, message: shmq.Message[Any]) -> Any:
    return getattr(message, name)


class AsynchronousCall:
    async def __call__(self, message: shmq.Message[Any]) -> None: ...


class PlainCall:
    def __call__(self, message: shmq.Message[Any]) -> Any:
        return message.body


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (lambda: None, "cannot be called with one message: too many positional"),
        (lambda message, other: None, "cannot be called with one message: missing a required argument: 'other'"),
        (lambda *, message: None, "cannot be called with one message"),
        (coroutine, r"coroutine function.*asyncio\.run"),
        (AsynchronousCall(), "coroutine function"),
        (generator, "generator function"),
    ],
)
def test_a_handler_that_cannot_handle_a_message_is_refused_before_the_first_one(
    broker: shmq.Broker, handler: Any, words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        shmq.WorkerPool(broker.queue("jobs"), handler, processes=0)


@pytest.mark.parametrize(
    "handler", [PlainCall(), PlainCall().__call__, partial(field, "body"), lambda *all: None, str, print]
)
def test_whatever_takes_one_argument_is_a_handler(broker: shmq.Broker, handler: Any) -> None:
    jobs = broker.queue("jobs")
    jobs.put(1)
    shmq.WorkerPool(jobs, handler, processes=0).run(until_empty=True)
    assert jobs.statistics().acked == 1


@pytest.mark.parametrize("processes", [0, 1])
def test_the_traceback_of_a_failure_begins_in_the_handler(
    broker: shmq.Broker, processes: int, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = broker.queue("jobs", max_attempts=1)
    jobs.put("it")
    pool(jobs, handlers.fail, processes).run(until_empty=True)
    (dead,) = broker.queue("jobs.dead").browse()
    assert dead.death is not None
    record = caplog.records[0]
    for text in (dead.death.error or "", record.getMessage().partition("\n")[2]):
        head, first, *_ = text.splitlines()
        assert head == "Traceback (most recent call last):"
        assert "handlers.py" in first
        assert text.endswith("LookupError: no such thing as it")


def test_a_deleted_queue_ends_the_run_with_not_found(broker: shmq.Broker) -> None:
    jobs, begun = broker.queue("jobs"), broker.queue("begun")
    jobs.put(1)

    def delete() -> None:
        begun.get(timeout=120.0)
        jobs.delete()
        broker.queue("go").put(None)

    deleting = threading.Thread(target=delete, name="test-delete")
    deleting.start()
    with pytest.raises(shmq.NotFound, match="deleted"):
        pool(jobs, handlers.hold, 1).run()
    deleting.join()


def test_results_that_nobody_can_put_any_more_end_the_pool_and_lose_nothing(broker: shmq.Broker) -> None:
    jobs, results = broker.queue("jobs"), broker.queue("results")
    jobs.put_many(range(5))
    results.shutdown()
    with pytest.raises(shmq.WorkerError, match=r"cannot put its results.*shut down"):
        pool(jobs, handlers.square, 2, results=results).run()
    assert jobs.qsize() == 5


# ---- stop, with, threads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [0, 2])
def test_with_starts_the_pool_and_its_end_stops_it(broker: shmq.Broker, processes: int) -> None:
    jobs, squares = broker.queue("jobs"), broker.queue("squares")
    with pool(jobs, handlers.square, processes, results=squares) as running:
        assert "shmq-pool" in {thread.name for thread in threading.enumerate()}
        jobs.put(7)
        assert squares.get(timeout=120.0) == 49
        with pytest.raises(RuntimeError, match="runs already"):
            running.run()
    assert running.processes() == []
    assert "shmq-pool" not in {thread.name for thread in threading.enumerate()}
    running.stop()  # once more is fine
    jobs.put(8)
    running.run(until_empty=True)  # and the pool can run again
    assert squares.get(timeout=0) == 64


@pytest.mark.parametrize("processes", [0, 2])
def test_stop_from_another_thread_lets_the_message_in_hand_be_finished(broker: shmq.Broker, processes: int) -> None:
    jobs, results = broker.queue("jobs"), broker.queue("results")
    jobs.put("first")
    running = pool(jobs, handlers.hold, processes, results=results)

    def stop() -> None:
        broker.queue("begun").get(timeout=120.0)
        broker.queue("go").put(None)
        running.stop(timeout=120.0)

    stopping = threading.Thread(target=stop, name="test-stop")
    stopping.start()
    running.run()
    stopping.join(120.0)
    assert not stopping.is_alive()
    assert results.get(timeout=0) == "first"
    assert jobs.statistics().acked == 1


def test_stop_kills_after_its_timeout_and_the_message_goes_back(broker: shmq.Broker) -> None:
    jobs, begun = broker.queue("jobs"), broker.queue("begun")
    jobs.put("stuck")
    with pool(jobs, handlers.hold, 1) as running:
        begun.get(timeout=120.0)
        running.stop(timeout=0.1)
        assert running.processes() == []
    message = jobs.receive(timeout=0)
    assert (message.body, message.redelivered) == ("stuck", True)
    message.ack()


def test_without_processes_a_stop_that_cannot_wait_longer_says_so(broker: shmq.Broker) -> None:
    jobs, begun = broker.queue("jobs"), broker.queue("begun")
    jobs.put("stuck")
    with pool(jobs, handlers.hold, 0) as running:
        begun.get(timeout=120.0)
        with pytest.raises(shmq.Timeout, match="still at work"):
            running.stop(timeout=0.05)
        broker.queue("go").put(None)
    assert jobs.statistics().acked == 1


def test_an_idle_worker_that_is_killed_is_replaced(broker: shmq.Broker) -> None:
    jobs, results = broker.queue("jobs"), broker.queue("results")
    with pool(jobs, handlers.pid, 1, results=results):
        jobs.put(1)
        first = results.get(timeout=120.0)
        os.kill(first, signal.SIGKILL)
        jobs.put(2)
        second = results.get(timeout=120.0)
        if second == first:  # it had taken the message before the signal came
            jobs.put(3)
            second = results.get(timeout=120.0)
    assert second != first


def test_processes_are_those_of_the_workers(broker: shmq.Broker) -> None:
    jobs, begun = broker.queue("jobs"), broker.queue("begun")
    jobs.put_many([1, 2])
    with pool(jobs, handlers.hold, 2) as running:
        pids = {begun.get(timeout=120.0), begun.get(timeout=30.0)}
        infos = running.processes()
        assert {info.pid for info in infos} == pids
        assert [info.unsettled for info in infos] == [1, 1]
        assert [info.name for info in infos] == ["worker jobs"] * 2
        broker.queue("go").put_many([None, None])


# ---- arguments -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"selector": "a = "}, ValueError),
        ({"processes": -1}, ValueError),
        ({"processes": True}, TypeError),
        ({"max_messages": 0}, ValueError),
        ({"results": "results"}, TypeError),
        ({"initializer": 3}, TypeError),
        ({"mp_context": "thread"}, ValueError),
        ({"mp_context": 3}, TypeError),
    ],
)
def test_a_wrong_argument_is_refused_at_once(
    broker: shmq.Broker, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        shmq.WorkerPool(broker.queue("jobs"), handlers.square, **options)


def test_the_default_is_a_worker_for_each_cpu_of_this_process(broker: shmq.Broker) -> None:
    count = len(os.sched_getaffinity(0))
    assert f"{count} processes" in repr(shmq.WorkerPool(broker.queue("jobs"), handlers.square))


def test_progress_without_a_terminal_is_lines_on_stderr(broker: shmq.Broker, capfd: pytest.CaptureFixture[str]) -> None:
    jobs = broker.queue("jobs")
    jobs.put_many(range(5))
    pool(jobs, handlers.square, 1, progress=True).run(until_empty=True)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "jobs: 5 of 5" in captured.err
