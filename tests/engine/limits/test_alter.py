"""Options that are altered: at once, for every process, without a loss."""

import os
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.options import FIXED_QUEUE_OPTIONS
from tests.engine.child import Child, eventually

OTHER = {"slot_size": 1024, "temporary": True, "checksum": False}


def test_an_altered_option_is_seen_by_every_process_and_the_others_stay(
    broker_dir: Path, queue: shmq.Queue[Any]
) -> None:
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
say(q.options["max_attempts"])
while listen():
    say(q.options["max_attempts"], q.options["max_deaths"], q.options["dead_letter"])
"""
    with Child(program, broker_dir) as child:
        assert child.line() == "20"
        queue.alter(max_attempts=5, dead_letter="dead_letters")
        child.tell("look")
        assert child.line() == "5 3 dead_letters"
        queue.alter(dead_letter="elsewhere")
        child.tell("look")
        assert child.line() == "5 3 elsewhere"


def test_who_declares_it_afterwards_has_to_agree_with_the_new_value(
    broker: shmq.Broker, queue: shmq.Queue[Any]
) -> None:
    queue.alter(max_attempts=5)
    with pytest.raises(shmq.OptionsMismatch, match=f"max_attempts=6 here, 5 since it was set by pid {os.getpid()}"):
        broker.queue("jobs", max_attempts=6)
    broker.queue("jobs", max_attempts=5)


def test_a_producer_that_waits_goes_on_when_the_limit_grows(broker_dir: Path, broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=1)
    queue.put(0)
    program = 'shmq.open(sys.argv[1]).queue("jobs").put(1); say("put")'
    with Child(program, broker_dir) as child:
        eventually(lambda: queue.statistics().producers_waiting == 1)
        queue.alter(maxsize=2)
        assert child.line() == "put"
    assert queue.get_many(9, timeout=0) == [0, 1]


def test_a_limit_below_what_is_there_loses_nothing_and_puts_wait(broker: shmq.Broker) -> None:
    """Shows G5."""
    queue = broker.queue("jobs", maxsize=10)
    queue.put_many(range(10))
    queue.alter(maxsize=3)
    for left in range(9, 2, -1):
        with pytest.raises(shmq.Full) as caught:
            queue.put("more", timeout=0)
        assert (caught.value.limit, caught.value.used) == (3, left + 1)
        assert queue.get() == 9 - left
    with pytest.raises(shmq.Full):
        queue.put("more", timeout=0)
    assert queue.get() == 7
    queue.put(10, timeout=0)
    assert queue.get_many(9, timeout=0) == [8, 9, 10]


def test_a_limit_that_is_taken_away_and_given_again_counts_what_is_there(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=2)
    queue.put_many(range(2))
    queue.alter(maxsize=0)
    queue.put_many(range(2, 5), timeout=0)
    queue.alter(maxsize=5)
    with pytest.raises(shmq.Full):
        queue.put("more", timeout=0)
    assert queue.get() == 0
    queue.put(5, timeout=0)


def test_a_limit_beyond_the_slots_is_refused_where_nothing_flows(broker_dir: Path) -> None:
    refusal = r"maxsize=1025 is out of range: queue 'jobs' has 1,024 slots since .*; give"
    with shmq.open(broker_dir, memory="16MiB", disk=0) as broker:
        queue = broker.queue("jobs", maxsize=100)
        queue.alter(maxsize=1024)
        with pytest.raises(ValueError, match=refusal):
            queue.alter(maxsize=1025)
        assert queue.options["maxsize"] == 1024


@pytest.mark.parametrize("name", sorted(OTHER))
def test_a_fixed_option_is_not_altered_and_nothing_else_is_either(queue: shmq.Queue[Any], name: str) -> None:
    assert name in FIXED_QUEUE_OPTIONS
    before: Any = queue.options
    with pytest.raises(shmq.OptionsMismatch) as caught:
        queue.alter(max_deaths=9, **{name: OTHER[name]})  # type: ignore[arg-type]
    assert f"{name}={OTHER[name]!r} here, {before[name]!r} since" in str(caught.value)
    assert "fixed when a queue is made" in caught.value.remedy
    assert queue.options == before
    queue.alter(**{name: before[name]})


def test_a_mismatch_names_the_ways_to_alter_the_queue_and_they_do_it(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs of ann", max_attempts=4, retry_delay=1, slot_size=256)
    with pytest.raises(shmq.OptionsMismatch) as caught:
        broker.queue("jobs of ann", max_attempts=5)
    assert "queue.alter(max_attempts=5)" in caught.value.remedy
    assert "`shmq declare 'jobs of ann' max_attempts=5`" in caught.value.remedy
    queue.alter(max_attempts=5)
    broker.queue("jobs of ann", max_attempts=5)
    with pytest.raises(shmq.OptionsMismatch, match=r"alter\(retry_delay=\(1.0, 10.0\)\).*retry_delay=1,10`"):
        broker.queue("jobs of ann", retry_delay=[1, 10])


@pytest.mark.parametrize("options", [{"slot_size": 512}, {"maxsize": 2000}])
def test_a_mismatch_names_no_way_that_does_not_go(memory_only: shmq.Broker, options: Any) -> None:
    broker = memory_only
    broker.queue("jobs", slot_size=256, maxsize=1000)
    with pytest.raises(shmq.OptionsMismatch) as caught:
        broker.queue("jobs", **options)
    assert "alter" not in caught.value.remedy
    assert "another name" in caught.value.remedy


def test_what_is_no_option_is_refused(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    before = queue.options
    with pytest.raises(TypeError, match="no option 'colour'"):
        queue.alter(colour="red")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="out of range"):
        queue.alter(max_deaths=-1)
    with shmq.open(memory="8MiB") as other, pytest.raises(ValueError, match="another broker"):
        queue.alter(dead_letter=other.queue("dead_letters"))
    assert queue.options == before
    queue.delete()
    with pytest.raises(shmq.NotFound):
        queue.alter(max_deaths=1)
