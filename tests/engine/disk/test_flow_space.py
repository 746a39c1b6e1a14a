"""Space that a flood has taken, on disk and in the segment, is given back when it is consumed, and used again."""

from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.conftest import Taker
from tests.support.health import check_empty, usage

FLOOD = 6000
LITTLE = 200_000  # bytes in memory


def put_all(queue: shmq.Queue[Any]) -> None:
    for number in range(FLOOD):
        queue.put(b"%08d" % number + b"x" * 492, timeout=0)


def files(broker_dir: Path) -> list[Path]:
    return [path for path in (broker_dir / "disk").rglob("*") if path.is_file()]


def test_a_consumed_flood_leaves_no_file_and_no_memory(broker: shmq.Broker, broker_dir: Path, take: Taker) -> None:
    """Shows S166, G5."""
    queue: shmq.Queue[Any] = broker.queue("backlog", max_memory=LITTLE, codec="bytes")
    reserved = []
    for _ in range(3):
        put_all(queue)
        assert queue.statistics().disk_bytes > FLOOD * 500 - 2 * LITTLE
        assert usage(broker)["block_bytes_used"] < 4 * LITTLE
        for number in range(FLOOD):
            assert int(take(queue, 0)[:8]) == number
        with pytest.raises(shmq.Empty):
            take(queue, 0)
        seen = queue.statistics()
        assert (seen.ready, seen.bytes, seen.memory_bytes, seen.disk_bytes, seen.flowed) == (0, 0, 0, 0, False)
        assert broker.statistics().disk_used == 0
        assert not files(broker_dir)
        check_empty(broker, queue)
        reserved.append(usage(broker)["reserved"])
    assert len(set(reserved[1:])) == 1, "the second flood needs no memory that the first one has left behind"
    assert reserved[-1] < FLOOD * 500


def test_files_go_while_a_flood_is_consumed(broker: shmq.Broker, broker_dir: Path) -> None:
    """Shows S122, S191."""
    queue: shmq.Queue[Any] = broker.queue("backlog", max_memory=LITTLE, codec="bytes")
    put_all(queue)
    sizes = [queue.statistics().disk_bytes]
    for _ in range(5):
        for _ in range(FLOOD // 6):
            queue.get(timeout=0)
        sizes.append(sum(file.stat().st_size for file in files(broker_dir)))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[3] < sizes[0] * 2 // 3
    assert sizes[5] < sizes[0] // 3
    queue.delete()
    assert not files(broker_dir)
