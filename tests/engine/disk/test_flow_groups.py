"""Groups whose messages lie on disk: one after the other, in order, whoever takes them; none keeps the others there.

Shows G1.
"""

import random
import threading
from typing import Any, Literal

import pytest

import shmq
from tests.engine.numbered import number_of, numbered
from tests.support.health import check_sound, reap_the_dead
from tests.support.killed_takers import kill, start_taker, wait_for_results
from tests.support.offspring import Offspring, eventually

LITTLE = 20_000  # bytes in memory
COUNT = 4000
GROUPS = 7
PATIENCE = 120.0
LIMITS: Any = {"max_memory": LITTLE, "max_deaths": 0, "max_attempts": 0, "codec": "bytes"}


def key(number: int) -> str:
    return f"account {number % GROUPS}"


def put_groups(queue: shmq.Queue[Any], numbers: range) -> None:
    for number in numbers:
        headers = {"kind": number % 5}
        queue.put(numbered(number), group=key(number), headers=headers, timeout=PATIENCE)


@pytest.fixture(params=["shared", "sticky"])
def grouping(request: pytest.FixtureRequest) -> Literal["shared", "sticky"]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=[1, 3], ids=["plain", "priorities"])
def flowed(
    request: pytest.FixtureRequest, broker: shmq.Broker, grouping: Literal["shared", "sticky"]
) -> shmq.Queue[Any]:
    queue = broker.queue("backlog", groups=grouping, priorities=request.param, **LIMITS)
    put_groups(queue, range(COUNT))
    assert queue.statistics().flowed
    return queue


def is_in_order_by_group(numbers: list[int]) -> bool:
    last: dict[str, int] = {}
    for number in numbers:
        if last.get(key(number), -1) >= number:
            return False
        last[key(number)] = number
    return True


def test_one_taker_gets_all_of_them_in_the_order_of_the_queue(broker: shmq.Broker, flowed: shmq.Queue[Any]) -> None:
    """Shows R6."""
    assert [number_of(flowed.get(timeout=0)) for _ in range(COUNT)] == list(range(COUNT))
    with pytest.raises(shmq.Empty):
        flowed.get(timeout=0)
    assert not flowed.statistics().flowed
    check_sound(broker, flowed)


def test_a_group_is_with_one_consumer_at_a_time_and_in_order(broker: shmq.Broker, flowed: shmq.Queue[Any]) -> None:
    """Consumers that hold several at once, settle them in any order, and give some back."""
    rng = random.Random(11)
    consumers = [flowed.consumer(prefetch=8) for _ in range(4)]
    held: list[list[shmq.Message[Any]]] = [[] for _ in consumers]
    done: set[int] = set()
    vain: set[int] = set()  # consumers that got nothing, one after the other
    while len(done) < COUNT:
        at = rng.randrange(len(consumers))
        if rng.random() < 0.6 and len(held[at]) < 8:
            try:
                message = consumers[at].receive(timeout=0)
            except shmq.Empty:
                vain.add(at)
                assert any(held) or len(vain) < 4, f"{COUNT - len(done)} are left, nobody has one, and nobody gets one"
                continue
            vain.clear()
            number = number_of(message.body)
            mine, others = key(number), [m for other in range(4) if other != at for m in held[other]]
            assert mine not in {key(number_of(m.body)) for m in others}, "two consumers have one group"
            earlier = range(number % GROUPS, number, GROUPS)
            in_hand = {number_of(m.body) for m in held[at]}
            assert all(n in done or n in in_hand for n in earlier), f"{number} came before an earlier one of its group"
            held[at].append(message)
        elif held[at]:
            message = held[at].pop(rng.randrange(len(held[at])))
            vain.clear()
            if rng.random() < 0.2:
                later = [m for m in held[at] if key(number_of(m.body)) == key(number_of(message.body))]
                for m in sorted(later, key=lambda m: -number_of(m.body)):  # all of the group: it may go to another one
                    held[at].remove(m)
                    m.release()
                message.release()
            else:
                message.ack()
                done.add(number_of(message.body))
    for consumer in consumers:
        consumer.close()
    assert flowed.qsize() == 0
    check_sound(broker, flowed)


def test_a_group_in_somebodys_hands_does_not_keep_others_on_disk(broker: shmq.Broker) -> None:
    """More of it than the ring has slots into which messages come back lies before all others."""
    queue = broker.queue("backlog", groups="shared", **LIMITS)
    for number in range(12_000):
        queue.put(numbered(number), group="hot" if number < 10_000 else f"cold {number % 50}", timeout=PATIENCE)
    with queue.consumer() as hot, queue.consumer() as cold:
        first = hot.receive(timeout=0)
        assert number_of(first.body) == 0
        taken = []
        for _ in range(2000):
            with cold.receive(timeout=0) as message:
                taken.append(number_of(message.body))
        assert taken == list(range(10_000, 12_000))
        with pytest.raises(shmq.Empty):
            cold.receive(timeout=0)
        first.ack()
        with cold.receive(timeout=PATIENCE) as message:
            assert number_of(message.body) == 1
    assert [number_of(queue.get(timeout=0)) for _ in range(2, 10_000)] == list(range(2, 10_000))
    check_sound(broker, queue)


