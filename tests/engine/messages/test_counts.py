"""Counts are exact at rest, and ids are unique over processes and for ever."""

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child, eventually
from tests.engine.conftest import Taker


@pytest.mark.memory
def test_counts_of_a_queue_say_what_happened(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    """Shows S111."""
    queue.put_many(["a", "b", "c", "d", b"e" * 1000])
    assert queue.get(timeout=0) == "a"
    queue.receive(timeout=0).ack()
    queue.receive(timeout=0).release()
    queue.receive(timeout=0).retry()
    queue.receive(timeout=0).reject()
    held = queue.receive(timeout=0)
    s = queue.statistics()
    assert (s.name, s.ready, s.unsettled, s.put, s.acked, s.dead_lettered) == ("jobs", 1, 1, 5, 2, 1)
    assert (s.delivered, s.redelivered, s.deaths) == (6, 2, 0)
    assert (s.first_position, s.next_position) == (3, 5)
    assert s.bytes == 1 + 1000
    assert s.memory_bytes >= s.bytes
    assert s.oldest_age is not None
    assert 0 <= s.oldest_age < 60
    assert (s.delayed, s.disk_bytes, s.flowed, s.expired, s.dropped, s.shut_down) == (0, 0, False, 0, 0, False)
    assert (s.consumers, s.producers_waiting) == (1, 0)
    held.ack()
    assert broker.statistics().queues["jobs"] == queue.statistics() or s.oldest_age is not None


def test_a_burial_by_the_next_taker_is_no_delivery(broker: shmq.Broker, take: Taker) -> None:
    queue = broker.queue("mortal", max_deaths=1)
    queue.put("poison")
    with Child("m = shmq.open(sys.argv[1]).queue('mortal').receive(); say('has'); listen()", broker.path) as child:
        assert child.line() == "has"
        child.kill()
    assert queue.statistics().ready == 1  # who asks takes back what the dead had
    with pytest.raises(shmq.Empty):
        take(queue, 0)
    s = queue.statistics()
    assert (s.delivered, s.redelivered, s.deaths, s.dead_lettered, s.ready) == (1, 0, 1, 1, 0)


def test_a_count_notices_that_a_process_has_died(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    queue.put_many(["a", "b", "c"])
    with Child("m = shmq.open(sys.argv[1]).queue('jobs').receive(); say('has'); listen()", broker.path) as child:
        assert child.line() == "has"
        assert queue.qsize() == 2
        child.kill()
        looks = 0
        while queue.qsize() != 3:
            looks += 1
            assert looks < 500, "what the killed one had is not counted"  # some 1,000 calls of any kind would find it
            time.sleep(0.02)


def test_an_empty_queue_has_no_oldest_and_no_first(queue: shmq.Queue[Any]) -> None:
    s = queue.statistics()
    assert (s.oldest_age, s.first_position, s.next_position, s.bytes) == (None, None, 0, 0)


def test_counts_of_the_broker(broker_dir: Path, broker: shmq.Broker) -> None:
    broker.queue("b").put("x")
    broker.queue("a")
    with Child("b = shmq.open(sys.argv[1]); m = b.queue('b').receive(); say('has'); listen()", broker_dir) as child:
        assert child.line() == "has"
        s = broker.statistics()
        assert (s.path, s.version, s.memory) == (str(broker_dir), shmq.__version__, 16 << 20)
        assert 0 < s.memory_used <= s.memory
        assert 0 < s.memory_reserved <= s.memory
        assert (s.disk_used, s.log_bytes) == (0, 0)
        assert list(s.queues) == ["a", "b"]
        found = {process.pid: process for process in s.processes}
        assert set(found) == {os.getpid(), child.pid}
        assert (found[child.pid].unsettled, found[child.pid].state) == (1, "live")
        with pytest.raises(TypeError):
            s.queues["c"] = s.queues["b"]  # type: ignore[index]


def test_an_anonymous_broker_has_no_path() -> None:
    with shmq.open(memory="8MiB") as broker:
        assert broker.path is None
        assert broker.statistics().path is None


def test_counts_are_exact_after_the_death_of_a_process_in_traffic(broker_dir: Path, broker: shmq.Broker) -> None:
    """Shows R20, G2."""
    queue = broker.queue("jobs", maxsize=1000, max_deaths=0)
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
say("runs")
n = 0
while True:
    q.put(n)
    with q.receive(timeout=10):
        pass
    n += 1
"""
    for _ in range(5):
        with Child(program, broker_dir) as child:
            assert child.line() == "runs"
            for n in range(200):
                queue.put(n)
                queue.get(timeout=10)
            child.kill()
        eventually(lambda: len(broker.statistics().processes) == 1, "the dead one reaped")
        s = queue.statistics()
        assert s.unsettled == 0
        assert len(queue.get_many(1000, timeout=0)) == s.ready
        queue.put_many(range(1000), timeout=0)
        with pytest.raises(shmq.Full) as caught:
            queue.put("x", timeout=0)
        assert caught.value.used == 1000
        assert queue.purge() == 1000


def has_died(queue: shmq.Queue[Any]) -> bool:
    return queue.statistics().deaths == 1


def test_a_queue_counts_from_zero_wherever_another_one_was_before(broker_dir: Path, broker: shmq.Broker) -> None:
    """A deleted queue leaves its entry of the directory, with the counters of each process, to the next queue."""
    doomed = broker.queue("doomed", max_deaths=1)
    doomed.put_many([*"abcd"])
    program = """
q = shmq.open(sys.argv[1]).queue("doomed")
q.get()
m = q.receive()
say("has it")
listen()
"""
    with Child(program, broker_dir) as child:
        assert child.line() == "has it"
        child.kill()
    eventually(partial(has_died, doomed), "the dead one noticed")
    with doomed.consumer() as consumer:
        consumer.receive(timeout=0).retry()
    place = doomed._identity()[0]
    doomed.delete()
    doomed, consumer = broker.queue("first"), None  # type: ignore[assignment]  # who still has it keeps its place
    for n in range(3):
        queue: shmq.Queue[Any] = broker.queue(f"next {n}")
        s = queue.statistics()
        assert (s.put, s.delivered, s.acked, s.redelivered, s.deaths, s.dead_lettered) == (0, 0, 0, 0, 0, 0)
        if queue._identity()[0] == place:
            return
    raise AssertionError("the entry is not used again")


def test_ones_own_put_is_seen_at_once(queue: shmq.Queue[Any]) -> None:
    for n in range(200):
        assert queue.qsize() == n
        queue.put(n)


def test_the_first_message_of_a_broker_has_the_id_1(queue: shmq.Queue[Any]) -> None:
    assert [queue.put(n) for n in range(5)] == [1, 2, 3, 4, 5]
    with shmq.open(memory="8MiB") as other:
        assert other.queue("jobs").put("a") == 1


def test_ids_are_unique_over_processes_and_queues(broker_dir: Path, broker: shmq.Broker) -> None:
    program = """
b = shmq.open(sys.argv[1])
for n in range(300):
    b.queue(f"q{n % 3}").put(n)
"""
    children = [Child(program, broker_dir) for _ in range(3)]
    for n in range(300):
        broker.queue(f"q{n % 3}").put(n)
    for child in children:
        child.end()
    ids = [m.id for queue in broker.queues() for m in queue.browse()]
    assert len(ids) == len(set(ids)) == 1200


@pytest.mark.in_hand
def test_positions_grow_by_one_in_the_order_of_delivery(queue: shmq.Queue[Any]) -> None:
    """Shows S1."""
    queue.put_many(range(3000))
    positions = []
    for _ in range(3):
        for m in queue.receive_many(1000, timeout=0):
            positions.append(m.position)
            m.ack()
    assert positions == list(range(3000))


def test_queues_are_equal_by_name_and_broker(broker: shmq.Broker) -> None:
    assert broker.queue("a") == broker.queue("a")
    assert broker.queue("a") != broker.queue("b")
    assert len({broker.queue("a"), broker.queue("a")}) == 1
    assert bool(broker.queue("a"))
    with pytest.raises(TypeError):
        len(broker.queue("a"))  # type: ignore[arg-type]


def test_queues_are_listed_by_name(broker: shmq.Broker) -> None:
    for name in ("c", "a", "b"):
        broker.queue(name)
    assert [queue.name for queue in broker.queues()] == ["a", "b", "c"]
    broker.queue("b").delete()
    assert [queue.name for queue in broker.queues()] == ["a", "c"]


@pytest.mark.in_hand
def test_a_long_life_of_wraps_and_stragglers_keeps_counts_and_places(broker: shmq.Broker) -> None:
    """Many laps of the smallest ring, while some messages stay for long. Shows G5."""
    queue = broker.queue("jobs", maxsize=1000)
    stragglers = []
    for n in range(20_000):
        queue.put(n, timeout=0)
        m = queue.receive(timeout=0)
        assert m.body == n
        if n % 1000 == 0:
            stragglers.append(m)
        else:
            m.ack()
    s = queue.statistics()
    assert (s.ready, s.unsettled, s.first_position) == (0, 20, 0)
    assert [m.body for m in queue.browse()] == list(range(0, 20_000, 1000))
    for m in reversed(stragglers):
        m.release()
    assert queue.get_many(100, timeout=0) == list(range(0, 20_000, 1000))
    queue.join(timeout=0)
