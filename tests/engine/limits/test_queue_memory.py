"""A queue takes little of the broker's memory and of /dev/shm while it is empty, and reports say how much."""

import contextlib
from pathlib import Path

import pytest

import shmq
from shmq.mp import Queue
from shmq.mp.process_broker import own_broker
from tests.support.segment_image import segment_file

KIB, MIB = 1024, 1 << 20


def in_shared_memory(broker: Path) -> int:
    """The bytes that the segment of this directory has, as the system counts them."""
    return segment_file(broker).stat().st_blocks * 512


def test_a_thousand_empty_queues_fit_into_64_mebibytes(broker_dir: Path) -> None:
    """Shows G5."""
    with shmq.open(broker_dir, memory="64MiB") as broker:
        before = in_shared_memory(broker_dir)
        queues = [broker.queue(f"q{number}") for number in range(1000)]
        assert in_shared_memory(broker_dir) - before < 1000 * 32 * KIB
        queues[999].put_many(range(1000))
        assert queues[999].get_many(1000) == list(range(1000))


def test_the_slots_of_a_queue_do_not_depend_on_those_made_before(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="64MiB", disk=0) as broker:
        first, *_, last = [broker.queue(f"q{number}") for number in range(20)]
        for queue in (first, last):
            queue.put_many(range(16_384), timeout=0)
            with pytest.raises(shmq.Full):
                queue.put(0, timeout=0)


@pytest.mark.parametrize("options", [{}, {"priorities": 10}, {"maxsize": 100_000}, {"slot_size": 4096}])
def test_statistics_say_what_the_system_says(broker_dir: Path, options: shmq.QueueOptions) -> None:
    with shmq.open(broker_dir, memory="64MiB") as broker:
        broker.queue("other").put(b"x" * 100_000)
        before = in_shared_memory(broker_dir)
        queue = broker.queue("q", **options)
        empty = queue.statistics().reserved_bytes
        assert empty <= (40 + 6 * options.get("priorities", 1)) * KIB
        queue.put_many(range(1000))
        grown = queue.statistics().reserved_bytes
        assert empty < grown
        page = 64 * KIB  # of queue pages: eight lie in one granule
        assert grown - page <= in_shared_memory(broker_dir) - before <= grown + page
        assert broker.statistics().memory_reserved == in_shared_memory(broker_dir)


@pytest.mark.memory
def test_a_deleted_queue_and_a_temporary_one_give_their_slots_back(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="64MiB") as broker:
        broker.queue("stays")
        before = in_shared_memory(broker_dir)
        queue = broker.queue("q", temporary=True)
        queue.put_many(range(10_000))
        assert in_shared_memory(broker_dir) > before + MIB
        queue.delete()
        del queue
        broker.queue("next")  # memory comes back at the next change of the directory
        assert in_shared_memory(broker_dir) < before + 128 * KIB


@pytest.mark.usefixtures("own_process_broker")
def test_a_hundred_multiprocessing_queues_cost_little_of_dev_shm() -> None:
    first: Queue[int] = Queue()
    statistics = own_broker().statistics
    before = statistics().memory_reserved
    more: list[Queue[int]] = [Queue() for _ in range(100)]
    assert statistics().memory_reserved - before <= 100 * 64 * KIB
    for queue in (first, *more):
        queue.close()


def test_full_names_the_queue_whose_bodies_have_the_memory(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="32MiB", disk=0) as broker:
        frames, other = broker.queue("frames"), broker.queue("other")
        with contextlib.suppress(shmq.Full):
            while True:
                frames.put(b"x" * 2_000_000, timeout=0)
        with pytest.raises(shmq.Full) as full:
            other.put(b"x" * 2_000_000, timeout=0)
        assert full.value.resource == "memory"
        assert "bodies of queue 'frames'" in str(full.value)
        assert "take messages out of 'frames'" in str(full.value)


def test_full_names_the_queue_whose_slots_have_the_memory(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="8MiB", disk=0) as broker:
        large = broker.queue("large", maxsize=32_768, slot_size=128)
        other = broker.queue("other", slot_size=4096, maxsize=1024)
        large.put_many(range(32_768), timeout=0)
        with pytest.raises(shmq.Full) as full:
            other.put_many(range(1024), timeout=0)
        assert full.value.resource == "memory"
        assert "slots of queue 'large'" in str(full.value)
        assert "delete queues that are not needed" in str(full.value)
        large.delete()
        del large
        other.put_many(range(10), timeout=10)


def make_queues(broker: shmq.Broker) -> None:
    for number in range(2000):
        broker.queue(f"empty-{number}")


def fill(queue: shmq.Queue[bytes], size: int = 5000) -> None:
    while True:
        queue.put(bytes(size), timeout=0)


def test_a_queue_that_finds_no_memory_is_told_who_has_it(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="8MiB") as broker:
        with pytest.raises(shmq.Full) as empty:
            make_queues(broker)
        assert "slots of queue 'empty-" in empty.value.figures
        assert "delete queues that are not needed, as 'empty-" in empty.value.remedy
        assert "take messages out" not in str(empty.value)
        broker.queue("empty-0").delete()
        broker.queue("one more")


def test_a_queue_that_finds_memory_full_of_bodies_is_told_of_whom(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="8MiB", disk=0) as broker:
        bodies = broker.queue("bodies", codec="bytes")
        with pytest.raises(shmq.Full, match="take messages out of 'bodies', or use"):
            fill(bodies)
        with pytest.raises(shmq.Full, match=r"bodies of queue 'bodies': .*take messages out of 'bodies', ") as full:
            make_queues(broker)
        assert "delete queues that are not needed, as 'bodies'" not in str(full.value)


def test_a_queue_that_no_broker_of_this_size_can_hold_is_told_the_size_alone(broker_dir: Path) -> None:
    with (
        shmq.open(broker_dir, memory="8MiB", disk=0) as broker,
        pytest.raises(shmq.Full, match="can never hold") as never,
    ):
        broker.queue("huge", maxsize=10_000_000)
    assert "take messages out" not in str(never.value)
    assert "smaller maxsize" in never.value.remedy


def test_slots_get_memory_that_bodies_have_no_more(broker_dir: Path) -> None:
    """Also when slots have had their share of the memory already, for which bodies leave it."""
    with shmq.open(broker_dir, memory="16MiB", disk=0) as broker:
        first, bodies, later = (
            broker.queue(name, codec="bytes", maxsize=maxsize)
            for name, maxsize in (("first", 8000), ("bodies", 1000), ("later", 8000))
        )
        first.put_many([b"x" * 60] * 8000, timeout=0)
        first.purge()
        with pytest.raises(shmq.Full, match="memory"):
            fill(bodies, 30_000)
        bodies.purge()
        later.put_many([b"x"] * 8000, timeout=0)
        assert len(later.get_many(9000, timeout=0)) == 8000
        fresh = broker.queue("fresh", maxsize=5000)
        fresh.put_many(range(5000), timeout=0)
