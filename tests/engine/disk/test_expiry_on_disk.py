"""Messages that expire while they lie on disk: housekeeping finds them there, whoever reads, or nobody."""

import random
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.numbered import number_of, numbered, put_numbers
from tests.support.health import check_empty, check_sound
from tests.support.offspring import Offspring, Say, eventually

LITTLE = 20_000  # bytes in memory, so that a few hundred messages flow
COUNT = 3000
SOON = 0.2
LIMITS: Any = {"max_memory": LITTLE, "codec": "bytes"}


@pytest.fixture
def flowing(broker: shmq.Broker) -> shmq.Queue[Any]:
    return broker.queue("backlog", **LIMITS)


def files(broker_dir: Path) -> list[Path]:
    return [path for path in (broker_dir / "disk").rglob("*") if path.is_file()]


def put_mortals(queue: shmq.Queue[Any], numbers: range, ttl: float = SOON) -> None:
    for number in numbers:
        queue.put(numbered(number), ttl=ttl, timeout=5.0)


def wait_on(path: str, name: str, say: Say) -> None:
    """Sleeps on a queue to which nothing comes: until it is woken for what is due."""
    with shmq.open(path) as broker:
        queue: shmq.Queue[Any] = broker.queue(name)
        say("ready")
        queue.get(timeout=None)
        say("got")


def test_a_queue_that_nobody_reads_frees_its_disk(
    flowing: shmq.Queue[Any], broker: shmq.Broker, broker_dir: Path
) -> None:
    """Another process, which sleeps on another queue, does it; this one only looks at the files. Shows G5."""
    bell: shmq.Queue[Any] = broker.queue("bell")
    with Offspring(wait_on, str(broker_dir), "bell") as sleeper:
        sleeper.expect("ready")
        put_numbers(flowing, range(COUNT))
        assert files(broker_dir)
        flowing.alter(max_ttl=SOON)
        eventually(lambda: not files(broker_dir), "their end")
        eventually(lambda: flowing.statistics().ready == 0, "the end of those in memory, which are younger")
        bell.put("ring")
        sleeper.expect("got")
    seen = flowing.statistics()
    assert (seen.ready, seen.expired, seen.flowed, seen.bytes) == (0, COUNT, False, 0)
    check_empty(broker, flowing)


def test_a_count_says_at_once_what_has_expired_on_disk(flowing: shmq.Queue[Any]) -> None:
    put_mortals(flowing, range(COUNT))
    put_numbers(flowing, range(COUNT, 2 * COUNT))
    eventually(lambda: flowing.qsize() == COUNT, "their end")
    assert [number_of(flowing.get(timeout=0)) for _ in range(COUNT)] == list(range(COUNT, 2 * COUNT))
    assert flowing.statistics().expired == COUNT


@pytest.mark.parametrize("levels", [1, 3])
def test_some_in_the_middle_expire_and_the_others_stay_in_their_order(
    broker: shmq.Broker, seed: int, levels: int
) -> None:
    queue: shmq.Queue[Any] = broker.queue("backlog", priorities=levels, **LIMITS)
    numbers = random.Random(seed)
    stay = []
    for number in range(COUNT):
        ttl = numbers.choice([None, None, SOON, 2 * SOON])
        queue.put(numbered(number), ttl=ttl, timeout=5.0)
        stay += [number] if ttl is None else []
    eventually(lambda: queue.qsize() == len(stay), "the end of the others")
    assert queue.statistics().expired == COUNT - len(stay)
    assert [number_of(queue.get(timeout=5.0)) for _ in stay] == stay
    check_empty(broker, queue)


def test_what_expires_on_disk_goes_to_the_dead_letters_and_frees_the_disk(
    broker: shmq.Broker, broker_dir: Path
) -> None:
    """Shows G5."""
    queue: shmq.Queue[Any] = broker.queue("backlog", dead_letter="late", dead_letter_expired=True, **LIMITS)
    late: shmq.Queue[Any] = broker.queue("late", codec="bytes")
    put_mortals(queue, range(COUNT))
    eventually(lambda: late.qsize() == COUNT, "their burial")
    eventually(lambda: queue.qsize() == 0 and not queue.statistics().flowed, "the end of the flow")
    assert sorted(number_of(late.get(timeout=0)) for _ in range(COUNT)) == list(range(COUNT))
    assert queue.statistics().expired == COUNT
    assert not files(broker_dir)
    check_empty(broker, queue, late)