def test_a_group_that_becomes_free_is_found_where_it_was_passed_on_disk(broker: shmq.Broker) -> None:
    queue = broker.queue("backlog", groups="shared", **LIMITS)
    queue.put(numbered(0), group="hot", timeout=PATIENCE)
    queue.put(numbered(1), group="small", timeout=PATIENCE)
    for number in range(2, 6000):
        queue.put(numbered(number), group="hot", timeout=PATIENCE)
    queue.put(numbered(6000), group="small", timeout=PATIENCE)
    put_groups(queue, range(6001, 6401))
    with queue.consumer() as hot, queue.consumer() as small, queue.consumer() as late:
        held = [hot.receive(timeout=0), small.receive(timeout=0)]
        assert [number_of(m.body) for m in held] == [0, 1]
        for number in range(6001, 6401):
            with late.receive(timeout=0) as message:
                assert number_of(message.body) == number
        with pytest.raises(shmq.Empty):
            late.receive(timeout=0)
        held[1].ack()
        with late.receive(timeout=0) as message:
            assert number_of(message.body) == 6000
        held[0].ack()
    check_sound(broker, queue)


@pytest.mark.in_hand
def test_a_consumer_that_waits_gets_what_a_settlement_frees_on_disk(broker: shmq.Broker) -> None:
    queue = broker.queue("backlog", groups="shared", **LIMITS)
    for number in range(8000):
        queue.put(numbered(number), group="one", timeout=PATIENCE)
    taken: list[int] = []

    def wait() -> None:
        with queue.consumer() as consumer, consumer.receive(timeout=PATIENCE) as message:
            taken.append(number_of(message.body))

    with queue.consumer(prefetch=None) as holder:
        held = [holder.receive(timeout=0) for _ in range(500)]
        thread = threading.Thread(target=wait)
        thread.start()
        eventually(lambda: queue._waiters()["asleep"] == 1, "it sleeps")
        for message in held:
            message.ack()
    thread.join(PATIENCE)
    assert taken == [500]


def test_a_selector_and_groups_together_find_what_is_on_disk(
    broker: shmq.Broker, grouping: Literal["shared", "sticky"], flowed: shmq.Queue[Any]
) -> None:
    with flowed.consumer(selector="kind = 3") as some, flowed.consumer() as other:
        with other.receive(timeout=0) as first:
            assert number_of(first.body) == 0
            with some.receive(timeout=0) as message:
                assert number_of(message.body) == 3
        taken = []
        while True:
            try:
                with some.receive(timeout=0) as message:
                    taken.append(number_of(message.body))
            except shmq.Empty:
                break
    wanted = [number for number in range(4, COUNT) if number % 5 == 3]
    if grouping == "sticky":
        wanted = [number for number in wanted if key(number) != key(0)]
    assert taken == wanted
    check_sound(broker, flowed)


def start_worker(queue: shmq.Queue[Any], results: shmq.Queue[Any], seed: int) -> Offspring:
    rng = random.Random(seed)
    return start_taker(queue, results, lambda message: rng.random() < 0.1, prefetch=1)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(3))
def test_consumers_are_killed_and_each_group_stays_in_order(
    broker: shmq.Broker, grouping: Literal["shared", "sticky"], seed: int
) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    queue = broker.queue("backlog", groups=grouping, maxsize=COUNT, **LIMITS)
    results = broker.queue("results", codec="bytes")
    put_groups(queue, range(COUNT))
    children = [start_worker(queue, results, rng.getrandbits(32)) for _ in range(3)]
    kills = 0
    while queue.qsize() != 0:
        wait_for_results(results, queue, rng.randrange(1, 300))
        at = rng.randrange(len(children))
        kill(children[at])
        kills += 1
        reap_the_dead(broker)
        children[at] = start_worker(queue, results, rng.getrandbits(32))
    for child in children:
        kill(child)
    reap_the_dead(broker)
    done = [number_of(results.get(timeout=0)) for _ in range(results.qsize())]
    assert set(done) == set(range(COUNT))
    assert len(done) <= COUNT + kills, "twice is only what was in hand as its taker was killed"
    once = list(dict.fromkeys(done))
    assert is_in_order_by_group(once)
    check_sound(broker, queue, results)
