"""A queue serves some of several consumers: the exclusive one, so many live ones, those of higher priority first."""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.errors import ConsumerRefused, Empty
from tests.engine.child import Child
from tests.engine.conftest import MEMORY
from tests.support.offspring import Offspring, Say, eventually

SLOW = 30.0


def take(consumer: shmq.Consumer[Any], timeout: float = 0) -> Any:
    with consumer.receive(timeout=timeout) as m:
        return m.body


class Taker(threading.Thread):
    """Waits for one message."""

    def __init__(self, consumer: shmq.Consumer[Any]) -> None:
        super().__init__(daemon=True)
        self.consumer = consumer
        self.body: Any = None
        self.start()

    def run(self) -> None:
        self.body = take(self.consumer, SLOW)


def asleep(queue: shmq.Queue[Any], count: int) -> None:
    eventually(lambda: queue._waiters()["asleep"] == count, f"{count} takers sleep")


def hold_one(path: str, name: str, exclusive: bool, say: Say) -> None:
    m = shmq.open(path).queue(name).consumer(exclusive=exclusive).receive()
    say("holds")
    signal.pause()
    m.ack()


def wait_for_one(path: str, say: Say) -> None:
    consumer = shmq.open(path).queue("jobs").consumer(priority=9)
    say("waits")
    consumer.receive()


# ---- exclusive -----------------------------------------------------------------------------------------------------


def test_an_exclusive_consumer_is_the_only_one(queue: shmq.Queue[Any]) -> None:
    queue.put_many(["a", "b", "c"])
    with queue.consumer(exclusive=True) as one:
        for refused in (
            lambda: queue.consumer(),
            lambda: queue.consumer(exclusive=True),
            lambda: queue.get(timeout=0),
            lambda: queue.receive(timeout=0),
        ):
            with pytest.raises(ConsumerRefused, match=r"exclusive consumer.*close the other one first"):
                refused()
        assert [m.body for m in queue.browse()] == ["a", "b", "c"]
        assert take(one) == "a"
    assert queue.get(timeout=0) == "b"
    with queue.consumer() as other:
        with pytest.raises(ConsumerRefused, match="another consumer"):
            queue.consumer(exclusive=True)
        assert take(other) == "c"
    queue.consumer(exclusive=True).close()


def test_the_next_one_may_be_exclusive_when_the_first_has_died(queue: shmq.Queue[Any], broker: shmq.Broker) -> None:
    queue.put("with the dead")
    with Offspring(hold_one, broker.path, "jobs", True) as child:
        child.expect("holds")
        with pytest.raises(ConsumerRefused):
            queue.consumer()
        child.kill()
    with queue.consumer(exclusive=True) as heir:
        with heir.receive(timeout=SLOW) as m:
            assert (m.body, m.redelivered) == ("with the dead", True)


# ---- live consumers ------------------------------------------------------------------------------------------------


def test_so_many_consumers_are_live_and_the_others_stand_by(patient: shmq.Broker) -> None:
    """Shows C3, C13."""
    queue = patient.queue("limited", live_consumers=1)
    first, second, third = (queue.consumer() for _ in range(3))
    queue.put_many(range(6))
    assert take(first) == 0
    for stands_by in (second, third):
        with pytest.raises(Empty):
            stands_by.receive(timeout=0)
    waits = Taker(third)
    second_waits = Taker(second)
    held = first.receive(timeout=0)
    assert held.body == 1
    first.close()
    second_waits.join(SLOW)
    assert second_waits.body == 1
    with pytest.raises(Empty):
        queue.consumer().receive(timeout=0)
    assert waits.is_alive()
    second.close()
    waits.join(SLOW)
    assert waits.body == 2
    third.close()


