"""fileno(): readable when a receive without waiting is worth a try."""

import gc
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import shmq
from shmq.errors import Closed, Empty, NotFound, SettlementError, ShutDown
from tests.engine.child import Child, eventually
from tests.engine.conftest import MEMORY
from tests.engine.descriptors import (
    SLOW,
    Queue,
    all_wait,
    drain,
    is_closed,
    is_readable,
    take,
    waiters,
)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """A thread that has said that it ends is there for a moment more."""
    yield
    eventually(lambda: waiters() == [])


# ---- when it is readable -------------------------------------------------------------------------------------------


def test_it_is_readable_from_the_first_message_until_a_receive_finds_nothing(queue: Queue) -> None:
    with queue.consumer() as consumer:
        assert not is_readable(consumer)
        for _ in range(3):
            queue.put_many(["a", "b"])
            assert is_readable(consumer, SLOW)
            assert [take(consumer), take(consumer)] == ["a", "b"]
            assert is_readable(consumer)  # nobody has seen yet that nothing is left
            with pytest.raises(Empty):
                consumer.receive(timeout=0)
            assert not is_readable(consumer)
            assert consumer.receive_many(2, timeout=0) == []


def test_what_was_there_before_makes_it_readable(queue: Queue) -> None:
    queue.put("a")
    with queue.consumer() as consumer:
        assert is_readable(consumer, SLOW)
        assert drain(consumer) == ["a"]


def test_a_batch_that_ends_the_queue_ends_it_being_readable(queue: Queue) -> None:
    queue.put_many(["a", "b", "c"])
    with queue.consumer() as consumer:
        assert is_readable(consumer, SLOW)
        for m in consumer.receive_many(10, timeout=0):
            m.ack()
        assert not is_readable(consumer)


def test_what_comes_back_makes_it_readable(queue: Queue) -> None:
    queue.put("a")
    held = queue.receive(timeout=0)
    with queue.consumer() as consumer:
        assert drain(consumer) == []
        assert not is_readable(consumer)
        held.release()
        assert is_readable(consumer, SLOW)


def test_without_credit_it_is_not_readable_until_something_is_settled(queue: Queue) -> None:
    with queue.consumer(prefetch=2) as consumer:
        consumer.fileno()
        queue.put_many([*"abcd"])
        assert is_readable(consumer, SLOW)
        held = [consumer.receive(timeout=0), consumer.receive(timeout=0)]
        assert not is_readable(consumer)
        queue.put("e")
        assert not is_readable(consumer, 0.01)
        held[0].ack()
        assert is_readable(consumer, SLOW)
        held[0] = consumer.receive(timeout=0)
        assert not is_readable(consumer)
        held[1].release()
        assert is_readable(consumer, SLOW)


def test_credit_that_the_end_of_a_lease_gives_back_makes_it_readable(broker: shmq.Broker) -> None:
    leased = broker.queue("leased", lease=2.0)
    leased.put("a")
    with leased.consumer(prefetch=1) as consumer:
        assert is_readable(consumer, SLOW)
        held = consumer.receive(timeout=0)
        assert is_readable(consumer, SLOW)  # the lease is over, and it is there again
        assert take(consumer) == "a"
        with pytest.raises(SettlementError):
            held.ack()


@pytest.mark.parametrize(
    ("end", "error"),
    [(lambda q: q.shutdown(), ShutDown), (lambda q: q.delete(), NotFound), (lambda q: q.broker.close(), Closed)],
    ids=["shutdown", "deletion", "close of the broker"],
)
def test_it_is_readable_when_receive_has_something_else_to_say(
    broker_dir: Path, end: Callable[[Queue], None], error: type[Exception]
) -> None:
    broker = shmq.open(broker_dir, memory=MEMORY)
    queue = broker.queue("jobs")
    consumer = queue.consumer()
    consumer.fileno()
    all_wait(queue, 1)
    assert not is_readable(consumer)
    end(queue)
    assert is_readable(consumer, SLOW)
    for _ in range(2):
        with pytest.raises(error):
            consumer.receive(timeout=0)
    consumer.close()
    broker.close()
    eventually(lambda: waiters() == [], "the end of the thread")


def test_a_queue_that_is_reopened_is_waited_for_again(queue: Queue) -> None:
    with queue.consumer() as consumer:
        consumer.fileno()
        queue.shutdown()
        assert is_readable(consumer, SLOW)
        queue.reopen()
        assert drain(consumer) == []
        assert not is_readable(consumer)
        queue.put("a")
        assert is_readable(consumer, SLOW)


