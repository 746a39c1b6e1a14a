"""A message that fails is seen, rests before its next attempt, and is told once when it dies."""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import shmq
from shmq.engine.handle import long_wait
from shmq.pool import back_off
from tests.engine.child import eventually
from tests.pool import handlers

LONG = 600.0  # seconds; nothing in these tests waits for it


def said(caplog: pytest.LogCaptureFixture, *loggers: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name in loggers]


# ---- back-off ------------------------------------------------------------------------------------------------------


def test_delays_double_up_to_the_longest_and_jitter_takes_at_most_half(seed: int) -> None:
    assert (back_off.FIRST, back_off.MOST, back_off.SEED) == (0.1, 30.0, None)
    delays = back_off.BackOff(seed=seed)
    for failed in [*range(12), 65_535]:
        full = min(0.1 * 2.0 ** min(failed, 60), 30.0)
        assert all(full / 2 <= delays.delay_ns(failed) / 1e9 <= full for _ in range(100))
    one, other = back_off.BackOff(seed=seed), back_off.BackOff(seed=seed)
    drawn = [one.delay_ns(5) for _ in range(10)]
    assert drawn == [other.delay_ns(5) for _ in range(10)]
    assert len(set(drawn)) > 1


@pytest.mark.parametrize("processes", [0, 2])
def test_what_failed_rests_and_a_stop_meanwhile_ends_the_pool_at_once_and_loses_nothing(
    broker: shmq.Broker, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    monkeypatch.setattr(back_off, "FIRST", LONG)
    monkeypatch.setattr(back_off, "MOST", LONG)
    jobs, results = broker.queue("jobs"), broker.queue("results")
    jobs.put_many([3, 4])
    with shmq.WorkerPool(jobs, handlers.fail_on_three, processes=processes, results=results) as running:
        assert results.get(timeout=60.0) == 4  # the others go on
        eventually(lambda: jobs.statistics().delayed == 1, "one that rests")
        running.stop(timeout=60.0)
    (resting,) = jobs.browse()
    assert (resting.body, resting.delivery_count) == (3, 1)
    assert jobs.statistics().unsettled == 0


@pytest.mark.parametrize("given", ["made", "altered", "handler"])
def test_what_the_queue_or_the_handler_says_wins_also_if_it_is_0(
    broker: shmq.Broker, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setattr(back_off, "FIRST", LONG)
    monkeypatch.setattr(back_off, "MOST", LONG)
    jobs = broker.queue("jobs", max_attempts=5)
    if given == "made":
        jobs = broker.queue("others", max_attempts=5, retry_delay=0)
    elif given == "altered":
        jobs.alter(retry_delay=0)
    jobs.put(3)
    handler = handlers.retry_at_once if given == "handler" else handlers.fail_on_three
    counts = shmq.WorkerPool(jobs, handler, processes=1).run(until_empty=True)
    assert counts == shmq.PoolCounts(handled=0, retried=4, dead={"max_attempts": 1})


def test_the_delay_grows_with_the_message_whichever_worker_has_it(
    broker: shmq.Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = broker.queue("noted")

    def note(self: back_off.BackOff, failed: int) -> int:
        noted.put([failed, os.getpid()])
        return 0

    monkeypatch.setattr(back_off.BackOff, "delay_ns", note)
    jobs = broker.queue("jobs", max_attempts=5)
    jobs.put(3)
    shmq.WorkerPool(jobs, handlers.fail_on_three, processes=1, max_messages=1, mp_context="fork").run(until_empty=True)
    found = noted.get_many(10, timeout=0)
    assert [failed for failed, _ in found] == [0, 1, 2, 3]
    assert len({pid for _, pid in found}) == 4


def test_without_a_pool_a_retry_is_ready_at_once(broker: shmq.Broker) -> None:
    jobs = broker.queue("jobs")
    jobs.put("a")
    jobs.receive(timeout=0).retry()
    assert jobs.qsize() == 1


RESTING = """
import sys

import shmq
from shmq.pool import back_off

back_off.FIRST = back_off.MOST = 600.0


def handle(m):
    raise LookupError("down")


if __name__ == "__main__":
    with shmq.open("jobs.shmq") as broker:
        shmq.WorkerPool(broker.queue("jobs"), handle, processes=int(sys.argv[1])).run(until_empty=True)
"""


@pytest.mark.parametrize("processes", [0, 1])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_a_signal_while_all_rests_ends_the_run_at_once(
    tmp_path: Path, processes: int, number: signal.Signals, code: int
) -> None:
    (tmp_path / "program.py").write_text(RESTING)
    with shmq.open(tmp_path / "jobs.shmq", memory="32MiB") as broker:
        jobs = broker.queue("jobs")
        jobs.put("a")
        with subprocess.Popen(
            [sys.executable, "program.py", str(processes)], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                eventually(lambda: jobs.statistics().delayed == 1, "one that rests")
                process.send_signal(number)
                _, words = process.communicate(timeout=60)
            finally:
                process.kill()
        assert process.returncode == code, words
        assert "LookupError: down" in words
        (resting,) = jobs.browse()
        assert resting.delivery_count == 1


# ---- deaths --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [0, 1])
def test_a_message_that_a_handler_rejects_is_told_once_with_its_error(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture, processes: int
) -> None:
    jobs = broker.queue("jobs")
    jobs.put("reject")
    shmq.WorkerPool(jobs, handlers.settle_itself, processes=processes).run(until_empty=True)
    assert said(caplog, "shmq.pool", "shmq.broker") == [
        "message 1 of queue 'jobs' is dead now (rejected: not wanted); it went to queue 'jobs.dead'"
    ]


@pytest.mark.memory  # all that is logged is compared
def test_what_dies_by_a_consumer_is_told_once_with_its_error(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    jobs, others = broker.queue("jobs"), broker.queue("others", max_attempts=1)
    jobs.put("a")
    others.put("b")
    jobs.receive(timeout=0).reject(ValueError("no such order"))
    others.receive(timeout=0).retry("no carrier again")
    assert said(caplog, "shmq.broker") == [
        "message 1 of queue 'jobs' is dead (rejected: ValueError: no such order); it went to queue 'jobs.dead'",
        "message 2 of queue 'others' is dead (max_attempts: no carrier again); it went to queue 'others.dead'",
    ]
    record = caplog.records[0]
    assert (record.queue, record.message_id, record.reason) == ("jobs", 1, "rejected")  # type: ignore[attr-defined]
    assert record.levelno == logging.WARNING


def test_what_expires_or_was_deleted_with_its_queue_is_no_failure(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = broker.queue("jobs", dead_letter_expired=True, dead_letter="dead_letters")
    jobs.put("a", ttl=0)
    jobs.put("b")
    jobs.join(timeout=0) if jobs.get(timeout=0) == "b" else None
    eventually(lambda: jobs.statistics().expired == 1, "one that has expired")
    jobs.put("c")
    jobs.delete()
    assert said(caplog, "shmq.broker") == []
    assert broker.queue("dead_letters").qsize() == 2


@pytest.mark.parametrize("processes", [0, 1])
def test_a_result_that_is_refused_is_one_line_that_names_handler_and_type(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture, processes: int
) -> None:
    jobs, results = broker.queue("jobs", max_attempts=1), broker.queue("results")
    jobs.put("a")
    shmq.WorkerPool(jobs, handlers.refuse, processes=processes, results=results).run(until_empty=True)
    (dead,) = broker.queue("jobs.dead").browse()
    assert dead.death is not None
    line = "queue 'results' does not take what refuse() returned, of type set: TypeError: "
    for text in (dead.death.error or "", said(caplog, "shmq.pool")[0]):
        assert line in text
        assert text.count("\n") == 0


def test_of_a_codec_of_ones_own_that_refuses_a_result_its_own_frames_are_shown(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    results = broker.queue("results", codec=handlers.FAILING)
    jobs = broker.queue("jobs", max_attempts=1)
    jobs.put("a")
    shmq.WorkerPool(jobs, handlers.pid, processes=1, results=results).run(until_empty=True)
    text = said(caplog, "shmq.pool")[0]
    assert "in failing_dump" in text
    assert "OverflowError: too much" in text
    assert [line for line in text.splitlines() if "/shmq/pool/" in line or "/shmq/engine/" in line] == []


# ---- waits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [0, 2])
def test_results_that_nobody_takes_are_told_once_and_the_pool_waits_on(
    broker: shmq.Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, processes: int
) -> None:
    monkeypatch.setattr(long_wait, "LONG_WAIT", 0.05)
    jobs, results = broker.queue("jobs"), broker.queue("results", maxsize=2)
    jobs.put_many(range(10))
    pool = shmq.WorkerPool(jobs, handlers.square, processes=processes, results=results, mp_context="fork")
    counts: list[shmq.PoolCounts] = []
    running = threading.Thread(target=lambda: counts.append(pool.run(until_empty=True)), name="test-run")
    running.start()
    eventually(lambda: said(caplog, "shmq.pool"), "a warning")
    running.join(0.3)
    assert running.is_alive()
    (told,) = said(caplog, "shmq.pool")
    assert (
        "results wait for room in queue 'results': 2 of 2 messages; consumers: none; take them while the pool" in told
    )
    assert sorted(results.get(timeout=60.0) for _ in range(10)) == [n * n for n in range(10)]
    running.join(60.0)
    assert counts == [shmq.PoolCounts(handled=10, retried=0, dead={})]


def test_what_the_library_logs_in_a_worker_is_in_the_log_of_the_pool(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    jobs, small = broker.queue("jobs"), broker.queue("small", maxsize=1)
    small.put("full")
    jobs.put("a")
    pool = shmq.WorkerPool(
        jobs, handlers.put_where_there_is_no_room, processes=1, initializer=handlers.short_waits, initargs=(0.05,)
    )
    with pool:
        eventually(lambda: said(caplog, "shmq.queue"), "a warning")
        assert "'small'" in said(caplog, "shmq.queue")[0]
        assert [small.get(timeout=60.0), small.get(timeout=60.0)] == ["full", "more"]
    (record,) = [record for record in caplog.records if record.name == "shmq.queue"]
    assert record.pid != os.getpid()  # type: ignore[attr-defined]
    assert record.queue == "small"  # type: ignore[attr-defined]
    assert capfd.readouterr().err == ""


def test_a_handler_reaches_other_queues_by_the_broker_of_its_message(broker: shmq.Broker) -> None:
    jobs, others = broker.queue("jobs"), broker.queue("others")
    jobs.put_many(range(5))
    shmq.WorkerPool(jobs, handlers.hand_on, processes=2).run(until_empty=True)
    assert sorted(others.get_many(10, timeout=0)) == [0, 1, 2, 3, 4]


def test_a_worker_that_is_killed_while_the_pool_ends_is_told(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """It was asked to end and had a message in hand. That the pool ends is no reason not to say what became of it."""
    jobs, begun = broker.queue("jobs"), broker.queue("begun")
    jobs.put("in hand")
    with shmq.WorkerPool(jobs, handlers.hold, processes=1, mp_context="fork") as pool:
        begun.get(timeout=60)
        (worker,) = pool.processes()
        stopping = threading.Thread(target=pool.stop, kwargs={"timeout": 60.0}, name="test-stop")
        stopping.start()
        run = pool._run
        assert run is not None
        eventually(lambda: run.runner._stopping)
        os.kill(worker.pid, signal.SIGKILL)
        stopping.join(60)
    (line,) = said(caplog, "shmq.pool")
    assert line == f"worker {worker.pid} of queue 'jobs': killed by SIGKILL; its message 1 goes back"
    assert jobs.receive(timeout=5).redelivered


# ---- what exceptions lead to ---------------------------------------------------------------------------------------


def itself() -> Exception:
    error = ValueError("ring")
    error.__cause__ = error
    return error


def each_other() -> BaseException:
    first, second = ValueError("ring"), KeyError("other")
    first.__cause__, second.__cause__ = second, first
    return first


def contexts() -> BaseException:
    first, second = ValueError("ring"), KeyError("other")
    first.__context__, second.__context__ = second, first
    return first


def a_group() -> BaseException:
    inner = ValueError("inner")
    group = ExceptionGroup("ring", [inner, itself()])
    inner.__context__ = group
    return group


def a_group_of_itself() -> BaseException:
    class Endless(ExceptionGroup[Exception]):
        exceptions = property(lambda self: (self, Endless("ring", [ValueError("inner")])))

    return Endless("ring", [ValueError("inner")])


def nested() -> BaseException:
    error: Exception = ValueError("ring")
    for _ in range(sys.getrecursionlimit() + 100):
        error = ExceptionGroup("ring", [error])
    return error


def without_a_text() -> BaseException:
    class Silent(Exception):
        __notes__ = property(lambda self: 1 // 0)

        def __str__(self) -> str:
            raise RuntimeError("ring")

    return Silent()


@pytest.mark.parametrize(
    "made",
    [itself, each_other, contexts, a_group, a_group_of_itself, nested, without_a_text],
    ids=lambda made: made.__name__,
)
@pytest.mark.timeout(120)
def test_an_exception_that_leads_back_to_itself_is_a_failed_attempt(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture, made: Callable[[], BaseException]
) -> None:
    """Shows G2."""

    def handle(message: shmq.Message[str]) -> None:
        raise made()

    jobs = broker.queue("jobs", max_attempts=2, retry_delay=0)
    jobs.put("a")
    counts = shmq.WorkerPool(jobs, handle, processes=0).run(until_empty=True)
    assert counts == shmq.PoolCounts(handled=0, retried=1, dead={"max_attempts": 1})
    (dead,) = broker.queue("jobs.dead").browse()
    assert dead.death is not None
    assert "ring" in (dead.death.error or "") or made is without_a_text
    assert said(caplog, "shmq.pool")[0].count("\n") == 0


def test_a_consumer_of_ones_own_survives_such_exceptions_too(broker: shmq.Broker) -> None:
    jobs = broker.queue("jobs", max_attempts=1)
    for made in (itself, a_group_of_itself, nested):
        jobs.put("a")
        with pytest.raises((ValueError, ExceptionGroup)), jobs.receive(timeout=0):
            raise made()
    assert broker.queue("jobs.dead").qsize() == 3
