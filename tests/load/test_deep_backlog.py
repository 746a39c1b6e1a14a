"""Far more messages than the broker has memory for: all arrive, in order, and nothing grows but the files on disk.

In the suite a million messages of 1 KiB; with SHMQ_FULL=1 ten millions.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import shmq
from instruments.resident import anonymous_bytes, resident_bytes
from tests.support.health import check_empty
from tests.support.offspring import LIMIT, Offspring, Say, family
from tests.support.segment_image import segment_file
from tests.support.size import sized
from tests.support.traffic import HEADER, Audit, Book, pool_of

MIB = 1 << 20
MESSAGES = sized(1_000_000, 10_000_000)
PRODUCERS = CONSUMERS = 3
BODY = 1024
BUDGET = 64 * MIB
IN_MEMORY = 16 * MIB
GROWTH = 32 * MIB
LOOK_EVERY = 0.02  # seconds between two looks at everybody's memory
SECONDS = sized(300, 1800)  # seconds until all have ended, on a machine that is busy with other things


def body_of(producer: int, number: int, seed: int, pool: bytes) -> bytes:
    start = (producer * 7919 + number * 104729) % (len(pool) - BODY)
    return HEADER.pack(producer, number, seed) + pool[start : start + BODY - HEADER.size]


def produce(queue: shmq.Queue[Any], producer: int, count: int, seed: int, say: Say) -> None:
    pool = pool_of(seed)
    say("here")
    for number in range(count):
        queue.put(body_of(producer, number, seed, pool))


def consume(queue: shmq.Queue[Any], path: Path, how: str, seed: int, say: Say) -> None:
    """Takes everything until the queue is shut down and drained."""
    pool, book = pool_of(seed), Book(seed)

    def note(body: bytes) -> None:
        producer, number, _ = HEADER.unpack_from(body)
        assert body == body_of(producer, number, seed, pool), f"body {number} of producer {producer} is torn"
        book.note(body)

    say("here")
    with suppress(shmq.ShutDown):
        while how == "get":
            note(queue.get())
        while how == "get_many":
            for body in queue.get_many(50):
                note(body)
        with queue.consumer() as consumer:
            while True:
                message = consumer.receive()
                note(message.body)
                message.ack()
    book.save(path)


def is_drained(queue: shmq.Queue[Any]) -> bool:
    seen = queue.statistics()
    return seen.ready + seen.unsettled == 0


class Watch:
    """Looks at the memory of all processes, and of the segment, until a state is reached."""

    def __init__(self, segment: Path, children: list[Offspring]) -> None:
        self.segment, self.children = segment, children
        self.first: dict[int, int] = {}  # bytes of each process's own memory, at the first look
        self.growth = 0  # the most of all
        self.most = 0  # of the segment

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"not within {SECONDS} s: {what}"
            for pid in (child.pid for child in self.children):
                own = anonymous_bytes(pid)
                if own:
                    self.growth = max(self.growth, own - self.first.setdefault(pid, own))
            self.most = max(self.most, resident_bytes(self.segment))
            time.sleep(LOOK_EVERY)


@pytest.mark.timeout(sized(900, 3600))
@pytest.mark.parametrize("how", ["get", "get_many", "receive"])
def test_a_backlog_of_many_times_the_memory_arrives_in_order_and_nobody_grows(
    how: str, broker_dir: Path, tmp_path: Path, seed: int, figure: Callable[..., None]
) -> None:
    """Shows S101, S106, S180, G5."""
    count = MESSAGES // PRODUCERS
    books = [tmp_path / f"book-{number}" for number in range(CONSUMERS)]
    with shmq.open(broker_dir, memory=BUDGET, disk="8GiB") as broker, family() as children:
        queue = broker.queue("backlog", codec="bytes", max_memory=IN_MEMORY)
        watch = Watch(segment_file(broker_dir), children)
        children.extend(Offspring(produce, queue, number, count, seed) for number in range(PRODUCERS))
        for child in children:
            child.expect("here")
        watch.until(lambda: queue.qsize() > MESSAGES // 2, "half of all messages are there")
        deepest = queue.statistics()
        assert deepest.flowed
        assert deepest.disk_bytes > (MESSAGES // 2) * BODY - BUDGET
        children.extend(Offspring(consume, queue, book, how, seed) for book in books)
        watch.until(lambda: queue.statistics().put == count * PRODUCERS, "all messages are put")
        for child in children[:PRODUCERS]:
            assert child.wait(LIMIT) == 0
        watch.until(lambda: is_drained(queue), "all messages are taken")
        queue.shutdown()
        for child in children[PRODUCERS:]:
            assert child.wait(LIMIT) == 0
        audit = Audit()
        for book in books:
            audit.read(book)
        audit.check(PRODUCERS, count)
        figure("backlog", messages=count * PRODUCERS, segment_mib=watch.most / MIB, growth_mib=watch.growth / MIB)
        assert 0 < watch.most <= BUDGET
        assert len(watch.first) == PRODUCERS + CONSUMERS
        assert watch.growth < GROWTH
        check_empty(broker, queue)
        left = queue.statistics()
        assert (left.put, left.delivered) == (count * PRODUCERS, count * PRODUCERS)
        assert (left.flowed, left.disk_bytes) == (False, 0)
    assert not [path for path in (broker_dir / "disk").rglob("*") if path.is_file()]
