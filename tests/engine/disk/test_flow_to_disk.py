"""A queue with max_memory: what exceeds it lies on disk, and nobody who takes notices but by the clock."""

import fcntl
import os
import random
import shutil
import signal
import struct
import threading
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import shmq
from checker.queue import queues_of
from tests.engine.conftest import Taker
from tests.engine.numbered import number_of, numbered, put_numbers
from tests.support.offspring import eventually
from tests.support.segment_image import image_of, segment_file

LITTLE = 20_000  # bytes in memory, so that a few hundred messages flow


@pytest.fixture
def flowing(broker: shmq.Broker) -> shmq.Queue[Any]:
    return broker.queue("backlog", max_memory=LITTLE, codec="bytes")


def files(broker_dir: Path) -> list[Path]:
    return [path for path in (broker_dir / "disk").rglob("*") if path.is_file()]


def test_what_exceeds_the_memory_comes_back_in_order(
    flowing: shmq.Queue[Any], take: Taker, broker_dir: Path, broker: shmq.Broker
) -> None:
    """Shows S102, S112, S181, S191, S193."""
    put_numbers(flowing, range(5000))
    seen = flowing.statistics()
    assert seen.ready == flowing.qsize() == 5000
    assert seen.flowed
    assert seen.memory_bytes <= 2 * LITTLE  # with the slots that bodies lie in
    assert seen.bytes == 5000 * 58
    assert seen.disk_bytes > 4000 * 58
    assert broker.statistics().disk_used == seen.disk_bytes
    assert files(broker_dir)
    assert [number_of(take(flowing, 5.0)) for _ in range(5000)] == list(range(5000))
    assert not files(broker_dir)  # the last one has gone with its last message
    with pytest.raises(shmq.Empty):
        take(flowing, 0)
    seen = flowing.statistics()
    assert (seen.ready, seen.flowed, seen.disk_bytes) == (0, False, 0)


def test_puts_and_takes_in_turn_keep_the_order(flowing: shmq.Queue[Any], take: Taker, seed: int) -> None:
    """A turn brings back more than the queue may have in memory, so newer messages go to disk for it. Shows R19, G5."""
    numbers = random.Random(seed)
    put = taken = 0
    for _ in range(40):
        count = numbers.randrange(400)
        put_numbers(flowing, range(put, put + count), numbers.randrange(300))
        put += count
        for _ in range(min(numbers.randrange(400), put - taken)):
            assert number_of(take(flowing, 5.0)) == taken
            taken += 1
    assert [number_of(take(flowing, 5.0)) for _ in range(put - taken)] == list(range(taken, put))


def test_what_comes_back_from_a_consumer_is_first(flowing: shmq.Queue[Any]) -> None:
    put_numbers(flowing, range(3000))
    with flowing.consumer() as consumer:
        held = [consumer.receive(timeout=5.0) for _ in range(40)]
        assert [flowing.get(timeout=5.0)[:8] for _ in range(1000)] == [numbered(n)[:8] for n in range(40, 1040)]
        for message in held[::2]:
            message.release()
        held[1].retry()
        assert [number_of(flowing.get(timeout=5.0)) for _ in range(21)] == [0, 1, *range(2, 40, 2)]
        for message in held[3::2]:
            message.ack()
    assert number_of(flowing.get(timeout=5.0)) == 1040
    assert flowing.qsize() == 1959


def test_a_browser_sees_all_of_it_in_order(flowing: shmq.Queue[Any]) -> None:
    put_numbers(flowing, range(2000))
    assert [number_of(seen.body) for seen in flowing.browse()] == list(range(2000))
    for _ in range(700):
        flowing.get(timeout=5.0)
    seen = [(one.position, number_of(one.body)) for one in flowing.browse()]
    assert [number for _, number in seen] == list(range(700, 2000))
    assert [position for position, _ in seen] == sorted({position for position, _ in seen})
    message = flowing.receive(timeout=5.0)
    assert (message.position, number_of(message.body)) == seen[0]
    message.ack()


def test_a_purge_settles_what_is_on_disk(flowing: shmq.Queue[Any], broker: shmq.Broker, broker_dir: Path) -> None:
    put_numbers(flowing, range(2000))
    assert flowing.purge() == 2000
    assert not files(broker_dir)
    assert broker.statistics().disk_used == 0
    assert flowing.qsize() == 0
    with pytest.raises(shmq.Empty):
        flowing.get(timeout=0)
    put_numbers(flowing, range(2000))
    assert number_of(flowing.get(timeout=5.0)) == 0


