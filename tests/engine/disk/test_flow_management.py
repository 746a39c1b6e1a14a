"""Operators manage a queue that has flowed to disk: move, purge by selector, browse, claims by position."""

from typing import Any

import pytest

import shmq
from shmq.core.handles import browse_columns
from shmq.engine.claims.claim import discard_below, levels_of
from tests.engine.numbered import number_of, numbered
from tests.support.health import check_sound

LITTLE = 20_000  # bytes in memory
COUNT = 4000


@pytest.fixture(params=[1, 3], ids=["plain", "priorities"])
def flowed(request: pytest.FixtureRequest, broker: shmq.Broker) -> shmq.Queue[Any]:
    queue = broker.queue("backlog", max_memory=LITTLE, priorities=request.param, codec="bytes")
    for number in range(COUNT):
        queue.put(numbered(number), headers={"number": number}, timeout=5.0)
    assert queue.statistics().disk_bytes > 2 * LITTLE
    return queue


def numbers(queue: shmq.Queue[Any]) -> list[int]:
    return [number_of(m.body) for m in queue.browse()]


def test_a_move_takes_what_is_on_disk_in_its_order(broker: shmq.Broker, flowed: shmq.Queue[Any]) -> None:
    """Shows G5."""
    target = broker.queue("target", max_memory=LITTLE, codec="bytes")
    assert flowed.move(target, limit=10) == 10
    assert flowed.move(target) == COUNT - 10
    assert (flowed.qsize(), target.qsize()) == (0, COUNT)
    assert numbers(target) == list(range(COUNT))
    assert target.statistics().flowed
    assert [number_of(target.get(timeout=0)) for _ in range(COUNT)] == list(range(COUNT))
    check_sound(broker, flowed, target)


def test_a_copy_leaves_all_of_it(broker: shmq.Broker, flowed: shmq.Queue[Any]) -> None:
    target = broker.queue("target", codec="bytes")
    assert flowed.move(target, copy=True) == COUNT
    assert numbers(flowed) == numbers(target) == list(range(COUNT))


def test_a_selector_chooses_deep_in_it(broker: shmq.Broker, flowed: shmq.Queue[Any]) -> None:
    target = broker.queue("target", codec="bytes")
    assert flowed.move(target, selector="number >= 300 AND number < 310") == 10
    assert flowed.purge(selector="number >= 350 AND number < 360") == 10
    assert numbers(target) == list(range(300, 310))
    left = [number for number in range(COUNT) if number // 10 not in (30, 35)]
    assert numbers(flowed) == left
    assert [number_of(flowed.get(timeout=0)) for _ in left] == left
    check_sound(broker, flowed, target)


def test_a_selector_chooses_more_than_the_front_ring_has_slots(flowed: shmq.Queue[Any]) -> None:
    assert flowed.purge(selector="number > 5") == COUNT - 6
    assert [number_of(flowed.get(timeout=0)) for _ in range(6)] == list(range(6))
    assert (flowed.qsize(), flowed.statistics().bytes) == (0, 0)


def test_what_is_in_hand_and_leaves_no_slot_is_told_and_nothing_is_lost(flowed: shmq.Queue[Any]) -> None:
    """Shows G5."""
    held = flowed.receive_many(COUNT, timeout=0)
    assert 0 < len(held) < COUNT - 500, "the front ring has no slot left"
    with pytest.raises(shmq.OutOfSpace, match="no slot is free for a message that comes back"):
        flowed.purge(selector=f"number = {COUNT - 500}")
    for message in held[:-1]:
        message.ack()
    held[-1].release()
    assert flowed.purge(selector=f"number = {COUNT - 500}") == 1
    left = [number for number in range(len(held) - 1, COUNT) if number != COUNT - 500]
    assert [number_of(flowed.get(timeout=0)) for _ in left] == left


def test_columns_hold_what_is_on_disk(flowed: shmq.Queue[Any]) -> None:
    """As Spark reads them."""
    seen = []
    for begin, end in levels_of(flowed):
        while begin < end:
            begin, ended, rows, columns = browse_columns(flowed, begin, end, 100, 1 << 30)
            bodies = columns[-1]
            assert len(bodies) == 58 * rows
            seen += [number_of(bodies[58 * i : 58 * i + 58]) for i in range(rows)]
            if ended:
                break
    assert seen == list(range(COUNT))


def test_what_lies_below_a_position_is_discarded_wherever_it_is(broker: shmq.Broker) -> None:
    queue = broker.queue("backlog", max_memory=LITTLE, maxsize=2 * COUNT, max_bytes="1MiB", codec="bytes")
    for number in range(COUNT):
        queue.put(numbered(number), timeout=5.0)
    positions = {number_of(m.body): m.position for m in queue.browse()}
    left = COUNT
    for number in (7, 150, 2500, 2500, 3900, COUNT - 1):
        gone = discard_below(queue, positions[number])
        assert (gone, queue.qsize()) == (left - (COUNT - number), COUNT - number)
        left = COUNT - number
        assert numbers(queue)[:5] == list(range(number, COUNT))[:5]
        assert queue.statistics().bytes == 58 * left
    check_sound(broker, queue)
    assert number_of(queue.get(timeout=0)) == COUNT - 1
    for number in range(COUNT):
        queue.put(numbered(number), timeout=0)
    assert numbers(queue) == list(range(COUNT))


@pytest.mark.parametrize("priorities", [1, 3])
def test_what_a_consumer_refused_never_comes_back_to_it_by_way_of_the_disk(
    broker: shmq.Broker, priorities: int
) -> None:
    queue = broker.queue("backlog", max_memory=1000, priorities=priorities, codec="bytes")
    with queue.consumer(prefetch=8) as consumer:
        for number in range(5):
            queue.put(numbered(number))
        for m in consumer.receive_many(3, timeout=0):
            m.release(elsewhere=True)
        for number in range(5, 500):
            queue.put(numbered(number), timeout=5.0)
        got: list[int] = []
        while len(got) < 497:
            with consumer.receive(timeout=0) as m:
                got.append(number_of(m.body))
        assert got == list(range(3, 500))
        with pytest.raises(shmq.Empty):
            consumer.receive(timeout=0)
    assert [number_of(queue.get(timeout=0)) for _ in range(3)] == [0, 1, 2]


def test_the_oldest_of_the_least_important_level_goes_also_from_disk(broker: shmq.Broker) -> None:
    queue = broker.queue("newest", max_memory=5000, maxsize=1000, priorities=2, overflow="drop_oldest", codec="bytes")
    for number in range(1000):
        queue.put(numbered(number), priority=9 if number % 2 else 0, timeout=5.0)
    for number in range(1000, 1200):
        queue.put(numbered(number), priority=9, timeout=5.0)
    assert queue.statistics().dropped == 200
    high = [number for number in range(1000) if number % 2] + list(range(1000, 1200))
    low = [number for number in range(400, 1000) if number % 2 == 0]
    assert numbers(queue) == high + low
    check_sound(broker, queue)
