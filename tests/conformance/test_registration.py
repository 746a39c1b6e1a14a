"""Consumers come and go: before and after messages, with and without credit."""

import gc
from collections.abc import Callable
from typing import Any

import pytest

import shmq
from tests.conformance.crowd import begin, settled
from tests.engine.child import eventually
from tests.engine.lifecycle.test_shutdown import finish

Queue = shmq.Queue[Any]


@pytest.mark.parametrize("before", [0, 1, 2, 5])
def test_it_does_not_matter_whether_the_consumer_or_the_messages_come_first(queue: Queue, before: int) -> None:
    """It gets all up to the tail, without anybody who would have to wake it. Shows S44, S90, S94, S95, C1."""
    queue.put_many(range(before))
    thread, results = begin(lambda: settled(queue.consumer()))
    if before == 0:
        eventually(lambda: queue._waiters()["asleep"] == 1, "it waits")
    queue.put_many(range(before, 5))
    eventually(lambda: queue.statistics().acked == 5, "it has all")
    queue.shutdown()
    finish(thread)
    assert results == [[0, 1, 2, 3, 4]]


def test_a_consumer_counts_from_its_making_to_its_close(queue: Queue) -> None:
    """Shows S64."""
    consumers = []
    for number in range(5):
        assert queue.statistics().consumers == number
        consumers.append(queue.consumer())
    queue.put("a")
    consumers[3].receive(timeout=0).ack()
    assert queue.statistics().consumers == 5
    for consumer in consumers:
        consumer.close()
        consumer.close()
    assert queue.statistics().consumers == 0


def test_a_look_that_finds_nothing_costs_no_credit(queue: Queue) -> None:
    """Shows S18, S19, S21, R10."""
    with queue.consumer(prefetch=2) as consumer:
        for _ in range(5):
            with pytest.raises(shmq.Empty):
                consumer.receive(timeout=0)
        queue.put_many(range(4))
        held = consumer.receive_many(4, timeout=0)
        assert [m.body for m in held] == [0, 1]
        with pytest.raises(shmq.Empty, match="prefetch=2"):
            consumer.receive(timeout=0)
        assert queue.qsize() == 2


def drop(messages: list[Any], queue: Queue) -> None:
    messages.pop(0)
    gc.collect()


ENDS: dict[str, Callable[[list[Any], Queue], None]] = {
    "ack": lambda messages, queue: messages[0].ack(),
    "release": lambda messages, queue: messages[0].release(),
    "retry": lambda messages, queue: messages[0].retry(),
    "reject": lambda messages, queue: messages[0].reject(),
    "forgotten": drop,
}


@pytest.mark.parametrize("way", sorted(ENDS))
def test_credit_comes_back_once_whatever_becomes_of_the_message(queue: Queue, way: str) -> None:
    """Shows S21, S22, R10."""
    queue.put_many(range(10))
    with queue.consumer(prefetch=3) as consumer:
        held = consumer.receive_many(3, timeout=0)
        ENDS[way](held, queue)
        if way == "forgotten":
            with pytest.raises(shmq.SettlementError, match="dropped"):
                consumer.receive(timeout=0)
        else:
            with pytest.raises(shmq.SettlementError):
                held[0].ack()  # a second settlement gives nothing back
        fourth = consumer.receive(timeout=0)
        with pytest.raises(shmq.Empty, match="prefetch=3"):
            consumer.receive(timeout=0)
        assert not fourth.settled


def test_each_subscription_has_credit_of_its_own(queue: Queue) -> None:
    """Shows S84."""
    queue.put_many(range(10))
    with queue.consumer(prefetch=1) as narrow, queue.consumer(prefetch=3) as wide, queue.consumer() as free:
        one, three, rest = (consumer.receive_many(10, timeout=0) for consumer in (narrow, wide, free))
        assert [[m.body for m in held] for held in (one, three, rest)] == [[0], [1, 2, 3], [4, 5, 6, 7, 8, 9]]
        three[0].ack()
        queue.put("next")
        with pytest.raises(shmq.Empty):
            narrow.receive(timeout=0)
        assert wide.receive(timeout=0).body == "next"


def test_a_deleted_queue_ends_what_its_consumers_do(queue: Queue) -> None:
    """Shows C14, E11."""
    queue.put("a")
    holding, waiting = queue.consumer(), queue.consumer()
    held = holding.receive(timeout=0)
    thread, results = begin(waiting.receive)
    eventually(lambda: queue._waiters()["asleep"] == 1, "it waits")
    queue.delete()
    finish(thread)
    assert isinstance(results[0], shmq.NotFound)
    held.ack()  # what is in hand stays there
    for consumer in (holding, waiting):
        with pytest.raises(shmq.NotFound):
            consumer.receive(timeout=0)
        consumer.close()
