"""Dead messages: attempts used up, rejected, deadly; they go to their queue with the reason, and nothing is lost."""

import logging
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.core.queue import death_record_signal
from shmq.death import died_with_it
from tests.engine.child import Child, eventually


def the_dead(broker: shmq.Broker, name: str = "jobs.dead") -> shmq.Message[Any]:
    (message,) = broker.queue(name, create=False).browse()
    return message


def test_a_rejected_message_is_dead_at_once_with_the_reason(broker: shmq.Broker) -> None:
    """Shows S88."""
    queue = broker.queue("jobs")
    queue.put({"id": 7}, headers={"source": "web"})
    before = time.time()
    queue.receive(timeout=0).reject("no such customer")
    dead = the_dead(broker)
    assert dead.body == {"id": 7}
    assert dict(dead.headers) == {"source": "web"}
    assert dead.death is not None
    assert (dead.death.queue, dead.death.reason, dead.death.error) == ("jobs", "rejected", "no such customer")
    assert (dead.death.pids, dead.death.signal) == ((), None)
    assert before <= dead.death.at <= time.time()
    statistics = queue.statistics()
    assert (statistics.ready, statistics.unsettled, statistics.dead_lettered) == (0, 0, 1)


def test_the_traceback_of_an_exception_is_kept(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", max_attempts=1)
    queue.put("a")
    with pytest.raises(ZeroDivisionError), queue.receive(timeout=0):
        1 / 0  # noqa: B018
    death = the_dead(broker).death
    assert death is not None
    assert death.reason == "max_attempts"
    assert "test_dead_letters.py" in (death.error or "")
    assert "ZeroDivisionError" in (death.error or "")


@pytest.mark.parametrize("body", ["small", b"x" * 100_000, {"n": [1.5] * 100}])
def test_attempts_are_counted_up_to_max_attempts(broker: shmq.Broker, body: Any) -> None:
    """Shows S82, E8, G3."""
    queue = broker.queue("jobs", max_attempts=3)
    queue.put(body)
    for n in (1, 2, 3):
        m = queue.receive(timeout=0)
        assert (m.delivery_count, m.redelivered) == (n, n > 1)
        m.retry(f"attempt {n}")
    with pytest.raises(shmq.Empty):
        queue.receive(timeout=0)
    dead = the_dead(broker)
    assert dead.body == body
    assert dead.death is not None
    assert dead.death.error == "attempt 3"


def test_releases_are_not_counted(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", max_attempts=2)
    queue.put("a")
    for _ in range(10):
        queue.receive(timeout=0).release()
    assert queue.receive(timeout=0).delivery_count == 1


def test_zero_attempts_mean_no_limit(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", max_attempts=0)
    queue.put("a")
    for _ in range(50):
        queue.receive(timeout=0).retry()
    assert queue.receive(timeout=0).delivery_count == 51


def test_a_death_by_processes_says_how_the_last_one_ended() -> None:
    assert died_with_it((), signal.SIGSEGV) is None
    assert died_with_it((7,), None) == "1 process died with it, pid 7"
    assert died_with_it((7,), signal.SIGSEGV) == "1 process died with it, pid 7; killed by SIGSEGV"
    assert died_with_it((7, 8), 63) == "2 processes died with it, pids 7, 8; the last one killed by signal 63"


def test_a_message_that_kills_is_dead_after_max_deaths_with_the_pids(
    broker_dir: Path, broker: shmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows G3."""
    queue = broker.queue("jobs", max_deaths=2)
    queue.put("deadly")
    program = """
m = shmq.open(sys.argv[1]).queue("jobs").receive(timeout=10)
say(m.delivery_count)
os.kill(os.getpid(), signal.SIGKILL)
"""
    pids = []
    for n in (1, 2):
        with Child(program, broker_dir) as child:
            assert child.line() == str(n)
            child.process.wait(120)
            assert child.process.returncode == -signal.SIGKILL
            pids.append(child.pid)
        eventually(lambda: broker.statistics().queues["jobs"].ready == 1, "the message back")
    with pytest.raises(shmq.Empty):
        queue.receive(timeout=0.1)
    death = the_dead(broker).death
    assert death is not None
    assert (death.reason, death.pids) == ("max_deaths", tuple(pids))
    assert death.signal in (None, signal.SIGKILL)
    assert death.error == f"2 processes died with it, pids {pids[0]}, {pids[1]}"  # nobody waited for them
    assert f"message 1 of queue 'jobs' is dead (max_deaths: {death.error})" in caplog.text
    assert queue.statistics().deaths == 2


DEADLY = """
m = shmq.open(sys.argv[1]).queue("jobs").receive(timeout=10)
say("has it")
listen()
"""


def killed_with_the_message(broker_dir: Path, broker: shmq.Broker, number: signal.Signals) -> int:
    """A process that had the message, and ended by a signal that nobody has told yet."""
    with Child(DEADLY, broker_dir) as child:
        assert child.line() == "has it"
        child.process.send_signal(number)
        assert child.process.wait(120) == -number
    eventually(lambda: broker.statistics().queues["jobs"].ready == 1, "the message back")
    return child.pid


def tell(broker: shmq.Broker, pid: int, number: signal.Signals) -> None:
    """As a pool does that has waited for its worker."""
    death_record_signal(broker._membership.live(), pid, number)


@pytest.mark.parametrize("told", ["before the burial", "after the burial", "by nobody", "of another process"])
def test_the_signal_is_told_whether_it_was_known_before_the_burial_or_after_it(
    broker_dir: Path, broker: shmq.Broker, told: str
) -> None:
    queue = broker.queue("jobs", max_deaths=1)
    queue.put("deadly")
    pid = killed_with_the_message(broker_dir, broker, signal.SIGKILL)
    if told == "before the burial":
        tell(broker, pid, signal.SIGKILL)
    with pytest.raises(shmq.Empty):
        queue.receive(timeout=0)
    if told == "after the burial":
        tell(broker, pid, signal.SIGKILL)
    if told == "of another process":
        tell(broker, pid + 1, signal.SIGKILL)
    known = told in ("before the burial", "after the burial")
    for message in (the_dead(broker), broker.queue("jobs.dead").receive(timeout=0)):
        assert message.death is not None
        assert message.death.pids == (pid,)
        assert message.death.signal == (signal.SIGKILL if known else None)


def test_a_signal_that_is_told_before_the_message_is_back_is_not_lost(broker_dir: Path, broker: shmq.Broker) -> None:
    """The pool may know of the death before anybody has repaired what the process left."""
    queue = broker.queue("jobs", max_deaths=1)
    queue.put("deadly")
    with Child(DEADLY, broker_dir) as child:
        assert child.line() == "has it"
        tell(broker, child.pid, signal.SIGSEGV)  # nothing is written of it yet: it lives
        child.process.send_signal(signal.SIGSEGV)
        child.process.wait(120)
    eventually(lambda: broker.statistics().queues["jobs"].ready == 1, "the message back")
    with pytest.raises(shmq.Empty):
        queue.receive(timeout=0)
    death = the_dead(broker).death
    assert death is not None
    assert (death.pids, death.signal) == ((child.pid,), signal.SIGSEGV)


def test_the_death_can_be_read_when_the_broker_is_closed(broker_dir: Path, broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", max_deaths=1)
    queue.put("deadly")
    pid = killed_with_the_message(broker_dir, broker, signal.SIGKILL)
    with pytest.raises(shmq.Empty):
        queue.receive(timeout=0)
    dead = the_dead(broker)
    broker.close()
    assert dead.death is not None
    assert (dead.death.pids, dead.death.signal) == ((pid,), None)


@pytest.mark.parametrize("given", ["name", "queue"])
def test_a_named_queue_for_the_dead_gets_them(broker: shmq.Broker, given: str) -> None:
    dead_letters = broker.queue("dead_letters")
    queue = broker.queue("jobs", dead_letter=dead_letters if given == "queue" else "dead_letters")
    assert queue.options["dead_letter"] == "dead_letters"
    queue.put("a")
    queue.receive(timeout=0).reject()
    assert the_dead(broker, "dead_letters").body == "a"
    assert [q.name for q in broker.queues()] == ["dead_letters", "jobs"]


def test_nothing_dies_further_from_the_queue_of_the_dead(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs")
    queue.put("a")
    queue.receive(timeout=0).reject()
    dead = broker.queue("jobs.dead")
    for _ in range(30):
        dead.receive(timeout=0).retry()
    dead.receive(timeout=0).reject()
    assert [q.name for q in broker.queues()] == ["jobs", "jobs.dead"]
    assert dead.qsize() == 1


def test_a_dead_message_can_be_mended_and_sent_back(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs")
    queue.put({"id": 7})
    queue.receive(timeout=0).reject()
    with broker.queue("jobs.dead").receive(timeout=0) as m:
        queue.put({**m.body, "customer": "ann"}, headers=m.headers)
    with queue.receive(timeout=0) as m:
        assert m.death is None
        assert m.body == {"id": 7, "customer": "ann"}


def test_without_room_among_the_dead_the_message_stays_unsettled_and_is_tried_again(
    broker: shmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows G2."""
    dead_letters = broker.queue("dead_letters", maxsize=1)
    queue = broker.queue("jobs", dead_letter="dead_letters")
    queue.put_many(["a", "b"])
    queue.receive(timeout=0).reject()
    with caplog.at_level(logging.WARNING, "shmq.broker"):
        queue.receive(timeout=0).reject("no room for me")
    assert "cannot go among the dead: queue 'dead_letters' is full" in caplog.text
    assert (queue.statistics().unsettled, queue.qsize(), dead_letters.qsize()) == (1, 0, 1)
    with pytest.raises(shmq.Timeout):
        queue.join(timeout=0)
    assert dead_letters.get(timeout=0) == "a"
    queue.join(timeout=0)
    with dead_letters.receive(timeout=0) as m:
        assert m.body == "b"
        assert m.death is not None
        assert m.death.error == "no room for me"


def test_dead_letters_that_wait_for_room_keep_their_order(broker: shmq.Broker) -> None:
    graves = broker.queue("graves", maxsize=2)
    queue = broker.queue("jobs", dead_letter="graves")
    queue.put_many(range(8))
    for _ in range(6):
        queue.receive(timeout=0).reject()
    assert queue.statistics().unsettled == 4
    found = [graves.get(timeout=0)]
    queue.receive(timeout=0).reject()  # there is room, and others wait for it
    while queue.statistics().unsettled + graves.qsize() > 0:
        found += graves.get_many(1, timeout=0)
    assert found == list(range(7))
    assert queue.get(timeout=0) == 7


def test_a_dead_letter_that_is_too_large_does_not_keep_small_ones_waiting(broker: shmq.Broker) -> None:
    graves = broker.queue("graves", max_bytes=1000, codec="bytes")
    queue = broker.queue("jobs", dead_letter="graves", codec="bytes")
    graves.put(b"stone")
    queue.put_many([bytes(5000), b"first", bytes(4000), b"second"])
    for _ in range(4):
        queue.receive(timeout=0).reject()
    assert queue.statistics().unsettled == 2
    assert graves.get_many(10, timeout=0) == [b"stone", b"first", b"second"]


@pytest.mark.memory  # a consumer with a selector has several in hand
def test_a_queue_whose_dead_letters_have_no_room_is_not_deleted_and_stays_as_it_is(broker: shmq.Broker) -> None:
    graves = broker.queue("graves", maxsize=2)
    queue = broker.queue("jobs", dead_letter="graves")
    queue.put_many(range(6))
    for _ in range(2):
        with pytest.raises(shmq.Full, match="'jobs' is not deleted: no room for its messages among the dead"):
            queue.delete()
        statistics = queue.statistics()
        assert (statistics.ready, statistics.unsettled, statistics.shut_down) == (4, 0, False)
        assert [m.body for m in queue.browse()] == [2, 3, 4, 5]
        queue.put(6)
        assert [m.body for m in queue.browse()] == [2, 3, 4, 5, 6]
        with queue.consumer(selector="JMSRedelivered = FALSE") as consumer:
            messages = consumer.receive_many(6, timeout=0)
            messages.pop().ack()
            for message in messages:
                message.release()
    assert graves.get_many(2, timeout=0) == [0, 1]
    graves.alter(maxsize=100)
    queue.delete()
    assert graves.get_many(9, timeout=0) == [2, 3, 4, 5]


def test_a_queue_for_the_dead_that_is_shut_down_holds_nobody_up(broker: shmq.Broker) -> None:
    """It is as one without room: what is dead waits, and all else goes on."""
    dead_letters = broker.queue("dead_letters")
    queue = broker.queue("jobs", dead_letter="dead_letters", max_attempts=1, dead_letter_expired=True)
    queue.put_many(["rejected", "failed", "good", "too"])
    queue.put("late", ttl=0)
    dead_letters.shutdown()
    queue.receive(timeout=0).reject("no")
    with pytest.raises(ZeroDivisionError), queue.receive(timeout=0):
        _ = 1 / 0
    assert queue.get(timeout=0) == "good"
    with queue.consumer() as consumer:
        consumer.receive(timeout=0).ack()
        with pytest.raises(shmq.Empty):
            consumer.receive(timeout=0)
    dead_letters.reopen()
    queue.join(timeout=60)
    assert {m.body for m in dead_letters.browse()} == {"rejected", "failed", "late"}


TAKES = {
    "receive": "q.receive(timeout=10).reject()",
    "consumer": "c = q.consumer(); c.receive(timeout=10).reject()",
    "closed consumer": "with q.consumer() as c: c.receive(timeout=10).reject()",
}


@pytest.mark.parametrize("end", ["killed", "ends"])
@pytest.mark.parametrize("name", sorted(TAKES))
def test_what_waits_for_room_among_the_dead_is_in_its_queue_again_when_its_process(
    broker_dir: Path, broker: shmq.Broker, name: str, end: str
) -> None:
    broker.queue("dead_letters", maxsize=1).put("stone")
    queue = broker.queue("jobs", dead_letter="dead_letters")
    queue.put("a")
    program = f"""
q = shmq.open(sys.argv[1]).queue("jobs")
{TAKES[name]}
say("rejected")
listen()
"""
    with Child(program, broker_dir) as child:
        assert child.line() == "rejected"
        with queue.consumer(), queue.consumer():  # one of them may get the row of a closed consumer
            assert (queue.statistics().unsettled, queue.qsize()) == (1, 0)
            if end == "killed":
                child.kill()
            else:
                child.tell("end")
                child.end()
            assert queue.get(timeout=10) == "a"


def test_what_waits_for_room_among_the_dead_is_tried_again_after_its_consumer_was_closed(broker: shmq.Broker) -> None:
    dead_letters = broker.queue("dead_letters", maxsize=1)
    dead_letters.put("stone")
    queue = broker.queue("jobs", dead_letter="dead_letters")
    queue.put("a" * 5000)
    with queue.consumer() as consumer:
        consumer.receive(timeout=0).reject()
    assert queue.statistics().unsettled == 1
    assert dead_letters.get(timeout=0) == "stone"
    assert queue.statistics().unsettled == 0
    assert dead_letters.get(timeout=0) == "a" * 5000
    (process,) = broker.statistics().processes
    assert (process.unsettled, process.pinned_bytes) == (0, 0)


def test_a_name_that_is_too_long_for_the_suffix_still_has_a_queue_for_the_dead(broker: shmq.Broker) -> None:
    for name in ("ä" * 100, "a" * 195 + ".dead"):
        queue = broker.queue(name)
        queue.put("a")
        queue.receive(timeout=0).reject()
        assert queue.qsize() == 0
    assert len(broker.queues()) == 4
