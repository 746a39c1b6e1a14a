"""max_bytes: bodies and headers together, exact to the byte, whoever puts and whoever dies. Shows G5."""

import random
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child, eventually

FILL = """
import random
q = shmq.open(sys.argv[1]).queue("jobs", codec="bytes")
dice = random.Random(int(sys.argv[2]))
say("ready")
listen()
while True:
    try:
        q.put(bytes(dice.choice((1, 50, 700, 3000))), timeout=0)
    except shmq.Full as full:
        assert full.resource == "max_bytes", full
        break
say("full")
listen()
"""


def test_bodies_and_headers_count_and_full_says_so(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", codec="bytes", max_bytes=1000)
    queue.put(bytes(900))
    queue.put(bytes(50), headers={"a": 1})
    used = queue.statistics().bytes
    for size in (1000 - used + 1, 5000):
        with pytest.raises(shmq.Full) as caught:
            queue.put(bytes(size), timeout=0)
        full = caught.value
        assert (full.resource, full.limit) == ("max_bytes", 1000)
        assert full.used is not None
        assert 950 < full.used < 1000
        assert "of 1,000 bytes" in str(full)
    queue.put(bytes(1000 - full.used), timeout=0)
    with pytest.raises(shmq.Full):
        queue.put(b"x", timeout=0)
    queue.put(b"", timeout=0)
    queue.get()
    queue.put(bytes(900), timeout=0)


def test_one_that_is_larger_than_the_limit_passes_when_nothing_is_there(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", codec="bytes", max_bytes=100)
    queue.put(b"x")
    with pytest.raises(shmq.Full):
        queue.put(bytes(5000), timeout=0)
    with queue.receive(), pytest.raises(shmq.Full):
        queue.put(bytes(5000), timeout=0)
    queue.put(bytes(5000), timeout=0)
    with pytest.raises(shmq.Full):
        queue.put(b"x", timeout=0)
    assert len(queue.get()) == 5000
    queue.put(bytes(100), timeout=0)


def test_put_many_and_loans_are_under_the_same_limit(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", codec="bytes", max_bytes=100)
    with pytest.raises(shmq.Full) as caught:
        queue.put_many([bytes(30)] * 5, timeout=0)
    assert (caught.value.resource, caught.value.accepted) == ("max_bytes", 3)
    loan = queue.loan(50, timeout=0)
    with pytest.raises(shmq.Full):
        loan.commit()
    loan.commit(nbytes=10)
    assert queue.statistics().bytes == 100


def test_a_producer_waits_until_there_are_enough_bytes(broker_dir: Path, broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", codec="bytes", max_bytes=100)
    queue.put_many([bytes(40), bytes(40)])
    program = 'shmq.open(sys.argv[1]).queue("jobs", codec="bytes").put(bytes(70)); say("put")'
    with Child(program, broker_dir) as child:
        eventually(lambda: queue.statistics().producers_waiting == 1)
        queue.get()
        assert queue.statistics().ready == 1
        queue.get()
        assert child.line() == "put"


@pytest.mark.memory
def test_no_number_of_producers_puts_one_byte_too_many(broker_dir: Path, broker: shmq.Broker) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    most = 200_000
    queue = broker.queue("jobs", codec="bytes", max_bytes=most)
    children = [Child(FILL, broker_dir, seed + i) for i in range(4)]
    for child in children:
        assert child.line() == "ready"
    for child in children:
        child.tell("go")
    for child in children:
        assert child.line() == "full"
    held = queue.statistics().bytes
    assert most - 3000 < held <= most
    assert queue._used()[1] == held
    for child in children:
        child.kill()
    assert queue.purge() > 0
    assert queue._used()[1] == 0


def test_bytes_of_killed_producers_and_consumers_are_weighed_anew(broker_dir: Path, broker: shmq.Broker) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    dice = random.Random(seed)
    queue: shmq.Queue[Any] = broker.queue("jobs", codec="bytes", max_bytes=20_000, max_deaths=0)
    work = """
import random
q = shmq.open(sys.argv[1]).queue("jobs", codec="bytes")
dice = random.Random(int(sys.argv[2]))
say("ready")
while True:
    try:
        if dice.random() < 0.5:
            q.put(bytes(dice.choice((1, 50, 700, 3000))), timeout=0)
        else:
            q.get(timeout=0)
    except (shmq.Full, shmq.Empty):
        pass
"""
    for _ in range(6):
        children = [Child(work, broker_dir, dice.randrange(1 << 30)) for _ in range(2)]
        for child in children:
            assert child.line() == "ready"
        eventually(lambda: queue.statistics().put > dice.randrange(1000))
        for child in children:
            child.kill()
    queue.purge()
    eventually(lambda: (queue.statistics().unsettled == 0 and queue.qsize() == 0) or queue.purge() < 0)
    queue.put(bytes(20_000), timeout=10)  # all of it is there again
    with pytest.raises(shmq.Full):
        queue.put(b"x", timeout=0)
    assert queue._used()[1] == 20_000
