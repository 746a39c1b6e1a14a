"""A call that takes several messages meets damage when it has some: it hands them over, and the next one tells."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.disk.test_flow_lost_files import COUNT, LITTLE, files, number_of, put_numbers

pytestmark = pytest.mark.memory  # each says itself what flows

LOST = re.compile(r"messages on disk are lost: (\d+)")


def acked(messages: list[shmq.Message[Any]]) -> list[bytes]:
    for message in messages:
        message.ack()
    return [message.body for message in messages]


def by_fresh_handles(queue: shmq.Queue[Any]) -> list[bytes]:
    return queue.broker.queue(queue.name, codec="bytes").get_many(100, timeout=0)


def by_a_consumer_of_several(queue: shmq.Queue[Any]) -> list[bytes]:
    other = queue.broker.queue("other", codec="bytes")
    with queue.broker.consumer(queue, other) as consumer:
        return acked(consumer.receive_many(100, timeout=0))


def by_a_consumer(queue: shmq.Queue[Any]) -> list[bytes]:
    with queue.consumer() as consumer:
        return acked(consumer.receive_many(100, timeout=0))


TAKES: dict[str, Callable[[shmq.Queue[Any]], list[bytes]]] = {
    "get_many": lambda queue: queue.get_many(100, timeout=0),
    "get_arrow": lambda queue: queue.get_arrow(100, timeout=0).read_all().column("body").to_pylist(),
    "receive_many": lambda queue: acked(queue.receive_many(100, timeout=0)),
    "consumer": by_a_consumer,
    "consumer of several": by_a_consumer_of_several,
    "fresh handles": by_fresh_handles,
}


def take_all(queue: shmq.Queue[Any], how: str) -> tuple[list[int], list[str]]:
    """Numbers that came, and what was told."""
    taken: list[int] = []
    told: list[str] = []
    while True:
        try:
            bodies = TAKES[how](queue)
        except shmq.CorruptionError as error:
            told.append(str(error))
        except shmq.Empty:
            return taken, told
        else:
            taken += map(number_of, bodies)
            if not bodies:
                return taken, told


@pytest.mark.parametrize("how", TAKES)
def test_each_loss_is_told_once(broker_dir: Path, broker: shmq.Broker, how: str) -> None:
    queue = broker.queue("backlog", max_memory=LITTLE, codec="bytes")
    put_numbers(queue, range(COUNT))
    spoilt = files(broker_dir)[1::3]
    assert len(spoilt) > 2
    for file in spoilt:
        file.unlink()
    taken, told = take_all(queue, how)
    assert taken == sorted(set(taken))
    assert len(told) == len(spoilt)
    assert len(taken) + sum(int(found[1]) for text in told if (found := LOST.search(text))) == COUNT
    assert queue.qsize() == 0


def test_a_get_after_the_batch_tells_and_then_goes_on(broker_dir: Path, broker: shmq.Broker) -> None:
    queue = broker.queue("backlog", max_memory=LITTLE, codec="bytes")
    put_numbers(queue, range(COUNT))
    files(broker_dir)[1].unlink()
    batch = queue.get_many(COUNT, timeout=0)
    assert list(map(number_of, batch)) == list(range(len(batch)))
    assert len(batch) < COUNT
    other = broker.queue("other", codec="bytes")
    other.put(b"of another queue")
    assert other.get(timeout=0) == b"of another queue"
    with pytest.raises(shmq.CorruptionError, match="'backlog': messages on disk are lost") as raised:
        queue.get(timeout=0)
    found = LOST.search(str(raised.value))
    assert found is not None
    assert number_of(queue.get(timeout=0)) == len(batch) + int(found[1])
