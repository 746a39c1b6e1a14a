"""Many entries at once from a queue into one whose positions say which they are, and away from there by position."""

import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.core.queue import Subscription
from shmq.engine.message.selection import loaded
from tests.support.health import check_sound, usage
from tests.support.offspring import Offspring, Say, eventually, family
from tests.support.segment_bytes import SegmentBytes

ALL = (1 << 40, 1 << 40)  # limits that end nothing

Queue = shmq.Queue[Any]


@pytest.fixture
def here(broker: shmq.Broker) -> Queue:
    return broker.queue("here")


@pytest.fixture
def there(broker: shmq.Broker) -> Queue:
    return broker.queue("there", max_attempts=0, max_deaths=0)


def bodies(queue: Queue) -> list[Any]:
    return [m.body for m in queue.browse()]


def test_entries_are_claimed_in_their_order_within_limits(here: Queue, there: Queue) -> None:
    here.put_many(["a", "bb", "ccc", "dddd"])
    assert here._claim(there, 1, 100, None) == (1, 1, False)
    assert here._claim(there, 100, 1, None) == (1, 2, False)  # one entry at least
    assert here._claim(there, 100, 6, None) == (1, 3, False)
    assert here._claim(there, *ALL, None) == (1, 4, False)
    assert here._claim(there, *ALL, None) == (0, 0, False)
    assert (bodies(there), bodies(here)) == (["a", "bb", "ccc", "dddd"], [])
    assert [m.position for m in there.browse()] == [0, 1, 2, 3]


def test_the_most_important_are_claimed_first_and_stay_so_important(broker: shmq.Broker, there: Queue) -> None:
    here = broker.queue("ranked", priorities=10)
    for priority in (0, 9, 4, 9):
        here.put(f"p{priority}", priority=priority)
    assert here._claim(there, 3, 100, None) == (3, 6, False)
    assert [(m.body, m.priority) for m in there.browse()] == [("p9", 9), ("p9", 9), ("p4", 4)]
    assert bodies(here) == ["p0"]


def test_a_subscription_chooses(here: Queue, there: Queue) -> None:
    odd = Subscription(loaded("odd"))
    for n in range(10):
        here.put(n, headers={"odd": n % 2 == 1})
    assert here._claim(there, 2, 1 << 20, odd)[0] == 2
    assert here._claim(there, *ALL, odd)[0] == 3
    assert bodies(there) == [1, 3, 5, 7, 9]
    assert bodies(here) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("size", [3, 100_000])
def test_an_entry_is_there_what_it_was_but_for_its_times_and_attempts(here: Queue, there: Queue, size: int) -> None:
    sent: list[Any] = ["t" * size, b"b" * size, {"n": [1] * size}]
    ids = [here.put(body, headers={"n": n}, ttl=1000) for n, body in enumerate(sent)]
    here.receive(timeout=0).retry("once more")
    before = [m.enqueued_at for m in here.browse()]
    assert here._claim(there, *ALL, None)[0] == 3
    claimed = list(there.browse())
    assert [m.body for m in claimed] == sent
    assert [m.id for m in claimed] == ids
    assert [m.enqueued_at for m in claimed] == before
    assert [dict(m.headers) for m in claimed] == [{"n": n} for n in range(3)]
    assert [(m.expires_at, m.delivery_count, m.redelivered) for m in claimed] == [(None, 0, False)] * 3
    assert there.put("next") > max(ids)
    assert (here.statistics().unsettled, there.statistics().ready) == (0, 4)


def test_groups_contents_and_deaths_go_along(broker: shmq.Broker, there: Queue) -> None:
    here = broker.queue("grouped", groups="shared")
    here.put({"id": 7}, group="g", headers={"source": "web"})
    here.receive(timeout=0).reject("no use")
    dead = broker.queue("grouped.dead")
    assert next(dead.browse()).death is not None
    assert dead._claim(there, *ALL, None)[0] == 1
    (claimed,) = there.browse()
    assert (claimed.body, dict(claimed.headers), claimed.group) == ({"id": 7}, {"source": "web"}, "g")
    assert claimed.death is not None
    assert (claimed.death.queue, claimed.death.error) == ("grouped", "no use")


def test_what_is_delayed_held_or_over_stays_or_goes_its_own_way(broker: shmq.Broker, there: Queue) -> None:
    here = broker.queue("mortal", dead_letter_expired=True, max_attempts=1)
    here.put("over", ttl=0)
    here.put("later", delay=1000)
    here.put("held")
    here.put("free")
    held = next(m for m in [here.receive(timeout=0)] if m.body == "held")
    assert here._claim(there, *ALL, None) == (1, 4, False)
    assert bodies(there) == ["free"]
    held.ack()
    assert here.statistics().delayed == 1
    assert bodies(broker.queue("mortal.dead")) == ["over"]


