"""fileno(): who waits by it is a consumer like any other, and may wait in any loop."""

import asyncio
import os
import selectors
import signal
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child, eventually
from tests.engine.conftest import MEMORY
from tests.engine.descriptors import (
    SLOW,
    Queue,
    all_wait,
    are_readable,
    asleep,
    drain,
    is_one_told,
    is_readable,
    take,
    waiters,
)

# ---- among others --------------------------------------------------------------------------------------------------


@pytest.fixture
def patient(broker_dir: Path) -> Any:
    """A queue whose broker waits a minute for whoever is slow: nothing is repaired by time."""
    with shmq.open(broker_dir, memory=MEMORY, patience=60.0) as opened:
        yield opened.queue("jobs")


@pytest.mark.memory
def test_one_message_makes_one_of_them_readable(patient: Queue) -> None:
    """Shows S70."""
    consumers = [patient.consumer() for _ in range(3)]
    for consumer in consumers:
        consumer.fileno()
    for count in (1, 2, 3):
        all_wait(patient, 4 - count)
        patient.put(count)
        eventually(partial(are_readable, consumers, count), f"{count} are readable")
    for consumer in consumers:
        consumer.close()


def test_who_takes_one_of_two_passes_the_wake_on(patient: Queue) -> None:
    """Shows S55."""
    first, second = patient.consumer(), patient.consumer()
    first.fileno()
    all_wait(patient, 1)
    patient.put_many(["a", "b"])
    assert is_readable(first, SLOW)
    second.fileno()
    assert is_readable(second, SLOW)  # it has looked by itself
    assert drain(second) == ["a", "b"]
    all_wait(patient, 1)
    patient.put_many(["c", "d"])
    assert is_readable(second, SLOW)
    assert take(first) == "c"
    assert take(second) == "d"
    first.close()
    second.close()


def test_a_consumer_that_is_closed_passes_on_what_it_was_told_of(patient: Queue) -> None:
    with patient.consumer() as other:
        for number in range(4):  # each of the two is the one that is told
            told = patient.consumer()
            told.fileno()
            all_wait(patient, 1)
            found: list[Any] = []
            thread = threading.Thread(target=lambda found=found: found.append(other.receive()))
            thread.start()
            all_wait(patient, 2)
            patient.put(number)
            eventually(partial(is_one_told, found, told), "one is told")
            told.close()
            thread.join(SLOW)
            with found.pop() as m:
                assert m.body == number


def test_a_thread_of_the_consumer_that_waits_is_not_kept_waiting(patient: Queue) -> None:
    """Whichever of the two is told: the descriptor's one has no time of grace while another thread waits."""
    with patient.consumer() as consumer:
        consumer.fileno()
        all_wait(patient, 1)
        for number in range(6):
            found: list[Any] = []
            thread = threading.Thread(target=lambda found=found: found.append(consumer.receive()))
            thread.start()
            eventually(lambda: asleep(patient) == 2, "both sleep")
            patient.put(number)
            thread.join(SLOW)
            found.pop().ack()
            assert drain(consumer) == []
            all_wait(patient, 1)


def test_what_the_program_does_not_come_for_others_get_after_the_patience(broker_dir: Path) -> None:
    """Shows G4."""
    with shmq.open(broker_dir, memory=MEMORY, patience=0.05) as broker:
        queue = broker.queue("jobs")
        with queue.consumer() as busy, queue.consumer() as other:
            busy.fileno()
            all_wait(queue, 1)
            for number in range(3):
                queue.put(number)
                assert is_readable(busy, SLOW)
                with other.receive(timeout=SLOW) as m:
                    assert m.body == number
                assert drain(busy) == []


def test_those_of_higher_priority_are_told_first(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory=MEMORY, patience=60.0) as broker:
        queue = broker.queue("jobs")
        with queue.consumer() as low, queue.consumer(priority=1) as high:
            low.fileno()
            high.fileno()
            all_wait(queue, 2)
            for number in range(3):
                queue.put(number)
                assert is_readable(high, SLOW)
                assert not is_readable(low)
                assert drain(low) == []  # it is left to the other one
                assert drain(high) == [number]
                all_wait(queue, 2)
            queue.put_many(["a", "b"])
            assert is_readable(high, SLOW)
            with high.receive(timeout=0) as m:
                assert m.body == "a"
                assert is_readable(low, SLOW)  # the other one is at work, it does not wait
                assert take(low) == "b"


# ---- loops ---------------------------------------------------------------------------------------------------------


