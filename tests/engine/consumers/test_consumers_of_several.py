"""One consumer of several queues: served in turn, one wait for all."""

import gc
import random
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.errors import Closed, ConsumerRefused, Empty, NotFound, SelectorError, SettlementError, ShutDown
from tests.engine.conftest import MEMORY
from tests.support.offspring import Offspring, Say, eventually

SLOW = 30.0


@pytest.fixture
def queues(broker: shmq.Broker) -> list[shmq.Queue[Any]]:
    return [broker.queue(name) for name in ("red", "green", "blue")]


def take(consumer: shmq.Consumer[Any], timeout: float = 0) -> Any:
    with consumer.receive(timeout=timeout) as m:
        return m.body


def asleep(queues: list[shmq.Queue[Any]], count: int = 1) -> None:
    eventually(lambda: all(queue._waiters()["asleep"] == count for queue in queues), f"{count} sleep on each queue")


class Taker(threading.Thread):
    """Waits for one message."""

    def __init__(self, consumer: shmq.Consumer[Any]) -> None:
        super().__init__(daemon=True)
        self.consumer = consumer
        self.body: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.body = take(self.consumer, SLOW)
        except Exception as error:
            self.body = type(error)

    def end(self) -> Any:
        self.join(SLOW)
        return self.body


def two_are_done(takers: list[Taker]) -> bool:
    return sum(taker.is_alive() for taker in takers) <= 1


def take_until_shut(path: str, names: list[str], say: Say) -> None:
    broker = shmq.open(path)
    with broker.consumer(*(broker.queue(name) for name in names)) as consumer:
        say("waits")
        for m in consumer:
            with m:
                say(f"{m.queue.name} {m.body}")
    say("end")


def hold_and_wait(path: str, names: list[str], say: Say) -> None:
    broker = shmq.open(path)
    consumer = broker.consumer(*(broker.queue(name) for name in names))
    held = [consumer.receive() for _ in names]
    say(" ".join(m.queue.name for m in held))
    signal.pause()


# ---- whose turn it is ----------------------------------------------------------------------------------------------


def test_queues_that_have_something_are_served_strictly_in_turn(
    broker: shmq.Broker, queues: list[shmq.Queue[Any]]
) -> None:
    """Shows S41."""
    red, green, blue = queues
    red.put_many(["r1", "r2", "r3", "r4"])
    blue.put_many(["b1", "b2"])
    with broker.consumer(*queues) as consumer:
        assert [take(consumer) for _ in range(3)] == ["r1", "b1", "r2"]
        green.put("g1")
        assert [take(consumer) for _ in range(4)] == ["g1", "b2", "r3", "r4"]
        with pytest.raises(Empty, match="nothing came to queues 'red', 'green', 'blue'"):
            consumer.receive(timeout=0)
    assert [queue._waiters()["consumers"] for queue in queues] == [0, 0, 0]


def test_each_message_knows_its_queue_and_is_settled_there(broker: shmq.Broker, queues: list[shmq.Queue[Any]]) -> None:
    for queue in queues:
        queue.put_many([queue.name, "back"])
    with broker.consumer(*queues) as consumer:
        held = consumer.receive_many(3, timeout=0)
        assert [(m.queue.name, m.body, m.position) for m in held] == [(q.name, q.name, 0) for q in queues]
        assert [queue._census()["unsettled"] for queue in queues] == [1, 1, 1]
        held[1].ack()
        assert [queue._census()["unsettled"] for queue in queues] == [1, 0, 1]
        held[0].reject()
        assert consumer.receive(timeout=0).body == "back"
    assert [[m.body for m in queue.browse()] for queue in queues] == [["back"], ["back"], ["blue", "back"]]


def test_two_messages_at_the_same_position_of_two_queues_are_two(
    broker: shmq.Broker, queues: list[shmq.Queue[Any]]
) -> None:
    for queue in queues:
        queue.put(queue.name)
    with broker.consumer(*queues, prefetch=3) as consumer:
        held = [consumer.receive(timeout=0) for _ in queues]
        with pytest.raises(Empty, match="prefetch allows"):
            consumer.receive(timeout=0)
        for m in held:
            assert not m.settled
            m.ack()
            assert m.settled
    assert all(queue.qsize() == 0 for queue in queues)


def test_a_selector_counts_on_each_queue(broker: shmq.Broker, queues: list[shmq.Queue[Any]]) -> None:
    with pytest.raises(SelectorError):
        broker.consumer(*queues, selector="a = = 1")
    for queue in queues:
        for n in range(3):
            queue.put(n, headers={"n": n})
    with broker.consumer(*queues, selector="n = 1") as consumer:
        assert [take(consumer) for _ in range(3)] == [1, 1, 1]
        waits = Taker(consumer)
        asleep(queues)
        queues[2].put("no", headers={"n": 7})
        queues[1].put("yes", headers={"n": 1})
        assert waits.end() == "yes"
    assert [queue.qsize() for queue in queues] == [2, 2, 3]