def test_only_what_is_for_the_consumer_makes_it_readable(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", groups="shared")
    with queue.consumer(selector="kind = 'red'") as red, queue.consumer() as other:
        assert not is_readable(red)
        queue.put("blue", headers={"kind": "blue"})
        queue.put("red", headers={"kind": "red"})
        assert is_readable(red, SLOW)
        assert drain(red) == ["red"]
        queue.put_many(["g1", "g2"], headers={"kind": "red"}, group="g")
        held = other.receive_many(2, timeout=0)
        assert [m.body for m in held] == ["blue", "g1"]
        assert drain(red) == []  # the group is with the other one
        assert not is_readable(red)
        held[1].ack()
        assert is_readable(red, SLOW)
        assert drain(red) == ["g2"]


def test_one_that_stands_by_becomes_readable_when_it_is_live(broker: shmq.Broker) -> None:
    queue = broker.queue("ordered", live_consumers=1)
    with queue.consumer() as live, queue.consumer() as spare:
        spare.fileno()
        queue.put("a")
        assert is_readable(live, SLOW)
        assert not is_readable(spare)
        live.close()
        assert is_readable(spare, SLOW)
        assert take(spare) == "a"


def test_one_of_several_queues_is_enough_and_they_are_served_in_turn(broker: shmq.Broker) -> None:
    """Shows S41."""
    queues = [broker.queue(name) for name in ("red", "green", "blue")]
    with broker.consumer(*queues, prefetch=3) as consumer:
        for queue in queues:
            assert not is_readable(consumer)
            queue.put(queue.name)
            assert is_readable(consumer, SLOW)
            assert drain(consumer) == [queue.name]
        for queue in queues:
            queue.put_many([queue.name] * 2)
        assert is_readable(consumer, SLOW)
        held = [consumer.receive(timeout=0) for _ in range(3)]
        assert sorted(m.body for m in held) == ["blue", "green", "red"]
        assert not is_readable(consumer)  # the prefetch is one for all
        held.pop().ack()
        assert is_readable(consumer, SLOW)
        for m in held:
            m.ack()
        queues[0].delete()
        assert is_readable(consumer, SLOW)
        with pytest.raises(NotFound):
            drain(consumer)
    eventually(lambda: waiters() == [], "the end of the thread")


# ---- the thread and the descriptor ---------------------------------------------------------------------------------


def test_a_thread_is_there_from_the_first_fileno_to_the_close(queue: Queue) -> None:
    with queue.consumer() as consumer:
        queue.put("a")
        take(consumer)
        assert waiters() == []
        number = consumer.fileno()
        assert waiters() == ["shmq-fileno-jobs"]
        assert consumer.fileno() == number
        assert waiters() == ["shmq-fileno-jobs"]
        assert not os.get_inheritable(number)
    eventually(lambda: waiters() == [], "the end of the thread")
    eventually(partial(is_closed, number), "the end of the descriptor")
    with pytest.raises(Closed):
        consumer.fileno()


@pytest.mark.parametrize("state", ["asleep", "told", "without credit"])
def test_the_thread_ends_at_once_with_its_consumer_or_its_broker(queue: Queue, state: str) -> None:
    for end in ("close", "garbage", "broker"):
        broker = shmq.open(queue.broker.url)
        consumer = broker.queue("jobs").consumer(prefetch=1)
        number = consumer.fileno()
        if state != "asleep":
            queue.put("a")
            assert is_readable(consumer, SLOW)
        if state == "without credit":
            consumer.receive(timeout=0).ack()
        else:
            all_wait(queue, state == "asleep")
        if end == "close":
            consumer.close()
        elif end == "broker":
            broker.close()
            consumer.close()
        del consumer
        gc.collect()
        eventually(lambda: waiters() == [], "the end of the thread")
        eventually(partial(is_closed, number), "the end of the descriptor")
        broker.close()
        queue.purge()


def test_a_forked_child_cannot_use_it_and_takes_nothing_from_its_parent(queue: Queue) -> None:
    with queue.consumer() as consumer:
        queue.put("a")
        assert is_readable(consumer, SLOW)
        pid = os.fork()
        if pid == 0:
            try:
                consumer.fileno()
            except SettlementError:
                consumer.close()
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert is_readable(consumer)
        assert drain(consumer) == ["a"]
        queue.put("b")
        assert is_readable(consumer, SLOW)


def test_a_process_ends_by_itself_while_it_waits(broker_dir: Path, queue: Queue) -> None:
    program = """
queue = shmq.open(sys.argv[1]).queue("jobs")
consumers = [queue.consumer() for _ in range(3)]
for consumer in consumers:
    consumer.fileno()
say("ready")
listen()
"""
    with Child(program, broker_dir) as child:
        assert child.line() == "ready"
        all_wait(queue, 3)
        child.tell("go")
        assert child.end() == ""
    assert queue._waiters()["consumers"] == 0


def test_a_signal_reaches_the_thread_that_polls(broker_dir: Path) -> None:
    """The thread leaves all signals to the program."""
    program = """
import select
queue = shmq.open(sys.argv[1]).queue("jobs")
with queue.consumer() as consumer:
    poll = select.poll()
    poll.register(consumer, select.POLLIN)
    say("ready")
    try:
        poll.poll()
    except KeyboardInterrupt:
        say("interrupted")
"""
    with Child(program, broker_dir) as child:
        assert child.line() == "ready"
        child.sleeps()
        child.interrupt()
        assert child.end() == "interrupted\n"
