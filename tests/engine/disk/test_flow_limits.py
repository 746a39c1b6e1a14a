"""Limits beside what is on disk: of messages, of bytes, of the broker's memory, of its disk. Shows G5."""

from contextlib import ExitStack
from pathlib import Path

import pytest

import shmq
from tests.engine.lifecycle.test_shutdown import finish, in_thread
from tests.engine.numbered import number_of, numbered, put_numbers
from tests.support.offspring import Offspring, Say

LITTLE = 20_000  # bytes in memory, so that a few hundred messages flow


def files(broker_dir: Path) -> list[Path]:
    return [path for path in (broker_dir / "disk").rglob("*") if path.is_file()]


def test_maxsize_and_max_bytes_count_what_is_on_disk(broker: shmq.Broker) -> None:
    queue = broker.queue("backlog", maxsize=3000, codec="bytes", max_memory=LITTLE)
    put_numbers(queue, range(3000))
    with pytest.raises(shmq.Full) as full:
        queue.put(b"", timeout=0)
    assert (full.value.resource, full.value.limit, full.value.used) == ("maxsize", 3000, 3000)
    assert queue.statistics().flowed
    assert [number_of(queue.get(timeout=5.0)) for _ in range(1000)] == list(range(1000))
    put_numbers(queue, range(3000, 4000))
    with pytest.raises(shmq.Full):
        queue.put(b"", timeout=0)
    queue.alter(maxsize=0, max_bytes=4000 * 58)
    put_numbers(queue, range(4000, 5000))
    with pytest.raises(shmq.Full) as full:
        queue.put(numbered(0), timeout=0)
    assert full.value.resource == "max_bytes"
    assert [number_of(queue.get(timeout=5.0)) for _ in range(4000)] == list(range(1000, 5000))
    assert queue.statistics().bytes == 0


@pytest.mark.in_hand
def test_a_maxsize_may_be_more_than_memory_has_slots_for_and_is_exact(broker_dir: Path) -> None:
    """Shows S125."""
    most = 200_000
    with shmq.open(broker_dir, memory="8MiB", disk="1GiB") as broker:
        queue = broker.queue("backlog", maxsize=most, codec="bytes")
        queue.put_many(numbered(number, 0) for number in range(most))
        with pytest.raises(shmq.Full) as full:
            queue.put(b"", timeout=0)
        assert (full.value.resource, full.value.limit, full.value.used) == ("maxsize", most, most)
        seen = queue.statistics()
        assert (seen.ready, seen.flowed) == (most, True)
        queue.alter(maxsize=most + 1)
        queue.put(numbered(most, 0), timeout=0)
        taken = [number_of(body) for _ in range(0, most + 1, 1000) for body in queue.get_many(1000, timeout=5.0)]
        taken += [number_of(body) for body in queue.get_many(1000, timeout=0)]
        assert taken == list(range(most + 1))


def test_a_maxsize_of_any_size_costs_no_more_than_none(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="64MiB", disk="1GiB") as broker:
        for name, maxsize in (("large", 100_000_000), ("largest", 4_294_967_294)):
            queue = broker.queue(name, maxsize=maxsize)
            queue.put("x", timeout=0)
            assert queue.options["maxsize"] == maxsize
            assert queue.statistics().reserved_bytes == 24 * 1024
            assert queue.get(timeout=0) == "x"
        with pytest.raises(ValueError, match="0 to 4,294,967,294"):
            broker.queue("beyond", maxsize=4_294_967_295)


def test_a_maxsize_beyond_memory_is_refused_where_nothing_flows(broker_dir: Path) -> None:
    with (
        shmq.open(broker_dir, memory="64MiB", disk=0) as broker,
        pytest.raises(shmq.Full, match="can never hold this") as never,
    ):
        broker.queue("large", maxsize=100_000_000)
    assert "a queue that stays in memory has at most 16777216" in str(never.value)


def test_the_oldest_of_more_than_memory_has_slots_for_are_dropped(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="8MiB", disk="1GiB") as broker:
        queue = broker.queue("backlog", maxsize=100_000, codec="bytes", overflow="drop_oldest")
        queue.put_many(numbered(number, 0) for number in range(150_000))
        assert (queue.qsize(), queue.statistics().dropped) == (100_000, 50_000)
        assert number_of(queue.get(timeout=0)) == 50_000


