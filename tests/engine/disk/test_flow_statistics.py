"""The statistics of a queue are exact at rest, wherever its messages lie."""

from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.numbered import number_of, numbered, put_numbers

pytestmark = pytest.mark.memory

LITTLE = 20_000  # bytes in memory


@pytest.mark.parametrize("options", [{}, {"maxsize": 5000, "max_bytes": "1MiB"}, {"priorities": 3}], ids=str)
def test_counts_and_bytes_are_exact_wherever_the_messages_lie(broker: shmq.Broker, options: dict[str, Any]) -> None:
    """Shows S117, S169, S187, S204, G5."""
    queue = broker.queue("backlog", codec="bytes", max_memory=LITTLE, **options)
    put_numbers(queue, range(3000))
    queue.put(numbered(0), delay=3600)
    one = len(numbered(0))
    held = [queue.receive(timeout=5.0) for _ in range(3)]
    seen = queue.statistics()
    assert (seen.ready, seen.unsettled, seen.delayed, seen.bytes) == (2997, 3, 1, 3001 * one)
    assert seen.flowed
    assert 0 < seen.memory_bytes < 3001 * one < seen.memory_bytes + seen.disk_bytes
    for message in held:
        message.ack()
    assert [number_of(queue.get(timeout=5.0)) for _ in range(2900)] == list(range(3, 2903))
    seen = queue.statistics()
    assert (seen.ready, seen.unsettled, seen.delayed, seen.bytes) == (97, 0, 1, 98 * one)
    queue.purge()
    seen = queue.statistics()
    assert (seen.ready, seen.delayed, seen.bytes, seen.memory_bytes, seen.flowed) == (0, 0, 0, 0, False)


def test_what_is_on_disk_is_counted_once_by_all_processes_and_by_the_broker(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB", disk="1GiB") as broker:
        queue = broker.queue("backlog", codec="bytes", max_memory=LITTLE)
        put_numbers(queue, range(3000))
        seen = broker.statistics()
        assert seen.queues["backlog"].disk_bytes == seen.disk_used > 0
        while queue.get_many(1000, timeout=0):
            pass
        assert broker.statistics().disk_used == queue.statistics().disk_bytes == 0