def test_what_is_released_for_others_is_never_offered_again(broker: shmq.Broker, queues: list[shmq.Queue[Any]]) -> None:
    for queue in queues:
        queue.put(queue.name)
    with broker.consumer(*queues) as consumer:
        consumer.receive(timeout=0).release(elsewhere=True)
        assert [take(consumer) for _ in range(2)] == ["green", "blue"]
        with pytest.raises(Empty):
            consumer.receive(timeout=0)
        assert queues[0].get(timeout=0) == "red"


# ---- one wait ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", range(3))
def test_who_sleeps_is_woken_by_any_of_the_queues(
    broker: shmq.Broker, queues: list[shmq.Queue[Any]], which: int
) -> None:
    with Offspring(take_until_shut, broker.path, [queue.name for queue in queues]) as child:
        child.expect("waits")
        for n in range(20):
            asleep(queues)
            queues[which].put(n)
            child.expect(f"{queues[which].name} {n}")
        for queue in queues:
            queue.shutdown()
        child.expect("end")


def test_a_wake_that_it_does_not_use_goes_to_another(broker: shmq.Broker, queues: list[shmq.Queue[Any]]) -> None:
    """Notified on two queues at once it takes from one; who waits for the other alone gets that one's."""
    red, green, _ = queues
    seed = time.time_ns()
    print(f"seed {seed}")
    chance = random.Random(seed)
    with broker.consumer(red, green) as both, red.consumer() as only_red, green.consumer() as only_green:
        for n in range(50):
            takers = [Taker(consumer) for consumer in (both, only_red, only_green)]
            asleep([red, green], 2)
            order = [red, green]
            chance.shuffle(order)
            for queue in order:
                queue.put(n)
            (red if chance.random() < 0.5 else green).put(n)
            eventually(partial(two_are_done, takers), "two of three messages are taken")
            for queue in (red, green):
                queue.put(n)
            assert [taker.end() for taker in takers] == [n, n, n]
            while red.qsize() + green.qsize():
                take(both)


def test_threads_that_share_it_wait_together(broker: shmq.Broker, queues: list[shmq.Queue[Any]]) -> None:
    with broker.consumer(*queues) as consumer:
        takers = [Taker(consumer) for _ in range(20)]
        asleep(queues, 20)
        for n in range(20):
            queues[n % 3].put(n)
        assert sorted(taker.end() for taker in takers) == list(range(20))


def test_the_credit_is_one_for_all_queues(broker: shmq.Broker, queues: list[shmq.Queue[Any]]) -> None:
    for queue in queues:
        queue.put(queue.name)
    with broker.consumer(*queues, prefetch=1) as consumer:
        first = consumer.receive(timeout=0)
        waits = Taker(consumer)
        assert waits.is_alive()
        first.ack()
        assert waits.end() == "green"


def test_a_death_gives_back_on_all_queues(broker: shmq.Broker, queues: list[shmq.Queue[Any]]) -> None:
    for queue in queues:
        queue.put(queue.name)
    with Offspring(hold_and_wait, broker.path, [queue.name for queue in queues]) as child:
        child.expect("red green blue")
        child.kill()
        with broker.consumer(*queues) as consumer:
            for queue in queues:
                with consumer.receive(timeout=SLOW) as m:
                    assert (m.queue, m.redelivered) == (queue, True)
    assert [queue._waiters()["consumers"] for queue in queues] == [0, 0, 0]


# ---- shutdown, deletion, closing -----------------------------------------------------------------------------------


def test_a_queue_that_is_shut_down_is_drained_and_then_left_out(
    broker: shmq.Broker, queues: list[shmq.Queue[Any]]
) -> None:
    red, green, blue = queues
    red.put_many(["r1", "r2"])
    red.shutdown()
    with broker.consumer(*queues) as consumer:
        assert [take(consumer) for _ in range(2)] == ["r1", "r2"]
        with pytest.raises(Empty):
            consumer.receive(timeout=0)
        waits = Taker(consumer)
        asleep(queues)
        blue.put("b")
        assert waits.end() == "b"
        waits = Taker(consumer)
        asleep(queues)
        red.reopen()
        red.put("again")
        assert waits.end() == "again"
        red.put("stays")
        red.shutdown(immediate=True)
        waits = Taker(consumer)
        asleep(queues)
        green.shutdown()
        blue.shutdown()
        assert waits.end() is ShutDown
        with pytest.raises(ShutDown, match="queues 'red', 'green', 'blue' are shut down"):
            consumer.receive()
        assert list(consumer) == []
    assert [m.body for m in red.browse()] == ["stays"]


def test_a_deleted_queue_ends_the_wait(broker: shmq.Broker, queues: list[shmq.Queue[Any]]) -> None:
    with broker.consumer(*queues) as consumer:
        waits = Taker(consumer)
        asleep(queues)
        queues[1].delete()
        assert waits.end() is NotFound
        queues[0].put("left")
        with pytest.raises(NotFound, match="'green' was deleted"):
            consumer.receive(timeout=0)
    assert queues[0].get(timeout=0) == "left"