def test_a_producer_finds_room_that_the_expired_had(broker: shmq.Broker) -> None:
    """`maxsize` counts what is on disk."""
    queue: shmq.Queue[Any] = broker.queue("backlog", maxsize=COUNT, **LIMITS)
    put_numbers(queue, range(COUNT))
    with pytest.raises(shmq.Full):
        queue.put(numbered(0), timeout=0)
    queue.alter(max_ttl=SOON)
    queue.put(numbered(COUNT), timeout=60.0)
    eventually(lambda: queue.statistics().expired == COUNT + 1, "their end")
    check_sound(broker, queue)


def test_join_ends_when_all_have_expired_on_disk(flowing: shmq.Queue[Any]) -> None:
    put_mortals(flowing, range(COUNT))
    flowing.join(timeout=60.0)
    assert flowing.statistics().expired == COUNT


def test_a_longer_max_ttl_holds_on_disk_as_well(flowing: shmq.Queue[Any]) -> None:
    flowing.alter(max_ttl=3600)
    put_numbers(flowing, range(COUNT))
    assert flowing.qsize() == COUNT
    flowing.alter(max_ttl=SOON)
    eventually(lambda: flowing.qsize() == 0, "their end")
    flowing.alter(max_ttl=3600)
    put_numbers(flowing, range(COUNT))
    assert flowing.qsize() == COUNT


def look_again_and_again(path: str, say: Say) -> None:
    with shmq.open(path) as broker:
        queue: shmq.Queue[Any] = broker.queue("backlog")
        say("ready")
        while True:
            queue.qsize()


def test_whoever_looks_for_the_expired_may_be_killed(broker: shmq.Broker, broker_dir: Path, seed: int) -> None:
    """A message that expires is gone once, each other one is there once. Shows R7, G5."""
    queue: shmq.Queue[Any] = broker.queue("backlog", max_deaths=0, **LIMITS)
    numbers = random.Random(seed)
    stay: list[int] = []
    put = 0
    for _ in range(12):
        with Offspring(look_again_and_again, str(broker_dir)) as looker:
            looker.expect("ready")
            for number in range(put, put + numbers.randrange(300, 600)):
                ttl = numbers.choice([None, 0.001, 0.01, 0.05])
                queue.put(numbered(number), ttl=ttl, timeout=60.0)
                stay += [number] if ttl is None else []
                put += 1
            looker.kill()
    eventually(lambda: queue.qsize() == len(stay), "the end of the others")
    assert queue.statistics().ready == len(stay)
    assert [number_of(queue.get(timeout=5.0)) for _ in stay] == stay
    with pytest.raises(shmq.Empty):
        queue.get(timeout=0)
    check_sound(broker, queue)


def test_a_look_at_what_is_on_disk_shows_the_limit_of_its_queue(flowing: shmq.Queue[Any]) -> None:
    """A message of its own time to live ends with the earlier one of the two."""
    flowing.alter(max_ttl=1e6)
    for number in range(COUNT):
        flowing.put(numbered(number), ttl=2e6 if number % 2 else None, timeout=5.0)
    assert flowing.statistics().flowed
    lives = [m.expires_at - m.enqueued_at if m.expires_at is not None else None for m in flowing.browse()]
    assert lives == [pytest.approx(1e6)] * COUNT


def test_what_has_expired_on_disk_is_not_copied(flowing: shmq.Queue[Any], broker: shmq.Broker) -> None:
    other: shmq.Queue[Any] = broker.queue("other", codec="bytes")
    put_numbers(flowing, range(COUNT))
    flowing.alter(max_ttl=1e-6)
    assert flowing.move(other, copy=True) == 0
    assert other.qsize() == 0
