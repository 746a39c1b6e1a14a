"""Messages that die in numbers: a line of the log a second, whose counts add up; all else is as with few."""

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child, eventually

STORM = 2_000

Told = Callable[[str], list[Any]]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[Told]:
    """Records of deaths in a queue, so far."""
    with caplog.at_level(logging.WARNING, "shmq.broker"):
        yield lambda name: [record for record in caplog.records if record.__dict__.get("queue") == name]


def put_storm(queue: shmq.Queue[Any]) -> None:
    for begin in range(0, STORM, 100):
        queue.put_many(range(begin, begin + 100), headers={"begin": begin})


def by_reject(queue: shmq.Queue[Any]) -> None:
    while queue.qsize():
        for message in queue.receive_many(100, timeout=0):
            message.reject(f"no {message.body}")


def by_attempts(queue: shmq.Queue[Any]) -> None:
    while queue.qsize():
        for message in queue.receive_many(100, timeout=0):
            message.retry(f"no {message.body}")


def by_lowered_limit(queue: shmq.Queue[Any]) -> None:
    queue.alter(max_attempts=0)
    held = queue.receive_many(STORM, timeout=0)
    while held:
        held.pop().retry()
    queue.alter(max_attempts=1)
    queue.join(timeout=60)


@pytest.mark.memory
@pytest.mark.parametrize("dies", [by_reject, by_attempts, by_lowered_limit])
def test_a_storm_is_a_line_a_second_whose_counts_add_up(
    broker: shmq.Broker, told: Told, dies: Callable[[shmq.Queue[Any]], None]
) -> None:
    queue = broker.queue("jobs", max_attempts=1)
    put_storm(queue)
    began = time.monotonic()
    dies(queue)
    dead = list(broker.queue("jobs.dead").browse())
    broker.close()
    lines = told("jobs")
    assert len(lines) <= 2 + (time.monotonic() - began)
    assert sum(line.count for line in lines) == STORM
    assert lines[0].count == 1
    assert lines[0].getMessage().startswith("message ")
    assert f"{lines[-1].count:,} more messages of queue 'jobs' died in " in lines[-1].getMessage()
    assert lines[-1].getMessage().endswith("; it went to queue 'jobs.dead'")
    assert [message.body for message in dead] == list(range(STORM))
    assert [message.headers["begin"] for message in dead] == [number // 100 * 100 for number in range(STORM)]
    reason = "rejected" if dies is by_reject else "max_attempts"
    for number, message in enumerate(dead):
        death = message.death
        assert death is not None
        error = None if dies is by_lowered_limit else f"no {number}"
        assert (death.queue, death.reason, death.error, death.pids) == ("jobs", reason, error, ())


def test_each_queue_has_lines_of_its_own_and_those_without_room_too(broker: shmq.Broker, told: Told) -> None:
    graves = broker.queue("graves", maxsize=2)
    queues = [broker.queue(name, dead_letter=graves) for name in ("one", "two")]
    for queue in queues:
        queue.put_many([bytes(30), bytes(20), bytes(10)])
    for _ in range(3):
        for queue in queues:
            queue.receive(timeout=0).reject()
    broker.close()
    assert [line.count for line in told("one")] == [1, 1, 1]
    first, without_room, count = (line.getMessage() for line in told("one"))
    assert first == "message 1 of queue 'one' is dead (rejected); it went to queue 'graves'"
    assert "is dead (rejected), but it cannot go among the dead: queue 'graves' is full" in without_room
    assert count.startswith("1 more message of queue 'one' died in ")
    assert [line.count for line in told("two")] == [1, 1, 1]


@pytest.mark.parametrize("how", ["sleeps", "looks", "dies"])
def test_the_count_is_told_by_the_next_call_when_its_second_is_over(broker: shmq.Broker, told: Told, how: str) -> None:
    queue = broker.queue("jobs")
    queue.put_many(range(1_000))
    for _ in range(5):
        queue.receive(timeout=0).reject()

    def counted() -> bool:
        if how == "sleeps":
            broker.queue("empty").get_many(1, timeout=0.1)
        elif how == "looks":
            queue.statistics()
        elif queue.qsize():
            queue.receive(timeout=0).reject()
            time.sleep(0.01)
        return len(told("jobs")) >= 2

    eventually(counted, "a count")
    uncounted = broker.queue("jobs.dead").qsize() - sum(line.count for line in told("jobs"))
    assert uncounted in ((0, 1) if how == "dies" else (0,))  # a death counts behind the line that its receive() tells


def test_a_forked_child_tells_nothing_of_what_died_in_its_parent(broker_dir: Path) -> None:
    program = """
import logging
class Lines(logging.Handler):
    def emit(self, record):
        say(os.getpid(), record.count)
logging.getLogger("shmq.broker").addHandler(Lines())
broker = shmq.open(sys.argv[1])
queue = broker.queue("jobs")
queue.put_many(range(3))
for _ in range(3):
    queue.receive(timeout=0).reject()
child = os.fork()
if child:
    os.waitpid(child, 0)
broker.close()
os._exit(0) if child == 0 else say("end")
"""
    with Child(program, broker_dir) as parent:
        assert [parent.line() for _ in range(3)] == [f"{parent.pid} 1", f"{parent.pid} 2", "end"]


def test_the_queue_for_the_dead_may_be_another_one_meanwhile(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs")
    queue.put_many(range(4))
    queue.receive(timeout=0).reject()
    broker.queue("jobs.dead").delete()
    queue.receive(timeout=0).reject()
    assert [m.body for m in broker.queue("jobs.dead", create=False).browse()] == [1]
    graves = broker.queue("graves")
    queue.alter(dead_letter="graves")
    queue.receive(timeout=0).reject()
    graves.shutdown()
    queue.receive(timeout=0).reject()
    graves.reopen()
    queue.join(timeout=60)
    assert [m.body for m in graves.browse()] == [2, 3]


def has_at_least(queue: shmq.Queue[Any], count: int) -> bool:
    return queue.qsize() >= count


def test_a_process_that_is_killed_amid_a_storm_has_lost_and_doubled_nothing(
    broker_dir: Path, broker: shmq.Broker
) -> None:
    """Shows G2."""
    queue = broker.queue("jobs", max_deaths=0)
    put_storm(queue)
    program = """
queue = shmq.open(sys.argv[1]).queue("jobs")
say("begins")
while True:
    for message in queue.receive_many(50):
        message.reject("no use")
"""
    dead: shmq.Queue[Any] = broker.queue("jobs.dead", max_attempts=0, max_deaths=0)
    for turn in range(1, 6):
        with Child(program, broker_dir) as child:
            assert child.line() == "begins"
            eventually(partial(has_at_least, dead, turn * 75), "more dead")
            os.kill(child.pid, signal.SIGKILL)
            child.process.wait(120)
        there = [message.body for message in dead.browse()]
        assert [*there, *(message.body for message in queue.browse())] == list(range(STORM)), f"turn {turn}"
    assert {message.death.error for message in dead.browse() if message.death} == {"no use"}
    assert [message.headers["begin"] for message in dead.browse()] == [number // 100 * 100 for number in there]
