"""Full queues: who puts waits, is refused at once, or the oldest goes for the newest."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child, eventually
from tests.support.offspring import Offspring, Say


def test_reject_is_full_at_once_whatever_the_timeout(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=2, overflow="reject")
    queue.put_many(["a", "b"])
    loan = queue.loan(5)
    with pytest.raises(shmq.Full) as caught:
        queue.put("c")
    assert (caught.value.resource, caught.value.limit) == ("maxsize", 2)
    assert 'alter(overflow="wait") and put with a timeout' in caught.value.remedy
    with pytest.raises(shmq.Full):
        queue.put({"c": 1}, timeout=60)
    with pytest.raises(shmq.Full):
        queue.put(b"c" * 100_000)
    with pytest.raises(shmq.Full):
        loan.commit()
    loan.abandon()
    queue.get()
    with pytest.raises(shmq.Full) as caught:
        queue.put_many(["c", "d", "e"])
    assert caught.value.accepted == 1
    assert queue.get_many(5, timeout=0) == ["b", "c"]


def test_a_queue_that_rejects_by_bytes_says_so(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", codec="bytes", max_bytes=10, overflow="reject")
    queue.put(bytes(8))
    with pytest.raises(shmq.Full) as caught:
        queue.put(bytes(3))
    assert caught.value.resource == "max_bytes"
    assert "longer timeout" not in caught.value.remedy
    queue.alter(overflow="wait")
    with pytest.raises(shmq.Full, match="wait with a longer timeout"):
        queue.put(bytes(3), timeout=0)


def test_the_oldest_goes_for_the_newest_and_is_counted(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=3, overflow="drop_oldest")
    for n in range(10):
        queue.put(n, timeout=0)
    queue.put_many(range(10, 20), timeout=0)
    with queue.loan(5, timeout=0) as loan:
        loan.view[:] = b"hello"
    queue.put(b"x" * 200_000, timeout=0)
    statistics = queue.statistics()
    assert (statistics.ready, statistics.put, statistics.dropped) == (3, 22, 19)
    assert queue.get_many(5, timeout=0) == [19, b"hello", b"x" * 200_000]


def test_as_many_of_the_oldest_go_as_the_bytes_of_the_newest_need(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", codec="bytes", max_bytes=100, overflow="drop_oldest")
    for n in range(10):
        queue.put(bytes([n]) * 10)
    queue.put(bytes(25), timeout=0)
    assert queue.statistics().dropped == 3
    queue.put(bytes(5000), timeout=0)
    assert queue.statistics().dropped == 11
    assert queue.get_many(5, timeout=0) == [bytes(5000)]


def test_one_that_a_consumer_holds_is_taken_from_it(broker_dir: Path, broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=1, overflow="drop_oldest")
    queue.put("old")
    program = """
m = shmq.open(sys.argv[1]).queue("jobs").receive()
say(m.body)
listen()
try:
    m.ack()
except shmq.SettlementError as error:
    say(error)
"""
    with Child(program, broker_dir) as child:
        assert child.line() == "old"
        queue.put("new", timeout=0)
        child.tell("ack")
        assert "was taken away before it was acked: its queue was full, and drops its oldest" in child.line()
    assert queue.get(timeout=0) == "new"
    assert queue.statistics().dropped == 1


def test_the_least_important_go_first(broker: shmq.Broker) -> None:
    """Shows R12."""
    queue = broker.queue("jobs", maxsize=3, overflow="drop_oldest", priorities=10)
    for body, priority in (("a", 1), ("b", 9), ("c", 1), ("d", 9), ("e", 1), ("f", 9), ("g", 9)):
        queue.put(body, priority=priority, timeout=0)
    assert queue.statistics().dropped == 4
    assert queue.get_many(5, timeout=0) == ["d", "f", "g"]


def test_a_waiting_producer_goes_on_when_the_queue_is_told_to_drop(broker_dir: Path, broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=1)
    queue.put("old")
    program = 'shmq.open(sys.argv[1]).queue("jobs").put("new"); say("put")'
    with Child(program, broker_dir) as child:
        eventually(lambda: queue.statistics().producers_waiting == 1)
        queue.alter(overflow="drop_oldest")
        assert child.line() == "put"
    assert queue.get(timeout=0) == "new"


@pytest.fixture
def patient(broker_dir: Path) -> Iterator[shmq.Broker]:
    """Here nobody is taken for stopped that only waits for a processor."""
    with shmq.open(broker_dir, patience=10) as broker:
        yield broker


def test_every_put_is_accepted_however_many_producers_there_are(broker_dir: Path, patient: shmq.Broker) -> None:
    """Shows G5."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    queue: shmq.Queue[Any] = patient.queue("jobs", maxsize=2, overflow="drop_oldest", max_deaths=0)
    program = """
import random
q = shmq.open(sys.argv[1]).queue("jobs")
dice = random.Random(int(sys.argv[2]))
for n in range(2000):
    q.put(n, timeout=0)
    if dice.random() < 0.1:
        try:
            with q.receive(timeout=0):
                pass
        except (shmq.Empty, shmq.SettlementError):
            pass
say("done")
"""
    children = [Child(program, broker_dir, seed + i) for i in range(4)]
    threads = [threading.Thread(target=child.end) for child in children]
    for child, thread in zip(children, threads, strict=True):
        assert child.line() == "done"
        thread.start()
    for thread in threads:
        thread.join()
    statistics = queue.statistics()
    assert statistics.put == 8000
    assert statistics.ready <= 2
    assert statistics.dropped + statistics.acked + statistics.ready == 8000


def put_numbers_until_told(path: Path, count: int, say: Say) -> None:
    queue = shmq.open(path).queue("jobs")
    for n in range(count):
        queue.put(n, timeout=0)
    say("done")


def test_get_goes_on_when_its_message_is_dropped_under_it(broker_dir: Path, patient: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = patient.queue("jobs", maxsize=2, overflow="drop_oldest")
    got = 0
    with Offspring(put_numbers_until_told, broker_dir, 20_000) as producer:
        last = -1
        while last < 19_999:
            n = queue.get(timeout=30) if got % 2 else queue.get_many(1, timeout=30)[0]
            assert n > last
            last, got = n, got + 1
        producer.expect("done")
    statistics = queue.statistics()
    assert statistics.put == 20_000
    assert statistics.dropped + got == 20_000