def test_the_one_of_highest_priority_takes_over(broker: shmq.Broker) -> None:
    queue = broker.queue("limited", live_consumers=1)
    live, low, high = queue.consumer(), queue.consumer(priority=-1), queue.consumer(priority=7)
    queue.put_many(range(3))
    assert take(live) == 0
    with pytest.raises(Empty):
        high.receive(timeout=0)
    live.close()
    with pytest.raises(Empty):
        low.receive(timeout=0)
    assert take(high) == 1
    high.close()
    assert take(low) == 2
    low.close()


def test_a_dead_live_consumer_is_followed_by_one_that_stood_by(broker: shmq.Broker) -> None:
    queue = broker.queue("limited", live_consumers=1)
    queue.put("first")
    with Offspring(hold_one, broker.path, "limited", False) as child:
        child.expect("holds")
        waits = Taker(queue.consumer())
        child.kill()
        waits.join(SLOW)
        assert waits.body == "first"


def test_the_number_of_live_ones_can_be_altered(broker: shmq.Broker) -> None:
    queue = broker.queue("limited", live_consumers=1)
    one, two = queue.consumer(), queue.consumer()
    queue.put_many(range(4))
    with pytest.raises(Empty):
        two.receive(timeout=0)
    queue.alter(live_consumers=2)
    assert (take(two), take(one)) == (0, 1)
    one.close()
    queue.alter(live_consumers=None)
    assert take(two) == 2
    two.close()


def test_who_is_live_stays_so_when_the_number_is_lowered(broker: shmq.Broker) -> None:
    queue = broker.queue("limited", live_consumers=2)
    one, two = queue.consumer(), queue.consumer()
    queue.put_many(range(5))
    queue.alter(live_consumers=1)
    assert (take(two), take(one)) == (0, 1)
    three = queue.consumer(priority=9)
    two.close()
    with pytest.raises(Empty):
        three.receive(timeout=0)  # one is there, and that is enough
    assert take(one) == 2
    one.close()
    assert take(three) == 3
    three.close()


def test_the_consumer_of_receive_is_in_nobodys_way_with_empty_hands(
    broker: shmq.Broker, queue: shmq.Queue[Any]
) -> None:
    """Of this process, and of another one."""
    program = """
q = shmq.open(sys.argv[1]).queue(sys.argv[2])
m = q.receive()
say("has")
listen()
m.ack()
say("done")
listen()
try:
    q.receive(timeout=0)
except shmq.ConsumerRefused:
    say("refused")
"""
    queue.put_many(["a", "b", "c"])
    queue.receive(timeout=0).ack()
    with Child(program, broker.path, queue.name) as child:
        assert child.line() == "has"
        with pytest.raises(ConsumerRefused, match=f"another consumer, of pid {child.pid}"):
            queue.consumer(exclusive=True)
        child.tell("settle")
        assert child.line() == "done"
        with queue.consumer(exclusive=True) as one:
            assert take(one) == "c"
            child.tell("try")
            assert child.end() == "refused\n"
            with pytest.raises(ConsumerRefused):
                queue.receive(timeout=0)
    queue.put("d")
    held = queue.receive(timeout=0)
    with pytest.raises(ConsumerRefused, match="another consumer"):
        queue.consumer(exclusive=True)
    held.ack()
    queue.consumer(exclusive=True).close()


# ---- priorities of consumers -----------------------------------------------------------------------------------------


@pytest.fixture
def patient(broker_dir: Path) -> Iterator[shmq.Broker]:
    """None that is slow is passed: the machine may be busy."""
    with shmq.open(broker_dir, memory=MEMORY, patience=60.0) as broker:
        yield broker


def test_the_consumer_of_higher_priority_is_served_first(patient: shmq.Broker) -> None:
    """Shows S75."""
    queue: shmq.Queue[Any] = patient.queue("jobs")
    with queue.consumer(priority=1) as high, queue.consumer() as low:
        low_waits = Taker(low)
        asleep(queue, 1)
        for n in range(20):
            high_waits = Taker(high)
            asleep(queue, 2)
            queue.put(n)
            high_waits.join(SLOW)
            assert high_waits.body == n
        assert low_waits.is_alive()
        queue.put("left")
        low_waits.join(SLOW)
        assert low_waits.body == "left"
    assert queue.statistics().ready == 0