@pytest.mark.memory
def test_damaged_entries_stay_with_their_queue_and_others_pass_them(
    broker: shmq.Broker, here: Queue, there: Queue
) -> None:
    here.put_many(["a", "b", "c"])
    with SegmentBytes.of(broker) as memory:
        memory.flip(memory.body(here, 1), 0)
        assert here._claim(there, *ALL, None)[0] == 2
        assert bodies(there) == ["a", "c"]
        memory.flip(memory.body(here, 1), 0)
    assert bodies(here) == ["b"]


def test_a_full_target_ends_a_claim_and_is_an_error_when_nothing_went(broker: shmq.Broker, here: Queue) -> None:
    there: Queue = broker.queue("small", maxsize=3)
    here.put_many(range(5))
    assert here._claim(there, *ALL, None) == (3, 3, True)
    with pytest.raises(shmq.Full, match="small"):
        here._claim(there, *ALL, None)
    first = next(here.browse())
    assert (first.body, first.redelivered) == (3, False)
    there.purge()
    assert here._claim(there, *ALL, None) == (2, 2, False)
    assert here.statistics().unsettled == 0


def test_full_memory_ends_a_claim(memory_only: shmq.Broker) -> None:
    broker = memory_only
    here, there = broker.queue("here"), broker.queue("there", max_attempts=0, max_deaths=0)
    with pytest.raises((shmq.Full, shmq.OutOfSpace)) as full:
        here.put_many([b"b" * 1_000_000] * 100, timeout=0)
    sent = full.value.accepted
    with pytest.raises((shmq.Full, shmq.OutOfSpace)):
        here._claim(there, *ALL, None)
    here.receive(timeout=0).ack()
    assert here._claim(there, *ALL, None)[0] == sent - 1  # there is room for one copy at a time
    assert there._discard_below(1 << 40) == sent - 1
    assert usage(broker)["blocks_used"] == 0


def test_unfit_targets_are_refused(broker: shmq.Broker, here: Queue, there: Queue, tmp_path: Path) -> None:
    here.put("a")
    for unfit in (here, broker.queue("here")):
        with pytest.raises(ValueError, match="another queue"):
            here._claim(unfit, *ALL, None)
    with shmq.open(tmp_path / "other", memory="16MiB") as other, pytest.raises(ValueError, match="same broker"):
        here._claim(other.queue("there"), *ALL, None)
    with pytest.raises(TypeError):
        here._claim(there, *ALL, "odd")  # type: ignore[arg-type]
    there.shutdown()
    with pytest.raises(shmq.ShutDown, match="there"):
        here._claim(there, *ALL, None)
    there.delete()
    with pytest.raises(shmq.NotFound, match="there"):
        here._claim(there, *ALL, None)
    assert bodies(here) == ["a"]
    here.delete()
    with pytest.raises(shmq.NotFound, match="here"):
        here._claim(there, *ALL, None)


def test_a_consumer_that_is_exclusive_keeps_claims_out(here: Queue, there: Queue) -> None:
    here.put("a")
    with here.consumer(exclusive=True), pytest.raises(shmq.ConsumerRefused, match="here"):
        here._claim(there, *ALL, None)
    assert here._claim(there, *ALL, None)[0] == 1


