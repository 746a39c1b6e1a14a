"""The words of the log about failed attempts: how many, and how loud."""

import logging

import pytest

import shmq
from tests.engine.child import eventually
from tests.pool import handlers


def test_tracebacks_of_all_attempts_are_logged_where_they_are_asked_for(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = broker.queue("jobs", max_attempts=3)
    jobs.put(3)
    shmq.WorkerPool(jobs, handlers.fail_on_three, processes=1, log_tracebacks=True).run(until_empty=True)
    assert [record.getMessage().count("Traceback") for record in caplog.records] == [1, 1, 1]


def test_an_error_behind_an_ack_of_the_handler_is_told_with_its_traceback(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = broker.queue("jobs")
    jobs.put("x")
    shmq.WorkerPool(jobs, handlers.fail_behind_the_ack, processes=1).run(until_empty=True)
    (record,) = caplog.records
    assert (record.levelno, record.getMessage().count("Traceback")) == (logging.ERROR, 1)
    assert jobs.statistics().acked == 1


def test_a_message_without_room_among_the_dead_is_told_so_in_its_line(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    dead_letters = broker.queue("dead_letters", maxsize=1)
    jobs = broker.queue("jobs", max_attempts=1, dead_letter="dead_letters")
    jobs.put_many(["a", "b"])
    with caplog.at_level(logging.ERROR, "shmq.pool"), shmq.WorkerPool(jobs, handlers.fail, processes=0) as running:

        def said() -> list[str]:
            return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]

        eventually(lambda: len(said()) >= 2, "both are dead")
        assert [m.body for m in dead_letters.browse()] == ["a"]
        running.stop()
    first, second = (text.splitlines()[0] for text in said())
    assert first.endswith("it went to queue 'dead_letters'")
    assert second.endswith("it waits for room in queue 'dead_letters'")
