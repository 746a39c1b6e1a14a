"""Messages that rest in slots of a queue, delayed or in hand, leave the other slots to all that pass."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq

SLOTS = 4096  # of a queue without maxsize in a broker of 16 MiB
PASSING = 2 * SLOTS
Resting = Callable[[shmq.Queue[bytes], int], Any]


def delayed(queue: shmq.Queue[bytes], count: int) -> None:
    queue.put_many([b"later"] * count, delay=3600)


def in_hand(queue: shmq.Queue[bytes], count: int) -> Any:
    queue.put_many([b"mine"] * count)
    consumer = queue.consumer()
    held: list[shmq.Message[bytes]] = []
    while len(held) < count:
        held += consumer.receive_many(count - len(held))
    return consumer, held


def between_attempts(queue: shmq.Queue[bytes], count: int) -> None:
    _, held = in_hand(queue, count)
    for message in held:
        message.retry(delay=3600)


@pytest.mark.in_hand
@pytest.mark.parametrize("rests", [delayed, in_hand, between_attempts])
@pytest.mark.parametrize("count", [SLOTS // 2 + 1, SLOTS - 100])
@pytest.mark.parametrize("disk", [0, 1 << 30])
def test_messages_pass_those_that_rest_in_more_than_half_of_the_slots(
    broker_dir: Path, rests: Resting, count: int, disk: int
) -> None:
    with shmq.open(broker_dir, memory="16MiB", disk=disk) as broker:
        queue = broker.queue("jobs", codec="bytes")
        kept = rests(queue, count)
        for number in range(PASSING):
            queue.put(b"%d" % number, timeout=0)
            assert queue.get(timeout=0) == b"%d" % number
        for number in range(0, PASSING, 50):
            batch = [b"%d" % n for n in range(number, number + 50)]
            queue.put_many(batch, timeout=0)
            assert queue.get_many(50, timeout=0) == batch
        seen = queue.statistics()
        assert seen.delayed + seen.unsettled == count
        del kept


@pytest.mark.parametrize("count", [1, SLOTS // 2 + 1, SLOTS - 1])
def test_a_queue_in_memory_is_full_when_all_of_its_slots_are_used(memory_only: shmq.Broker, count: int) -> None:
    queue = memory_only.queue("jobs", codec="bytes")
    delayed(queue, count)
    with pytest.raises(shmq.Full) as full:
        queue.put_many((b"%d" % number for number in range(SLOTS)), timeout=0)
    assert (full.value.resource, full.value.limit, full.value.used) == ("maxsize", SLOTS, SLOTS)
    assert queue.get_many(SLOTS, timeout=0) == [b"%d" % number for number in range(SLOTS - count)]