def test_several_in_one_selector_are_served_in_turn(broker: shmq.Broker) -> None:
    queues = [broker.queue(f"q{number}") for number in range(4)]
    consumers = [queue.consumer() for queue in queues]
    served: list[str] = []
    with selectors.DefaultSelector() as selector:
        for consumer in consumers:
            selector.register(consumer, selectors.EVENT_READ)
        for queue in queues:
            queue.put_many([queue.name] * 10)
        for consumer in consumers:
            assert is_readable(consumer, SLOW)
        while len(served) < 40:
            for key, _ in selector.select(SLOW):
                served.append(take(key.fileobj))  # type: ignore[arg-type]
        for start in range(0, 40, 4):
            assert sorted(served[start : start + 4]) == ["q0", "q1", "q2", "q3"]
        for consumer in consumers:
            consumer.close()
            selector.unregister(consumer)
    eventually(lambda: waiters() == [], "the end of the thread")


def test_an_asyncio_loop_reads_as_messages_come(broker_dir: Path, queue: Queue) -> None:
    async def read(count: int) -> list[Any]:
        bodies: list[Any] = []
        done = asyncio.Event()

        def read_some() -> None:
            for m in consumer.receive_many(100, timeout=0):
                with m:
                    bodies.append(m.body)
            if len(bodies) == count:
                done.set()

        loop = asyncio.get_running_loop()
        with queue.consumer() as consumer:
            loop.add_reader(consumer.fileno(), read_some)
            try:
                for number in range(count):
                    await loop.run_in_executor(None, queue.put, number)
                await asyncio.wait_for(done.wait(), SLOW)
            finally:
                loop.remove_reader(consumer.fileno())
        return bodies

    assert asyncio.run(read(50)) == list(range(50))


LOOP = """
import select
queue, done = (shmq.open(sys.argv[1]).queue(name) for name in ("jobs", "done"))
with queue.consumer(prefetch=4) as consumer:
    poll = select.poll()
    poll.register(consumer, select.POLLIN)
    say("ready")
    count = 0
    while True:
        poll.poll()
        try:
            for m in consumer.receive_many(3, timeout=0):
                with m:
                    done.put(m.body)
                    count += 1
            consumer.receive(timeout=0).release()
        except shmq.Empty:
            pass
        except shmq.ShutDown:
            break
say(count)
"""


def test_competing_loops_get_each_message_once(broker_dir: Path, broker: shmq.Broker, queue: Queue) -> None:
    done = broker.queue("done")
    produced = 300

    def produce(first: int) -> None:
        for number in range(first, first + produced):
            queue.put(number)
            if number % 16 == 0:
                time.sleep(0.001)  # so that they sleep now and then

    with Child(LOOP, broker_dir) as a, Child(LOOP, broker_dir) as b:
        assert [a.line(), b.line()] == ["ready", "ready"]
        producers = [threading.Thread(target=produce, args=(n * produced,)) for n in range(2)]
        for thread in producers:
            thread.start()
        for thread in producers:
            thread.join()
        queue.join(timeout=SLOW)
        queue.shutdown()
        assert int(a.end()) + int(b.end()) == 2 * produced
    assert Counter(done.get_many(10_000, timeout=0)) == Counter(range(2 * produced))


@pytest.mark.parametrize("way", ["killed asleep", "killed when told", "stopped when told"])
def test_others_get_all_when_a_process_that_waits_by_it_ends(broker_dir: Path, queue: Queue, way: str) -> None:
    """Shows S55, G4."""
    program = """
import select
queue = shmq.open(sys.argv[1]).queue("jobs")
consumer = queue.consumer()
consumer.fileno()
say("ready")
if sys.argv[2] == "told":
    poll = select.poll()
    poll.register(consumer, select.POLLIN)
    poll.poll()
    say("told")
listen()
"""
    bodies: list[Any] = []
    with Child(program, broker_dir, way.split()[-1]) as child:
        assert child.line() == "ready"
        all_wait(queue, 1)
        if way != "killed asleep":
            queue.put(0)
            assert child.line() == "told"
        os.kill(child.pid, signal.SIGSTOP if "stopped" in way else signal.SIGKILL)
        with queue.consumer() as consumer:
            for number in range(1, 6):
                queue.put(number)
                if number == 1:
                    assert is_readable(consumer, SLOW)
                    bodies += drain(consumer)
                else:
                    eventually(lambda: is_readable(consumer, SLOW), "told of the next one")
                    bodies += drain(consumer)
    assert bodies == list(range(way == "killed asleep", 6))
