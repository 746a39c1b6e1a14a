"""Queues with priorities that flow to disk: each level flows for itself, and what is more important is taken first.

Shows G5.
"""

import random
from collections import deque
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.numbered import number_of, numbered
from tests.support.health import check_sound
from tests.support.offspring import Offspring, Say, family

LITTLE = 20_000  # bytes in memory, of all levels
LEVELS = 10


@pytest.fixture
def queue(broker: shmq.Broker) -> shmq.Queue[Any]:
    return broker.queue("jobs", priorities=LEVELS, max_memory=LITTLE, codec="bytes")


def priority_of(number: int) -> int:
    """As good as random."""
    return number * 7 % 11 % LEVELS


def put_all(queue: shmq.Queue[Any], numbers: range) -> None:
    for number in numbers:
        queue.put(numbered(number), priority=priority_of(number), timeout=5.0)


def in_order(numbers: range) -> list[int]:
    return sorted(numbers, key=lambda number: -priority_of(number))


def test_what_is_more_important_comes_first_from_disk_too(
    queue: shmq.Queue[Any], broker: shmq.Broker, broker_dir: Path
) -> None:
    put_all(queue, range(4000))
    seen = queue.statistics()
    assert (seen.ready, seen.flowed, seen.bytes) == (4000, True, 4000 * 58)
    assert seen.memory_bytes <= 4 * LITTLE  # with slots
    assert seen.disk_bytes > 3000 * 58
    assert [number_of(m.body) for m in queue.browse()] == in_order(range(4000))
    assert [number_of(queue.get(timeout=0)) for _ in range(4000)] == in_order(range(4000))
    with pytest.raises(shmq.Empty):
        queue.get(timeout=0)
    seen = queue.statistics()
    assert (seen.ready, seen.flowed, seen.disk_bytes) == (0, False, 0)
    assert not [path for path in (broker_dir / "disk").rglob("*") if path.is_file()]
    check_sound(broker, queue)


def test_without_an_option_it_flows_when_memory_is_used_up(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB", disk="1GiB") as broker:
        queue = broker.queue("jobs", priorities=3, codec="bytes")
        for number in range(30_000):
            queue.put(numbered(number, 992), priority=number % 3 * 4, timeout=5.0)
        assert queue.statistics().flowed
        assert broker.statistics().memory_used <= 16 << 20
        expected = [number for level in (2, 1, 0) for number in range(level, 30_000, 3)]
        assert [number_of(queue.get(timeout=5.0)) for _ in range(30_000)] == expected


def test_an_urgent_one_is_next_however_much_is_on_disk(queue: shmq.Queue[Any]) -> None:
    """Shows S129."""
    for number in range(3000):
        queue.put(numbered(number), priority=4, timeout=5.0)
    for number in range(20):
        assert number_of(queue.get(timeout=0)) == number
        queue.put(b"%08d urgent" % (10_000 + number), priority=5 + number % 5)
        assert number_of(queue.get(timeout=0)) == 10_000 + number


@pytest.mark.in_hand
@pytest.mark.parametrize("levels", [2, 10])
def test_puts_takes_and_returns_in_any_order_keep_the_order(
    broker: shmq.Broker, broker_dir: Path, levels: int, seed: int
) -> None:
    """Against a list for each level."""
    rng = random.Random(seed)
    queue = broker.queue("random", priorities=levels, max_memory=rng.choice((1, 5_000, LITTLE)), codec="bytes")
    lists: list[deque[int]] = [deque() for _ in range(levels)]
    held: list[tuple[int, int, shmq.Message[Any]]] = []
    put = 0
    with queue.consumer(prefetch=64) as consumer:
        for _ in range(60):
            for _ in range(rng.randrange(150)):
                priority = rng.randrange(10)
                level = min(max(priority - (5 - (levels + 1) // 2), 0), levels - 1)
                queue.put(numbered(put, rng.randrange(200)), priority=priority, timeout=5.0)
                lists[level].append(put)
                put += 1
            for _ in range(rng.randrange(150)):
                level = next((at for at in reversed(range(levels)) if lists[at]), -1)
                if level < 0:
                    with pytest.raises(shmq.Empty):
                        queue.get(timeout=0)
                    break
                number = lists[level].popleft()
                if rng.random() < 0.1 and len(held) < 20:
                    m = consumer.receive(timeout=0)
                    assert number_of(m.body) == number
                    held.append((level, number, m))
                else:
                    assert number_of(queue.get(timeout=0)) == number
            for level, number, m in held:
                if rng.random() < 0.5:
                    m.release()
                    lists[level] = deque(sorted([*lists[level], number]))
                else:
                    m.ack()
            held.clear()
            assert queue.qsize() == sum(map(len, lists))
        check_sound(broker, queue)
        for level in reversed(range(levels)):
            assert [number_of(queue.get(timeout=0)) for _ in lists[level]] == list(lists[level])


def put_in_turn(queue: shmq.Queue[Any], first: int, say: Say) -> None:
    say("here")
    for number in range(first, first + 3000):
        queue.put(numbered(number), priority=priority_of(number), timeout=60.0)
    say("done")


def take_some(queue: shmq.Queue[Any], count: int, say: Say) -> None:
    say("here")
    say(" ".join(str(number_of(queue.get(timeout=60.0))) for _ in range(count)))


def test_several_producers_and_consumers_lose_and_double_nothing(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    with family() as children:
        producers = [Offspring(put_in_turn, queue, first) for first in (0, 3000, 6000)]
        consumers = [Offspring(take_some, queue, 2000) for _ in range(3)]
        children += [*producers, *consumers]
        for child in children:
            child.expect("here")
        for child in producers:
            child.expect("done")
        taken = [int(number) for child in consumers for number in child.line().split()]
    rest = [number_of(queue.get(timeout=0)) for _ in range(3000)]
    assert sorted([*taken, *rest]) == list(range(9000))
    levels = [priority_of(number) for number in rest]
    assert levels == sorted(levels, reverse=True)
    for level, first in product(range(LEVELS), (0, 3000, 6000)):
        own = [number for number in rest if priority_of(number) == level and number // 3000 * 3000 == first]
        assert own == sorted(own)
    check_sound(broker, queue)