def test_one_of_lower_priority_is_served_when_the_higher_is_at_work_or_has_no_credit(patient: shmq.Broker) -> None:
    """Shows S56, R5."""
    queue: shmq.Queue[Any] = patient.queue("jobs")
    with queue.consumer(priority=5, prefetch=1) as high, queue.consumer(priority=-5) as low:
        high_waits, low_waits = Taker(high), Taker(low)
        asleep(queue, 2)
        queue.put("first")
        high_waits.join(SLOW)
        assert (high_waits.body, low_waits.is_alive()) == ("first", True)
        queue.put("second")
        low_waits.join(SLOW)
        assert low_waits.body == "second"


def test_one_of_higher_priority_that_does_not_select_a_message_leaves_it(queue: shmq.Queue[Any]) -> None:
    with queue.consumer(priority=5, selector="kind = 'png'") as high, queue.consumer() as low:
        high_waits, low_waits = Taker(high), Taker(low)
        asleep(queue, 2)
        queue.put("text", headers={"kind": "text"})
        low_waits.join(SLOW)
        assert (low_waits.body, high_waits.is_alive()) == ("text", True)
        queue.put("picture", headers={"kind": "png"})
        high_waits.join(SLOW)
        assert high_waits.body == "picture"


def test_one_of_higher_priority_that_is_stopped_keeps_nobody_waiting(
    queue: shmq.Queue[Any], broker: shmq.Broker
) -> None:
    with Offspring(wait_for_one, broker.path) as child, queue.consumer() as low:
        child.expect("waits")
        asleep(queue, 1)
        child.signal(signal.SIGSTOP)
        queue.put("for somebody")
        assert take(low, SLOW) == "for somebody"


def test_consumers_of_equal_priority_share_as_before(queue: shmq.Queue[Any]) -> None:
    with queue.consumer(priority=2) as one, queue.consumer(priority=2) as two:
        queue.put_many(range(10))
        assert [take(consumer) for _ in range(5) for consumer in (one, two)] == list(range(10))


# ---- credit ----------------------------------------------------------------------------------------------------------


def test_a_message_that_is_taken_away_gives_its_credit_back(broker: shmq.Broker) -> None:
    """Shows R10: restored exactly, on every way."""
    queue = broker.queue("lent", overflow="drop_oldest", maxsize=3)
    with queue.consumer(prefetch=2) as consumer:
        queue.put_many(range(3))
        held = consumer.receive_many(9, timeout=0)
        assert [m.body for m in held] == [0, 1]
        with pytest.raises(Empty, match="prefetch"):
            consumer.receive(timeout=0)
        queue.put("drops the oldest")  # which this consumer holds
        third = consumer.receive(timeout=0)
        assert third.body == 2
        with pytest.raises(Empty, match="prefetch"):
            consumer.receive(timeout=0)
        with pytest.raises(shmq.SettlementError):
            held[0].ack()
        with pytest.raises(Empty, match="prefetch"):
            consumer.receive(timeout=0)
        held[1].ack()
        third.ack()
        with consumer.receive(timeout=0) as m:
            assert m.body == "drops the oldest"


@pytest.mark.alone
def test_one_that_stands_by_is_told_at_once_also_where_messages_lie_on_disk(broker_dir: Path) -> None:
    """It would wait for whoever moves messages, as long as one that was stopped may delay others: here for a minute."""
    with shmq.open(broker_dir, memory="16MiB", disk="1GiB", patience=60.0) as patient:
        queue = patient.queue("backlog", codec="bytes", max_memory=20_000, live_consumers=1)
        queue.put_many(bytes(100) for _ in range(1000))
        assert queue.statistics().flowed
        with queue.consumer() as live, queue.consumer() as other:
            assert take(live) == bytes(100)
            begin = time.monotonic()
            with pytest.raises(Empty):
                other.receive(timeout=0)
            assert time.monotonic() - begin < SLOW