def test_a_queue_that_is_deleted_leaves_no_file(flowing: shmq.Queue[Any], broker_dir: Path) -> None:
    put_numbers(flowing, range(2000))
    assert files(broker_dir)
    flowing.delete()
    assert not files(broker_dir)


def test_what_is_on_disk_goes_to_the_dead_letters_of_a_queue_that_is_deleted(broker: shmq.Broker) -> None:
    queue = broker.queue("backlog", max_memory=LITTLE, dead_letter="left", codec="bytes")
    put_numbers(queue, range(1500))
    queue.delete()
    left = broker.queue("left", codec="bytes")
    assert sorted(number_of(body) for body in left.get_many(2000, timeout=0)) == list(range(1500))


def test_a_broker_that_is_deleted_takes_its_files_along(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB", disk="1GiB") as broker:
        put_numbers(broker.queue("backlog", max_memory=LITTLE, codec="bytes"), range(2000))
        assert files(broker_dir)
        broker.delete()
    assert not broker_dir.exists()


def test_a_new_segment_begins_without_the_messages_of_a_lost_one(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB", disk="1GiB") as broker:
        put_numbers(broker.queue("backlog", max_memory=LITTLE, codec="bytes"), range(2000))
        (segment,) = (path.name for path in (broker_dir / "disk").iterdir())
    (Path("/dev/shm") / segment).unlink()  # as a reboot does
    with shmq.open(broker_dir, memory="16MiB", disk="1GiB") as broker:
        assert not files(broker_dir)
        assert broker.queue("backlog", max_memory=LITTLE).qsize() == 0


def test_a_limit_that_is_given_while_it_flows_is_for_newcomers(broker: shmq.Broker, flowing: shmq.Queue[Any]) -> None:
    put_numbers(flowing, range(1000))
    flowing.alter(max_memory=None)
    put_numbers(flowing, range(1000, 1200))
    assert [number_of(flowing.get(timeout=5.0)) for _ in range(1200)] == list(range(1200))


def test_batches_go_and_come_in_order(flowing: shmq.Queue[Any]) -> None:
    for first in range(0, 3000, 100):
        flowing.put_many([numbered(number) for number in range(first, first + 100)], timeout=5.0)
    taken: list[bytes] = []
    while len(taken) < 3000:
        taken += flowing.get_many(64, timeout=5.0)
    assert [number_of(body) for body in taken] == list(range(3000))


def test_a_consumer_that_waits_is_woken_by_what_comes(flowing: shmq.Queue[Any]) -> None:
    """Shows S144."""
    taken: list[int] = []

    def work() -> None:
        while len(taken) < 3000:
            taken.append(number_of(flowing.get(timeout=30.0)))

    worker = threading.Thread(target=work)
    worker.start()
    put_numbers(flowing, range(3000))
    worker.join(60.0)
    assert taken == list(range(3000))


def test_a_disk_that_cannot_be_written_is_told_and_loses_nothing(flowing: shmq.Queue[Any], broker_dir: Path) -> None:
    put_numbers(flowing, range(1000))
    directory = next((broker_dir / "disk").iterdir())
    (queue,) = directory.iterdir()
    aside = broker_dir / "aside"
    shutil.move(queue, aside)
    queue.write_bytes(b"")  # a file where the directory was
    accepted = 1000
    told = None
    while told is None:
        try:
            flowing.put(numbered(accepted), timeout=0)
            accepted += 1
        except OSError as error:
            told = str(error)
    assert "disk" in told
    queue.unlink()
    shutil.move(aside, queue)
    put_numbers(flowing, range(accepted, accepted + 100))
    assert [number_of(flowing.get(timeout=5.0)) for _ in range(accepted + 100)] == list(range(accepted + 100))


def produce(url: str, first: int, count: int) -> None:
    with shmq.open(url) as broker:
        queue = broker.queue("backlog", codec="bytes")
        put_numbers(queue, range(first, first + count))


def consume(url: str, numbers: Any) -> None:
    with shmq.open(url) as broker:
        queue = broker.queue("backlog", codec="bytes")
        while True:
            with queue.receive(timeout=30.0) as message:
                numbers.put(number_of(message.body), timeout=30.0)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_every_kind_put_and_take(broker: shmq.Broker, flowing: shmq.Queue[Any], method: str) -> None:
    context: Any = get_context(method)
    makers = [context.Process(target=produce, args=(broker.url, i * 10_000, 1500)) for i in range(2)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join(60.0)
        assert maker.exitcode == 0
    numbers = [number_of(flowing.get(timeout=5.0)) for _ in range(3000)]
    assert sorted(numbers) == [*range(1500), *range(10_000, 11_500)]
    assert [n for n in numbers if n < 10_000] == list(range(1500))


def test_a_consumer_that_is_killed_loses_none_of_it(broker: shmq.Broker, flowing: shmq.Queue[Any], seed: int) -> None:
    moments = random.Random(seed)
    results = broker.queue("numbers")
    put_numbers(flowing, range(3000))
    context = get_context("spawn")
    taken: list[int] = []
    for _ in range(4):
        victim = context.Process(target=consume, args=(broker.url, results))
        victim.start()
        for _ in range(moments.randrange(100, 400)):
            taken.append(results.get(timeout=60.0))
        os.kill(victim.pid or 0, signal.SIGKILL)
        victim.join()
    while results.qsize():
        taken.append(results.get(timeout=5.0))
    put_numbers(flowing, range(3000, 3500))
    rest, first_time = [], []
    while flowing.qsize():
        with flowing.receive(timeout=5.0) as message:
            rest.append(number_of(message.body))
            first_time += [] if message.redelivered else [rest[-1]]
    assert first_time == sorted(first_time)
    assert set(taken) | set(rest) == set(range(3500))
    assert len(taken) + len(rest) - 3500 <= 4  # whoever was killed between its result and its ack had one in hand


def test_a_body_of_any_size_goes_and_comes(flowing: shmq.Queue[Any], seed: int) -> None:
    numbers = random.Random(seed)
    bodies = [numbers.randbytes(size) for size in (0, 1, 127, 128, 129, 5000, 70_000, 1_500_000, 10)] * 3
    for body in bodies:
        flowing.put(body, timeout=5.0)
    assert [flowing.get(timeout=5.0) for _ in bodies] == bodies


def test_headers_counts_and_times_come_back_with_it(broker: shmq.Broker) -> None:
    queue = broker.queue("backlog", max_memory=2000)
    start = time.time()
    for number in range(300):
        queue.put({"number": number}, headers={"n": number, "name": "ä"}, ttl=600.0)
    for _ in range(250):
        queue.get(timeout=5.0)
    message = queue.receive(timeout=5.0)
    assert message.body == {"number": 250}
    assert dict(message.headers) == {"n": 250, "name": "ä"}
    assert start <= message.enqueued_at <= time.time()
    message.retry()
    again = queue.receive(timeout=5.0)
    assert (again.body, again.redelivered) == ({"number": 250}, True)
    again.ack()


MOVER_BYTE = 1 << 41  # of the segment's file: of the first queue's mover


def test_a_purge_waits_for_whoever_moves_messages(flowing: shmq.Queue[Any], broker_dir: Path) -> None:
    put_numbers(flowing, range(1000))
    purged: list[int] = []
    with segment_file(broker_dir).open("r+b") as mover:
        fcntl.fcntl(mover, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, MOVER_BYTE, 1, 0))
        thread = threading.Thread(target=lambda: purged.append(flowing.purge()))
        thread.start()
        eventually(lambda: queues_of(image_of(broker_dir))[0].flow.missed == 1, "the purge has asked for the lock")
        assert not purged
    thread.join()
    assert purged == [1000]
    assert flowing.qsize() == 0


def test_a_taker_for_whom_rows_have_no_slot_is_told_what_helps(broker: shmq.Broker) -> None:
    """Shows S128."""
    queue: shmq.Queue[Any] = broker.queue("slots", max_memory=LITTLE, maxsize=5000, codec="bytes")
    put_numbers(queue, range(5000))
    with queue.consumer(prefetch=5000) as consumer:
        held = consumer.receive_many(5000, timeout=0)
        assert 0 < len(held) < 5000
        with pytest.raises(shmq.Empty, match="some of its messages are on disk; wait longer, or settle"):
            consumer.receive(timeout=0)
        for message in held:
            message.release()
    assert [number_of(queue.get(timeout=5.0)) for _ in range(5000)] == list(range(5000))
    with pytest.raises(shmq.Empty, match="within the timeout; wait longer, or do other work"):
        queue.get(timeout=0)
