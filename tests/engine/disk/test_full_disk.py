"""A real disk that is full: producers are told, nothing that was accepted is lost, and all goes on with room.

Shows G5.
"""

import errno
import itertools
import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.support.offspring import Offspring, Say, family
from tests.support.small_disk import KINDS, on_a_small_disk

LITTLE = 20_000  # bytes in memory
PATIENCE = 120.0

every_kind = pytest.mark.parametrize("kind", KINDS)


def numbered(number: int, size: int = 1000) -> bytes:
    return b"%08d" % number + b"x" * size


def number_of(body: bytes) -> int:
    return int(body[:8])


@contextmanager
def flowing_at(place: Path, budget: str | None = "1GiB") -> Iterator[shmq.Queue[Any]]:
    """The budget is larger than the disk."""
    with shmq.open(place / "broker", memory="16MiB", disk=budget) as broker:
        yield broker.queue("backlog", max_memory=LITTLE, codec="bytes")


def fill(queue: shmq.Queue[Any], first: int) -> tuple[int, shmq.OutOfSpace]:
    """Puts until it is told that the disk is full. The number that was refused."""
    number = first
    while True:
        try:
            queue.put(numbered(number), timeout=0)
        except shmq.OutOfSpace as error:
            return number, error
        number += 1


def put_without_end(queue: shmq.Queue[Any]) -> None:
    for number in itertools.count():
        queue.put(numbered(number), timeout=0)


def take(queue: shmq.Queue[Any], first: int, end: int) -> None:
    assert [number_of(queue.get(timeout=0)) for _ in range(first, end)] == list(range(first, end))


def files(place: Path) -> list[Path]:
    return [path for path in (place / "broker" / "disk").rglob("*") if path.is_file()]


@every_kind
def test_a_full_disk_is_told_with_path_figures_and_remedy(kind: str, tmp_path: Path) -> None:
    """Shows S140."""

    def work(place: Path) -> None:
        with flowing_at(place) as queue:
            _, error = fill(queue, 0)
            said = str(error)
            assert error.errno == errno.ENOSPC
            for part in (str(place / "broker" / "disk"), "bytes are free", "files", "'backlog'", "free space there"):
                assert part in said, said

    on_a_small_disk(work, kind, tmp_path)


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_without_a_budget_a_tenth_of_the_disk_stays_free(kind: str, tmp_path: Path) -> None:
    """Shows S137."""

    def work(place: Path) -> None:
        with flowing_at(place, budget=None) as queue:
            with pytest.raises(shmq.Full) as full:
                put_without_end(queue)
            end, disk = queue.qsize(), os.statvfs(place)
            assert full.value.resource == "disk"
            assert str(place / "broker" / "disk") in str(full.value)
            assert disk.f_blocks // 11 < disk.f_bavail < disk.f_blocks // 4
            take(queue, 0, end)

    on_a_small_disk(work, kind, tmp_path)


@every_kind
def test_all_that_was_accepted_is_there_in_order_and_the_disk_can_be_filled_again(kind: str, tmp_path: Path) -> None:
    """Shows S140."""

    def work(place: Path) -> None:
        with flowing_at(place) as queue:
            first = 0
            for _ in range(3):
                end, _ = fill(queue, first)
                assert end - first > 100
                assert queue.qsize() == end - first
                again, _ = fill(queue, end)  # nothing has changed: at most what fits into memory by its size
                take(queue, first, again)
                with pytest.raises(shmq.Empty):
                    queue.get(timeout=0)
                seen = queue.statistics()
                assert (seen.ready, seen.bytes, seen.disk_bytes, seen.flowed) == (0, 0, 0, False)
                assert not files(place)
                first = again

    on_a_small_disk(work, kind, tmp_path)


@every_kind
def test_a_full_disk_hinders_no_consumer_no_settlement_and_no_other_queue(kind: str, tmp_path: Path) -> None:
    """Shows S140."""

    def work(place: Path) -> None:
        with flowing_at(place) as queue:
            for number in range(100):
                queue.put(numbered(number), timeout=0)
            held = [queue.receive(timeout=0) for _ in range(10)]
            end, _ = fill(queue, 100)
            other = queue.broker.queue("other")
            for number in range(200):
                other.put(number, timeout=0)
                assert other.get(timeout=0) == number
            for message in held[:5]:
                message.ack()
            for message in reversed(held[5:]):
                message.release()
            take(queue, 5, end)
            assert queue.statistics().acked == end

    on_a_small_disk(work, kind, tmp_path)


