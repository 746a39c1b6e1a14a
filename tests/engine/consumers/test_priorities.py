"""Queues with priorities: strict between levels, in order within one, whatever the way of taking."""

import random
from typing import Any

import pytest

import shmq
from shmq.errors import Empty


@pytest.fixture
def queue(broker: shmq.Broker) -> shmq.Queue[Any]:
    return broker.queue("jobs", priorities=10)


def taken(consumer: shmq.Consumer[Any]) -> Any:
    with consumer.receive(timeout=0) as m:
        return m.body


def test_what_is_more_important_is_taken_first_and_equals_in_order(queue: shmq.Queue[Any]) -> None:
    """Strict between levels, FIFO within. Shows S27, S28, S33, S34, G1."""
    queue.put("tidy up", priority=0)
    queue.put("usual")
    queue.put_many(["first alarm", "second alarm"], priority=9)
    queue.put("usual too", priority=4)
    assert queue.get_many(9, timeout=0) == ["first alarm", "second alarm", "usual", "usual too", "tidy up"]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (2, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]),
        (3, [0, 0, 0, 0, 1, 2, 2, 2, 2, 2]),
        (5, [0, 0, 0, 1, 2, 3, 4, 4, 4, 4]),
        (10, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ],
)
def test_priorities_are_mapped_to_levels_as_in_amqp(broker: shmq.Broker, levels: int, expected: list[int]) -> None:
    """Offset = 5 - ceil(n/2); level = priority - offset, within 0 to n-1. Shows S31, S32."""
    queue = broker.queue("jobs", priorities=levels)
    for priority in range(10):
        queue.put(priority, priority=priority)
    depths = {m.body: m.position >> 48 for m in queue.browse()}
    assert [levels - 1 - depths[priority] for priority in range(10)] == expected


def test_an_arrival_of_higher_priority_is_seen_by_a_consumer_that_is_past_it(queue: shmq.Queue[Any]) -> None:
    """A consumer that has looked at the higher level looks again. Shows S35, S37, S38."""
    with queue.consumer() as consumer, queue.consumer(selector="JMSPriority >= 0") as choosy:
        for taker in (consumer, choosy):
            queue.put_many([1, 2, 3], priority=1)
            assert taken(taker) == 1
            queue.put("urgent", priority=8)
            assert taken(taker) == "urgent"
            queue.put("more urgent", priority=9)
            assert [taken(taker) for _ in range(3)] == ["more urgent", 2, 3]


def test_a_released_message_of_a_higher_level_comes_before_all_of_lower_ones(queue: shmq.Queue[Any]) -> None:
    """The order holds for a message's whole life, across levels. Shows S2, G1."""
    queue.put_many(["low 1", "low 2"], priority=2)
    queue.put_many(["high 1", "high 2"], priority=7)
    with queue.consumer() as consumer:
        first, second, third = (consumer.receive(timeout=0) for _ in range(3))
        assert [first.body, second.body, third.body] == ["high 1", "high 2", "low 1"]
        third.release()
        second.release()
        first.release()
        assert [taken(consumer) for _ in range(4)] == ["high 1", "high 2", "low 1", "low 2"]