def test_the_oldest_are_dropped_from_disk(broker: shmq.Broker) -> None:
    queue = broker.queue("backlog", maxsize=1500, codec="bytes", max_memory=LITTLE, overflow="drop_oldest")
    put_numbers(queue, range(4000))
    seen = queue.statistics()
    assert (seen.ready, seen.dropped, seen.flowed) == (1500, 2500, True)
    assert [number_of(queue.get(timeout=5.0)) for _ in range(1500)] == list(range(2500, 4000))


def test_a_producer_waits_for_room_that_a_consumer_makes_on_disk(broker: shmq.Broker) -> None:
    queue = broker.queue("backlog", maxsize=2000, codec="bytes", max_memory=LITTLE)
    put_numbers(queue, range(2000))
    thread, _ = in_thread(lambda: put_numbers(queue, range(2000, 2100)))
    assert [number_of(queue.get(timeout=5.0)) for _ in range(2100)] == list(range(2100))
    finish(thread)


@pytest.mark.parametrize("size", [1000, 100_000])
def test_a_queue_flows_when_the_memory_of_its_broker_is_used_up(broker_dir: Path, size: int) -> None:
    """Shows S101."""
    count = 64_000_000 // size
    with shmq.open(broker_dir, memory="16MiB", disk="1GiB") as broker:
        queue, other = broker.queue("backlog", codec="bytes"), broker.queue("other", codec="bytes")
        put_numbers(queue, range(count), size)
        put_numbers(other, range(count // 4), size)
        assert queue.statistics().flowed
        assert broker.statistics().memory_reserved <= 16 << 20
        for one, most in (queue, count), (other, count // 4):
            assert [number_of(one.get(timeout=5.0)) for _ in range(most)] == list(range(most))


def put_at_once(path: Path, count: int, say: Say) -> None:
    with shmq.open(path) as broker:
        queue = broker.queue("jobs", codec="bytes")
        for _ in range(count):
            queue.put(bytes(5000), timeout=0)
    say("all are in")


def take_at_once(path: Path, say: Say) -> None:
    with shmq.open(path) as broker:
        queue, got = broker.queue("jobs", codec="bytes"), 0
        try:
            while True:
                queue.get(timeout=0)
                got += 1
        except shmq.Empty:
            say(f"{got} {queue.qsize()}")


def test_processes_that_do_not_wait_are_told_full_and_empty_only_where_it_is_so(broker_dir: Path) -> None:
    each = 3000
    with shmq.open(broker_dir, memory="16MiB", disk="1GiB", patience=10) as broker:
        queue = broker.queue("jobs", codec="bytes", max_deaths=0)
        with ExitStack() as stack:
            for child in [stack.enter_context(Offspring(put_at_once, broker_dir, each)) for _ in range(4)]:
                child.expect("all are in")
        assert queue.qsize() == 4 * each
        with ExitStack() as stack:
            takers = [stack.enter_context(Offspring(take_at_once, broker_dir)) for _ in range(4)]
            told = [[int(number) for number in child.line().split()] for child in takers]
        assert [left for _, left in told] == [0] * 4
        assert sum(got for got, _ in told) == 4 * each


def test_a_broker_without_disk_is_full_when_its_memory_is(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB", disk=0) as broker:
        queue = broker.queue("backlog", codec="bytes")
        with pytest.raises(shmq.Full) as full:
            put_numbers(queue, range(200), 100_000, timeout=0)
        assert full.value.resource == "memory"
        assert not queue.statistics().flowed
        assert not files(broker_dir)
    with pytest.raises(shmq.OptionsMismatch, match="another disk"):
        shmq.open(broker_dir, disk="1GiB")


def test_the_budget_on_disk_stops_producers_and_not_consumers(broker_dir: Path) -> None:
    """Shows S140."""
    with shmq.open(broker_dir, memory="16MiB", disk="4MiB") as broker:
        queue = broker.queue("backlog", codec="bytes", max_memory="1MiB")
        with pytest.raises(shmq.Full) as full:
            put_numbers(queue, range(20_000), 1000, timeout=0)
        assert (full.value.resource, full.value.limit) == ("disk", 4 << 20)
        assert 3 << 20 < full.value.used <= 4 << 20
        assert str(broker_dir) in str(full.value)
        count = queue.qsize()
        thread, _ = in_thread(lambda: put_numbers(queue, range(count, count + 3000), 1000))
        assert [number_of(queue.get(timeout=5.0)) for _ in range(count + 3000)] == list(range(count + 3000))
        finish(thread)
        with pytest.raises(shmq.Empty):
            queue.get(timeout=0)
        assert not files(broker_dir)
