"""Consumers that want some messages only, beside a backlog on disk: they get theirs, wherever they are, in order."""

import random
import threading
from typing import Any

import pytest

import shmq
from tests.engine.numbered import number_of, numbered
from tests.support.health import check_sound, reap_the_dead
from tests.support.killed_takers import kill, start_taker, wait_for_results

LITTLE = 20_000  # bytes in memory
COUNT = 4000
KINDS = 5
PATIENCE = 120.0


@pytest.fixture(params=[1, 3], ids=["plain", "priorities"])
def flowed(request: pytest.FixtureRequest, broker: shmq.Broker) -> shmq.Queue[Any]:
    limits: Any = {"max_memory": LITTLE, "maxsize": 2 * COUNT, "max_bytes": "1MiB"}
    queue = broker.queue("backlog", priorities=request.param, max_deaths=0, codec="bytes", **limits)
    put_kinds(queue, range(COUNT))
    assert queue.statistics().flowed
    return queue


def put_kinds(queue: shmq.Queue[Any], numbers: range) -> None:
    for number in numbers:
        queue.put(numbered(number), headers={"number": number, "kind": number % KINDS}, timeout=PATIENCE)


def take_all(consumer: shmq.Consumer[Any]) -> list[int]:
    taken = []
    while True:
        try:
            with consumer.receive(timeout=0) as message:
                taken.append(number_of(message.body))
        except shmq.Empty:
            return taken


def test_one_that_lies_deepest_is_found(broker: shmq.Broker, flowed: shmq.Queue[Any]) -> None:
    with flowed.consumer(selector=f"number = {COUNT - 1}") as late, flowed.consumer(selector="number = 2000") as amid:
        assert take_all(amid) == [2000]
        assert take_all(late) == [COUNT - 1]
    left = [number for number in range(COUNT - 1) if number != 2000]
    assert [number_of(m.body) for m in flowed.browse()] == left
    assert (flowed.qsize(), flowed.statistics().bytes > 58 * len(left)) == (len(left), True)
    assert [number_of(flowed.get(timeout=0)) for _ in left] == left
    check_sound(broker, flowed)


def test_each_kind_comes_in_order_to_who_wants_it(broker: shmq.Broker, flowed: shmq.Queue[Any]) -> None:
    """Shows G1."""
    consumers = [flowed.consumer(selector=f"kind = {kind}") for kind in range(KINDS)]
    taken: list[list[int]] = [[] for _ in consumers]
    rng = random.Random(7)
    for _ in range(COUNT):
        kind = rng.randrange(KINDS)
        try:
            with consumers[kind].receive(timeout=0) as message:
                taken[kind].append(number_of(message.body))
        except shmq.Empty:
            assert len(taken[kind]) == COUNT // KINDS
    for kind, consumer in enumerate(consumers):
        taken[kind] += take_all(consumer)
        assert taken[kind] == list(range(kind, COUNT, KINDS))
        consumer.close()
    assert (flowed.qsize(), flowed.statistics().bytes) == (0, 0)
    with pytest.raises(shmq.Empty):
        flowed.get(timeout=0)
    assert not flowed.statistics().flowed
    check_sound(broker, flowed)


@pytest.mark.in_hand
def test_what_comes_back_is_next_for_its_kind_and_in_its_place_for_others(flowed: shmq.Queue[Any]) -> None:
    """Shows G1."""
    with flowed.consumer(selector="kind = 3", prefetch=100) as consumer:
        held = [consumer.receive(timeout=0) for _ in range(100)]
        for message in held[::2]:
            message.release()
        for message in held[1::2]:
            message.ack()
        with consumer.receive(timeout=0) as again:
            assert number_of(again.body) == 3
            assert again.redelivered
    left = [n for n in range(COUNT) if not (n % KINDS == 3 and n < 500 and (n == 3 or n // KINDS % 2 == 1))]
    assert [number_of(flowed.get(timeout=0)) for _ in left] == left


def test_one_that_waits_gets_what_is_put_behind_all_of_it(flowed: shmq.Queue[Any]) -> None:
    taken: list[int] = []

    def wait() -> None:
        with flowed.consumer(selector="kind = 'late'") as consumer, consumer.receive(timeout=PATIENCE) as message:
            taken.append(number_of(message.body))

    thread = threading.Thread(target=wait)
    thread.start()
    put_kinds(flowed, range(COUNT, COUNT + 500))
    flowed.put(numbered(9), headers={"kind": "late"}, timeout=PATIENCE)
    thread.join(PATIENCE)
    assert taken == [9]


def test_one_for_which_nothing_is_there_is_told_so_and_of_a_shutdown(flowed: shmq.Queue[Any]) -> None:
    with flowed.consumer(selector="kind = 'none'") as consumer:
        with pytest.raises(shmq.Empty):
            consumer.receive(timeout=0)
        flowed.shutdown()
        with pytest.raises(shmq.ShutDown):
            consumer.receive(timeout=PATIENCE)
    with flowed.consumer(selector="kind = 4") as consumer:
        for number in range(4, COUNT, KINDS):
            with consumer.receive(timeout=0) as message:
                assert number_of(message.body) == number
        with pytest.raises(shmq.ShutDown):
            consumer.receive(timeout=PATIENCE)


def test_what_expired_on_disk_is_not_delivered_by_itself(broker: shmq.Broker) -> None:
    queue = broker.queue("brief", max_memory=LITTLE, codec="bytes")
    for number in range(2000):
        ttl = 0.001 if number % 2 else None
        queue.put(numbered(number), headers={"kind": number % 4}, ttl=ttl, timeout=PATIENCE)
    with queue.consumer(selector="kind = 1 OR kind = 2") as consumer:
        assert take_all(consumer) == list(range(2, 2000, 4))
    assert [number_of(queue.get(timeout=0)) for _ in range(500)] == list(range(0, 2000, 4))
    with pytest.raises(shmq.Empty):
        queue.get(timeout=0)
    assert queue.statistics().expired == 1000


def comes_back_once(message: shmq.Message[Any]) -> bool:
    return number_of(message.body) % 7 == 0 and not message.redelivered


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(4))
def test_takers_of_all_kinds_are_killed_and_nothing_is_lost(broker: shmq.Broker, seed: int) -> None:
    """Shows G5."""
    print(f"seed {seed}")
    rng = random.Random(seed)
    queue = broker.queue("backlog", max_memory=LITTLE, maxsize=COUNT, max_deaths=0, max_attempts=0, codec="bytes")
    results = broker.queue("results", codec="bytes")
    put_kinds(queue, range(COUNT))
    selectors = ["kind = 1", "kind = 2 OR number > 3000", ""]  # the last one wants all
    for _ in range(12):
        chosen = ("", *rng.choices(selectors, k=2))
        children = [start_taker(queue, results, comes_back_once, selector=selector or None) for selector in chosen]
        wait_for_results(results, queue, rng.randrange(1, 300))
        for child in children:
            kill(child)
        reap_the_dead(broker)
    rest = []
    while True:
        try:
            rest.append(number_of(queue.get(timeout=0)))
        except shmq.Empty:
            break
    done = [number_of(results.get(timeout=0)) for _ in range(results.qsize())]
    assert set(rest) | set(done) == set(range(COUNT))
    assert len(rest) == len(set(rest))
    assert len(rest) + len(done) <= COUNT + 36, "twice is only what was in hand as its taker was killed"
    assert queue.qsize() == 0
    check_sound(broker, queue, results)
