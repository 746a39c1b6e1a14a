"""Messages that failed too often and lie on disk: whoever waits in join() moves them to the dead letters. Shows G5."""

import contextlib
import logging
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child, eventually

pytestmark = pytest.mark.memory  # each says itself what flows

FEW, MANY = 40, 400
HOLDER = """
held = shmq.open(sys.argv[1]).queue("jobs").receive_many(40, timeout=0)
say(len(held))
listen()
"""


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "shmq.broker")  # each death is a warning


def body(number: int) -> bytes:
    return b"%d" % number + bytes(300)


def numbers(queue: shmq.Queue[Any]) -> list[int]:
    return [int(message.body.rstrip(b"\0")) for message in queue.browse()]


def to_disk(queue: shmq.Queue[Any], first: int) -> None:
    """These puts find no memory: all messages that were there go to disk, but for some of the first."""
    queue.alter(max_memory=1)
    for number in range(first, first + 4):
        queue.put(body(number), timeout=0)
    assert queue.statistics().flowed


def ack_new(queue: shmq.Queue[Any], count: int) -> None:
    with queue.consumer(selector="JMSRedelivered = FALSE") as consumer:
        for message in consumer.receive_many(count, timeout=0):
            message.ack()


def test_leases_that_ended_before_the_flow(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", max_attempts=1, lease=0.2)
    queue.put_many([body(number) for number in range(FEW)])
    held = queue.receive_many(FEW, timeout=0)
    eventually(lambda: queue.statistics().ready == FEW)
    queue.alter(lease=None)
    to_disk(queue, FEW)
    ack_new(queue, 4)
    queue.join(timeout=60.0)
    assert numbers(broker.queue("jobs.dead", create=False)) == list(range(FEW))
    assert queue.statistics().disk_bytes == 0
    for message in held:
        with pytest.raises(shmq.SettlementError):
            message.ack()


@pytest.mark.parametrize("limit", ["max_attempts", "max_deaths"])
def test_a_limit_that_is_lowered_when_they_are_there(broker_dir: Path, broker: shmq.Broker, limit: str) -> None:
    queue = broker.queue("jobs", lease=None)
    queue.put_many([body(number) for number in range(FEW)])
    if limit == "max_attempts":
        for message in queue.receive_many(FEW, timeout=0):
            message.retry()
    else:
        with Child(HOLDER, broker_dir) as holder:
            assert holder.line() == str(FEW)
        eventually(lambda: queue.statistics().ready == FEW)
    to_disk(queue, FEW)
    with pytest.raises(shmq.Timeout):
        queue.join(timeout=0)
    assert numbers(queue) == list(range(FEW + 4))
    if limit == "max_attempts":
        queue.alter(max_attempts=1)
    else:
        queue.alter(max_deaths=1)
    with pytest.raises(shmq.Timeout):
        queue.join(timeout=0)
    assert numbers(queue) == list(range(FEW, FEW + 4))
    dead = broker.queue("jobs.dead", create=False)
    assert numbers(dead) == list(range(FEW))
    deaths = [message.death for message in dead.browse()]
    assert {death.reason for death in deaths if death is not None} == {limit}
    assert queue.get_many(FEW, timeout=0) == [body(number) for number in range(FEW, FEW + 4)]


def test_those_in_both_rings_become_dead_letters_in_their_order(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", max_memory=1)
    for number in range(6):
        queue.put(body(number), timeout=0)
    for message in queue.receive_many(6, timeout=0):
        message.retry()
    queue.put(body(6), timeout=0)
    with queue.consumer(selector="JMSRedelivered = FALSE") as consumer:
        for message in consumer.receive_many(3, timeout=0):
            message.retry()
    assert numbers(queue) == list(range(7))
    queue.alter(max_attempts=1)
    queue.join(timeout=60.0)
    assert numbers(broker.queue("jobs.dead", create=False)) == list(range(7))


def test_without_room_among_the_dead_they_stay_and_are_tried_again(broker: shmq.Broker) -> None:
    dead = broker.queue("graves", maxsize=3)
    queue = broker.queue("jobs", dead_letter="graves")
    queue.put_many([body(number) for number in range(MANY)])
    for message in queue.receive_many(MANY, timeout=0):
        message.retry()
    to_disk(queue, MANY)
    queue.alter(max_attempts=1)
    with pytest.raises(shmq.Timeout):
        queue.join(timeout=0)
    ack_new(queue, 4)
    assert (queue.statistics().unsettled, queue.qsize()) == (1, MANY - 4)  # one waits, the rest stays where it is
    found: list[bytes] = []
    while queue.qsize() + queue.statistics().unsettled > 0:
        before = len(found)
        with contextlib.suppress(shmq.Timeout):
            queue.join(timeout=0)
        found += dead.get_many(3, timeout=0)
        assert len(found) > before
    found += dead.get_many(3, timeout=0)  # a look at the queue has tried again, too
    assert found == [body(number) for number in range(MANY)]
    queue.join(timeout=60.0)


def test_their_own_space_on_disk_is_enough_for_the_dead_letters(broker_dir: Path) -> None:
    """No memory is left for them, and the disk is used up by the messages that become dead letters."""
    with shmq.open(broker_dir, memory="8MiB", disk="8MiB") as broker:
        queue = broker.queue("jobs")
        put = 0
        while queue.statistics().bytes < 10 << 20:
            queue.put_many([b"%d" % number + bytes(20_000) for number in range(put, put + 10)], timeout=0)
            put += 10
            with queue.consumer(selector="JMSRedelivered = FALSE") as consumer:
                for message in consumer.receive_many(10, timeout=0):
                    message.retry()
        queue.alter(max_memory=1)
        with contextlib.suppress(shmq.Full):
            for _ in range(40):
                queue.put(b"0", timeout=0)
        ack_new(queue, 40)
        queue.alter(max_attempts=1)
        queue.join(timeout=60.0)
        assert numbers(broker.queue("jobs.dead", create=False)) == list(range(put))