def test_a_disk_that_was_full_before_the_queue_flowed_is_told_and_the_queue_stays_in_memory(tmp_path: Path) -> None:
    def work(place: Path) -> None:
        with flowing_at(place) as queue:
            filler = place / "filler"
            left = os.statvfs(place)
            filler.write_bytes(b"x" * (left.f_bavail * left.f_frsize))
            end, _ = fill(queue, 0)
            assert 10 <= end <= LITTLE / 1000
            first = end // 2
            take(queue, 0, first)
            end, _ = fill(queue, end)
            filler.unlink()
            for number in range(end, end + 500):
                queue.put(numbered(number), timeout=PATIENCE)
            assert queue.statistics().flowed
            take(queue, first, end + 500)

    on_a_small_disk(work, "tmpfs", tmp_path)


def persist(queue: shmq.Queue[Any], end: int, say: Say) -> None:
    """Puts all, whatever it is told meanwhile; says when the disk was full for the first time."""
    full = False
    for number in range(end):
        accepted = False
        while not accepted:
            try:
                queue.put(numbered(number), timeout=PATIENCE if full else 0)
                accepted = True
            except (shmq.Full, shmq.OutOfSpace):
                if not full:
                    say("full")
                full = True
    say("done")


@every_kind
def test_a_producer_goes_on_when_consumers_have_made_room(kind: str, tmp_path: Path) -> None:
    def work(place: Path) -> None:
        with flowing_at(place) as queue, Offspring(persist, queue, 15_000) as producer:
            producer.expect("full")
            numbers = (number_of(queue.get(timeout=PATIENCE)) for _ in range(15_000))
            assert all(number == expected for expected, number in enumerate(numbers))
            producer.expect("done")
            assert queue.qsize() == 0

    on_a_small_disk(work, kind, tmp_path)


def test_a_producer_goes_on_when_somebody_has_made_room_on_the_disk(tmp_path: Path) -> None:
    def work(place: Path) -> None:
        filler = place / "filler"
        filler.write_bytes(b"x" * (3 << 20))
        with flowing_at(place) as queue, Offspring(persist, queue, 2000) as producer:
            producer.expect("full")
            assert queue.qsize() < 1100
            filler.unlink()
            producer.expect("done")
            assert queue.qsize() == 2000
            take(queue, 0, 2000)

    on_a_small_disk(work, "tmpfs", tmp_path)


def put_what_goes(queue: shmq.Queue[Any], producer: int, refusals: int, seed: int, say: Say) -> None:
    """Single ones and batches of all sizes until so many were refused; says which were accepted."""
    numbers = random.Random(seed)
    accepted: list[int] = []
    number = refused = 0
    while refused < refusals:
        count = numbers.choice([1, 1, 1, 10])
        bodies = [body_of(producer, n) for n in range(number, number + count)]
        try:
            if count == 1:
                queue.put(bodies[0], timeout=0)
            else:
                queue.put_many(bodies, timeout=0)
            done = count
        except (shmq.Full, shmq.OutOfSpace) as error:
            done = getattr(error, "accepted", 0)
            refused += 1
        accepted += range(number, number + done)
        number += count
    say(json.dumps(accepted))


def body_of(producer: int, number: int) -> bytes:
    return b"%d %d " % (producer, number) + b"%d" % (number % 10) * (number * 37 % 3000)


@every_kind
def test_each_message_is_accepted_or_not_and_never_half(kind: str, tmp_path: Path, seed: int) -> None:
    def work(place: Path) -> None:
        refusals = 15 if kind == "ext4" else 200  # each of ext4 waits for its journal
        with flowing_at(place) as queue, family() as children:
            children.extend(Offspring(put_what_goes, queue, n, refusals, seed + n) for n in range(3))
            accepted = {n: json.loads(child.line()) for n, child in enumerate(children)}
            seen: dict[int, list[int]] = {n: [] for n in accepted}
            while queue.qsize():
                body = queue.get(timeout=0)
                producer, number, *_ = map(int, body.split(b" ")[:2])
                assert body == body_of(producer, number)
                seen[producer].append(number)
            assert seen == accepted

    on_a_small_disk(work, kind, tmp_path)