def test_a_handler_that_raises_ends_a_long_claim(broker: shmq.Broker) -> None:
    here: Queue = broker.queue("many", maxsize=20_000)
    there: Queue = broker.queue("all", maxsize=20_000)
    here.put_many(range(20_000))

    main = threading.get_ident()

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    def interrupt() -> None:
        eventually(there.qsize, "the first entry is there")
        signal.pthread_kill(main, signal.SIGUSR1)

    def claim_and_wait() -> None:
        watcher.start()
        here._claim(there, *ALL, None)
        watcher.join()

    before = signal.signal(signal.SIGUSR1, stop)
    watcher = threading.Thread(target=interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            claim_and_wait()
    finally:
        watcher.join()
        signal.signal(signal.SIGUSR1, before)
    assert here._claim(there, *ALL, None)[2] is False
    assert bodies(there) == list(range(20_000))


def test_threads_claim_at_the_same_time(broker: shmq.Broker) -> None:
    queues: list[Queue] = [broker.queue(name, maxsize=20_000) for name in "abc"]
    for queue in queues[:2]:
        queue.put_many(range(10_000))
    claimers = [threading.Thread(target=queue._claim, args=(queues[2], *ALL, None)) for queue in queues[:2]]
    for claimer in claimers:
        claimer.start()
    for claimer in claimers:
        claimer.join()
    assert Counter(bodies(queues[2])) == Counter([*range(10_000)] * 2)


def test_claims_into_a_queue_that_flows_go_on_beside_each_other(broker: shmq.Broker) -> None:
    """Each makes room by the disk, which the other may take: none of them is told that there is none."""
    queues: list[Queue] = [broker.queue(name, maxsize=3_000, max_memory=1) for name in "abc"]
    for queue in queues[:2]:
        queue.put_many(range(1_500))
    found: list[tuple[int, int, bool]] = []
    claimers = [
        threading.Thread(target=lambda queue=queue: found.append(queue._claim(queues[2], *ALL, None)))
        for queue in queues[:2]
    ]
    for claimer in claimers:
        claimer.start()
    for claimer in claimers:
        claimer.join()
    assert [(entries, full) for entries, _, full in found] == [(1_500, False)] * 2
    assert Counter(bodies(queues[2])) == Counter([*range(1_500)] * 2)


# ---- discarding -----------------------------------------------------------------------------------------------------


def test_what_lies_before_a_position_is_discarded_once(here: Queue) -> None:
    here.put_many(range(10))
    assert here._discard_below(0) == 0
    assert here._discard_below(4) == 4
    assert here._discard_below(4) == 0
    assert bodies(here) == [4, 5, 6, 7, 8, 9]
    held = here.receive(timeout=0)
    assert here._discard_below(6) == 1
    held.release()
    assert here._discard_below(1 << 47) == 5
    here.put("later")
    assert bodies(here) == ["later"]
    assert here.statistics().unsettled == 0


def test_positions_of_several_levels_are_not_discarded(broker: shmq.Broker) -> None:
    with pytest.raises(ValueError, match="levels"):
        broker.queue("ranked", priorities=3)._discard_below(5)


@pytest.mark.memory
def test_memory_is_back_when_a_discard_returns(broker: shmq.Broker, here: Queue) -> None:
    here.put_many([b"x" * 500_000] * 8)
    assert here._discard_below(5) == 5
    assert usage(broker)["blocks_used"] == 3
    assert here._discard_below(8) == 3
    assert usage(broker)["blocks_used"] == 0


# ---- among others ---------------------------------------------------------------------------------------------------

NUMBERS = 6_000
PRODUCERS = 2


def produce(queue: Queue, first: int, _say: Say) -> None:
    for number in range(first, first + NUMBERS):
        queue.put(b"%d " % number * (200 if number % 50 == 0 else 1))


def consume(queue: Queue, say: Say) -> None:
    while True:
        try:
            with queue.receive(timeout=10) as m:
                number = m.body.split()[0].decode()
            say(number)
        except shmq.ShutDown:
            return


def claimed(here: Queue, there: Queue, limit: int) -> int:
    """How many; none also where messages on disk have no slot in memory to come to, since others have all in hand."""
    try:
        return int(here._claim(there, limit, 1 << 20, None)[0])
    except shmq.Full:
        return 0


def claim(here: Queue, there: Queue, say: Say) -> None:
    say("here")
    while not here.broker.queue("stop").qsize():
        if not claimed(here, there, 100):
            time.sleep(0.0005)


def test_among_producers_consumers_and_claimers_nothing_is_lost_or_doubled(broker_dir: Path) -> None:
    """Shows G2."""
    with shmq.open(broker_dir, memory="64MiB") as broker, family() as children:
        here: Queue = broker.queue("here", maxsize=1_000)
        there: Queue = broker.queue("there", maxsize=PRODUCERS * NUMBERS)
        broker.queue("stop")
        claimers = [Offspring(claim, here, there) for _ in range(2)]
        consumer = Offspring(consume, here)
        children.extend([*claimers, consumer])
        for claimer in claimers:
            claimer.expect("here")
        producers = [Offspring(produce, here, n * NUMBERS) for n in range(PRODUCERS)]
        children.extend(producers)
        for producer in producers:
            assert producer.wait() == 0
        here.join(timeout=60)
        broker.queue("stop").put("now")
        for claimer in claimers:
            assert claimer.wait() == 0
        here.shutdown()
        assert consumer.wait() == 0
        moved = [int(body.split()[0]) for body in bodies(there)]
        consumed: list[int] = []
        while len(consumed) + len(moved) < PRODUCERS * NUMBERS:
            consumed.append(int(consumer.line()))
        assert Counter(moved + consumed) == dict.fromkeys(range(PRODUCERS * NUMBERS), 1)
        check_sound(broker, here, there)


def test_one_claimer_keeps_the_order_of_each_producer(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="64MiB") as broker, family() as children:
        here: Queue = broker.queue("here", maxsize=1_000)
        there: Queue = broker.queue("there", maxsize=PRODUCERS * NUMBERS)
        children.extend(Offspring(produce, here, n * NUMBERS) for n in range(PRODUCERS))
        moved = 0
        while moved < PRODUCERS * NUMBERS:
            moved += claimed(here, there, 500)
        numbers = [int(body.split()[0]) for body in bodies(there)]
        for n in range(PRODUCERS):
            mine = [number for number in numbers if number // NUMBERS == n]
            assert mine == list(range(n * NUMBERS, (n + 1) * NUMBERS))
        for producer in children:
            assert producer.wait() == 0
        check_sound(broker, here, there)