def test_closing_ends_its_waits_and_gives_everything_back(broker: shmq.Broker, queues: list[shmq.Queue[Any]]) -> None:
    for queue in queues:
        queue.put(queue.name)
    consumer = broker.consumer(*queues)
    held = [consumer.receive() for _ in queues]
    takers = [Taker(consumer) for _ in range(3)]
    asleep(queues, 3)
    consumer.close()
    assert [taker.end() for taker in takers] == [Closed] * 3
    assert [queue.qsize() for queue in queues] == [1, 1, 1]
    for m in held:
        with pytest.raises(SettlementError):
            m.ack()
    with pytest.raises(Closed, match="this consumer of queues 'red', 'green', 'blue' is closed"):
        consumer.receive()
    assert [queue._waiters()["consumers"] for queue in queues] == [0, 0, 0]
    assert repr(consumer) == "<Consumer of queues 'red', 'green', 'blue', closed>"


def test_a_loop_that_is_left_gives_back_what_is_in_hand(broker: shmq.Broker, queues: list[shmq.Queue[Any]]) -> None:
    for queue in queues:
        queue.put(queue.name)
    consumer = broker.consumer(*queues)
    for m in consumer:
        if m.queue.name == "green":
            break
    del m
    gc.collect()
    with queues[0].receive(timeout=0) as again:
        assert again.redelivered
    assert [queue.qsize() for queue in queues] == [0, 1, 1]
    consumer.close()


def test_a_dropped_message_is_told_at_the_next_call(broker: shmq.Broker, queues: list[shmq.Queue[Any]]) -> None:
    queues[1].put("dropped")
    with broker.consumer(*queues) as consumer:
        consumer.receive(timeout=0)
        gc.collect()
        with pytest.raises(SettlementError, match="1 message of queue 'green' was dropped unsettled"):
            consumer.receive(timeout=0)
        assert take(consumer) == "dropped"


def test_the_arguments_are_checked(broker: shmq.Broker, queues: list[shmq.Queue[Any]]) -> None:
    with pytest.raises(ValueError, match="at least one queue"):
        broker.consumer()
    with pytest.raises(ValueError, match="'red' is given twice"):
        broker.consumer(queues[0], queues[1], queues[0])
    with pytest.raises(TypeError, match="queues are expected"):
        broker.consumer(queues[0], "green")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="prefetch=0"):
        broker.consumer(*queues, prefetch=0)
    with shmq.open() as other, pytest.raises(ValueError, match="of another broker"):
        broker.consumer(queues[0], other.queue("red"))
    with broker.consumer(queues[0]) as one:
        queues[0].put("a")
        assert take(one) == "a"


def test_one_refusal_closes_what_was_opened_before(broker: shmq.Broker, queues: list[shmq.Queue[Any]]) -> None:
    with queues[2].consumer() as other:
        with pytest.raises(ConsumerRefused):
            broker.consumer(*queues, exclusive=True)
        assert [queue._waiters()["consumers"] for queue in queues] == [0, 0, 1]
        assert not other.closed
    with broker.consumer(*queues, exclusive=True), pytest.raises(ConsumerRefused):
        queues[1].get(timeout=0)


def test_of_two_the_one_of_higher_priority_is_served_first(broker_dir: Path) -> None:
    broker = shmq.open(broker_dir, memory=MEMORY, patience=60.0)  # a slow one is not passed: the machine may be busy
    queues = [broker.queue(name) for name in ("red", "green", "blue")]
    with broker, broker.consumer(*queues, priority=5) as high, broker.consumer(*queues) as low:
        waits = [Taker(high), Taker(low)]
        asleep(queues, 2)
        queues[1].put("first")
        assert waits[0].end() == "first"
        queues[2].put("second")
        assert waits[1].end() == "second"


def test_on_each_queue_it_is_a_consumer_of_its_own(broker: shmq.Broker) -> None:
    """With row, selector and rank there; what came from a queue is known there, and goes back there. Shows S42."""
    queues = [broker.queue(name) for name in ("one", "two", "three")]
    with broker.consumer(*queues, selector="n > 0", exclusive=True) as several:
        for number, queue in enumerate(queues):
            assert queue.statistics().consumers == 1
            with pytest.raises(shmq.ConsumerRefused):
                queue.get(timeout=0)
            queue.put(f"not for it {number}", headers={"n": 0})
            queue.put(f"for it {number}", headers={"n": 1})
        held = several.receive_many(9, timeout=0)
        assert sorted((m.queue.name, m.body) for m in held) == [
            ("one", "for it 0"),
            ("three", "for it 2"),
            ("two", "for it 1"),
        ]
        assert [(q.statistics().ready, q.statistics().unsettled) for q in queues] == [(1, 1)] * 3
        held[0].ack()
        with queues[0].broker.queue("four").consumer() as apart:
            assert apart.receive_many(1, timeout=0) == []
    left = {q.name: q.get_many(9, timeout=0) for q in queues}
    expected = {q.name: [f"not for it {n}", f"for it {n}"] for n, q in enumerate(queues)}
    expected[held[0].queue.name].pop()
    assert left == expected
    assert [q.statistics().consumers for q in queues] == [0] * 3