def test_browsers_see_every_message_once_in_the_queues_order(queue: shmq.Queue[Any]) -> None:
    """The iterator follows the order of taking. Shows S36."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    priorities = [chance.randrange(10) for _ in range(300)]
    for number, priority in enumerate(priorities):
        queue.put(number, priority=priority)
    expected = sorted(range(300), key=lambda n: (-priorities[n], n))
    shown = list(queue.browse())
    assert [m.body for m in shown] == expected
    assert [m.priority for m in shown] == [priorities[n] for n in expected]
    positions = [m.position for m in shown]
    assert positions == sorted(positions)
    middle = positions[150]
    assert [m.body for m in queue.browse(start=middle)] == expected[150:]
    assert queue.get_many(300, timeout=0) == expected


def test_a_browser_that_follows_sees_newcomers_of_every_level_once(queue: shmq.Queue[Any]) -> None:
    queue.put("old", priority=3)
    follower = queue.browse(start="next", follow=True)
    queue.put("low", priority=1)
    assert next(follower).body == "low"
    queue.put("high", priority=9)
    assert next(follower).body == "high"
    queue.put("low again", priority=1)
    queue.shutdown()
    assert [m.body for m in follower] == ["low again"]


def test_counts_purge_and_delete_know_all_levels(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    for priority in range(10):
        queue.put_many(["x" * 10] * 3, priority=priority)
    held = queue.receive(timeout=0)
    statistics = queue.statistics()
    assert (statistics.ready, statistics.unsettled, statistics.bytes) == (29, 1, 300)
    assert queue.purge(selector="JMSPriority < 3") == 9
    assert queue.purge() == 20
    held.ack()
    queue.put("last", priority=5)
    queue.delete()
    with pytest.raises(shmq.NotFound):
        queue.get(timeout=0)
    assert broker.queue("jobs").qsize() == 0


def test_maxsize_counts_the_messages_of_all_levels(broker: shmq.Broker) -> None:
    queue = broker.queue("small", priorities=3, maxsize=4)
    for priority in (0, 5, 9, 9):
        queue.put(priority, priority=priority)
    with pytest.raises(shmq.Full):
        queue.put("one more", priority=9, timeout=0)
    assert queue.get(timeout=0) == 5
    queue.put("one more", priority=0, timeout=0)
    assert queue.get_many(9, timeout=0) == [9, 9, 0, "one more"]


def test_each_level_turns_its_ring_over_what_stays_behind(broker: shmq.Broker) -> None:
    queue = broker.queue("small", priorities=2, maxsize=1024)
    queue.put("kept", priority=0)
    kept = queue.receive(timeout=0)
    queue.put("waits", priority=1)
    for n in range(3000):
        queue.put(n, priority=9 if n % 2 else 0)
        queue.get(timeout=0)
    kept.release()
    assert queue.get_many(9, timeout=0) == ["kept", 2998]


def test_what_the_queue_has_no_level_for_is_refused(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    plain = broker.queue("plain")
    with pytest.raises(ValueError, match="'plain' has no priorities"):
        plain.put("x", priority=9)
    with pytest.raises(ValueError, match="'plain' has no priorities"):
        plain.put_many(["x"], priority=9)
    for wrong in (-1, 10, 2**70):
        with pytest.raises(ValueError, match="0 to 9"):
            queue.put("x", priority=wrong)
    with pytest.raises(TypeError, match="priority"):
        queue.put("x", priority="high")  # type: ignore[arg-type]
    for levels in (0, 11, -1):
        with pytest.raises(ValueError, match="priorities"):
            broker.queue("other", priorities=levels)
    with pytest.raises(shmq.OptionsMismatch, match="priorities"):
        broker.queue("jobs", priorities=5)
    with pytest.raises(Empty):
        queue.get(timeout=0)


def test_a_queue_tells_how_many_levels_it_has_beside_its_other_options(broker: shmq.Broker) -> None:
    """Shows S31, S40."""
    queue = broker.queue("jobs", priorities=7, maxsize=100)
    assert (queue.options["priorities"], queue.options["maxsize"]) == (7, 100)
    assert broker.queue("jobs").options == queue.options
    assert broker.queue("plain").options["priorities"] == 1


def test_loans_and_batches_have_priorities(queue: shmq.Queue[Any]) -> None:
    with queue.loan(3, priority=1) as loan:
        loan.view[:] = b"low"
    queue.put_many([b"a", b"b"], priority=6)
    with queue.loan(4, priority=9) as loan:
        loan.view[:] = b"high"
    assert queue.get_many(9, timeout=0) == [b"high", b"a", b"b", b"low"]
