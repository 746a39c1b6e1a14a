"""Queues that go when nobody consumes from them. Shows G2."""

import time
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child, eventually


def names(broker: shmq.Broker) -> set[str]:
    return {queue.name for queue in broker.queues()}


def gone(broker: shmq.Broker, name: str) -> bool:
    """Somebody calls now and then, as in any program: what is due is done by whoever does."""
    broker.queue("clock").statistics()
    return name not in names(broker)


def test_a_queue_that_nobody_consumes_from_goes_after_its_time(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", expires=1.0)
    queue.put("lost")
    eventually(lambda: gone(broker, "jobs"))
    with pytest.raises(shmq.NotFound):
        queue.put("x")


@pytest.mark.parametrize("dead_letter", [{}, {"dead_letter": "dead_letters"}], ids=["dropped", "buried"])
def test_a_list_of_the_queues_shows_none_that_is_past_its_time(broker: shmq.Broker, dead_letter: Any) -> None:
    """Though nobody calls anything else."""
    broker.queue("dead_letters")
    broker.queue("jobs", expires=1.0, **dead_letter).put("x")
    past = time.monotonic() + 1.01
    eventually(lambda: time.monotonic() > past)
    assert names(broker) == {"dead_letters"}
    assert broker.queue("dead_letters").qsize() == len(dead_letter)


def test_a_queue_from_which_get_takes_something_stays(broker: shmq.Broker) -> None:
    """Also if nobody ever waits."""
    queue = broker.queue("jobs", maxsize=8000)
    queue.put_many(range(8000))
    queue.alter(expires=2)  # a busy machine lets a process wait for tenths of a second, and needs as long for the puts
    for _ in range(2):  # of another one the time is over
        broker.queue("other", expires=2)
        eventually(lambda: [queue.get_many(2), gone(broker, "other")][1])
    assert queue.qsize() > 0
    eventually(lambda: gone(broker, "jobs"))


def test_a_queue_with_a_consumer_stays_and_goes_after_the_last_one(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", expires=1.0)
    with queue.consumer() as first:
        with queue.consumer():
            pass
        other = broker.queue("other", expires=0.05)
        eventually(lambda: gone(broker, other.name))  # its time was over long ago
        assert "jobs" in names(broker)
        queue.put("a")
        with first.receive(timeout=1) as m:
            assert m.body == "a"
    eventually(lambda: gone(broker, "jobs"))


def test_expires_0_waits_for_a_first_consumer_and_goes_with_the_last(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", expires=0)
    witness = broker.queue("other", expires=0.05)
    eventually(lambda: gone(broker, witness.name))
    assert "jobs" in names(broker)
    with queue.consumer(), queue.consumer():
        assert not gone(broker, "jobs")
    eventually(lambda: gone(broker, "jobs"))


def test_the_consumer_that_is_killed_was_the_last_one(broker_dir: Path, broker: shmq.Broker) -> None:
    broker.queue("jobs", expires=0)
    program = 'c = shmq.open(sys.argv[1]).queue("jobs").consumer(); say("here"); listen()'
    with Child(program, broker_dir) as child:
        assert child.line() == "here"
        assert not gone(broker, "jobs")
        child.kill()
        eventually(lambda: gone(broker, "jobs"))


def test_its_messages_go_to_the_dead_letters_if_they_were_named(broker: shmq.Broker) -> None:
    dead_letters: shmq.Queue[Any] = broker.queue("dead_letters")
    queue = broker.queue("jobs", expires=1.0, dead_letter="dead_letters")
    queue.put("kept")
    eventually(lambda: gone(broker, "jobs"))
    with dead_letters.receive(timeout=0) as m:
        assert m.body == "kept"
        assert m.death is not None
        assert m.death.reason == "queue_deleted"


def test_the_option_may_be_given_later_and_taken_away(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs")
    queue.alter(expires=3600)
    queue.alter(expires=None)
    witness = broker.queue("other", expires=0.05)
    eventually(lambda: gone(broker, witness.name))
    assert "jobs" in names(broker)
    queue.alter(expires=0.05)
    eventually(lambda: gone(broker, "jobs"))
