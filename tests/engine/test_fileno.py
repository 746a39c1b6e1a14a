"""fileno(): readable when a receive without waiting is worth a try; who waits by it is a consumer like any other."""

import asyncio
import gc
import os
import select
import selectors
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.errors import Closed, Empty, NotFound, SettlementError, ShutDown
from tests.engine.child import Child, eventually
from tests.engine.conftest import MEMORY

Queue = shmq.Queue[Any]
Consumer = shmq.Consumer[Any]
SLOW = 30.0


def is_readable(taker: Any, seconds: float = 0.0) -> bool:
    poll = select.poll()
    poll.register(taker, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def take(consumer: Consumer) -> Any:
    with consumer.receive(timeout=0) as m:
        return m.body


def drain(consumer: Consumer) -> list[Any]:
    """Until Empty: from then on it waits."""
    bodies = []
    while True:
        try:
            bodies.append(take(consumer))
        except Empty:
            return bodies


def is_one_told(found: list[Any], told: Consumer) -> bool:
    return bool(found) or is_readable(told)


def are_readable(consumers: list[Consumer], count: int) -> bool:
    return sum(map(is_readable, consumers)) == count


def waiters() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("shmq-"))


def asleep(queue: Queue) -> int:
    return queue._crowd()["asleep"]


def all_wait(queue: Queue, count: int) -> None:
    eventually(lambda: asleep(queue) == count, f"{count} asleep")


# ---- when it is readable -------------------------------------------------------------------------------------------


def test_it_is_readable_from_the_first_message_until_a_receive_finds_nothing(queue: Queue) -> None:
    with queue.consumer() as consumer:
        assert not is_readable(consumer)
        for _ in range(3):
            queue.put_many("ab")
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
    queue.put_many("abc")
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
        queue.put_many("abcd")
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
    leased = broker.queue("leased", lease=0.05)
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
    assert waiters() == []


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
    assert waiters() == []


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
    assert waiters() == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
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
        assert waiters() == []
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)
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
    assert queue._crowd()["consumers"] == 0


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


# ---- among others --------------------------------------------------------------------------------------------------


@pytest.fixture
def patient(broker_dir: Path) -> Any:
    """A queue whose broker waits a minute for whoever is slow: nothing is repaired by time."""
    with shmq.open(broker_dir, memory=MEMORY, patience=60.0) as opened:
        yield opened.queue("jobs")


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
    patient.put_many("ab")
    assert is_readable(first, SLOW)
    second.fileno()
    assert is_readable(second, SLOW)  # it has looked by itself
    assert drain(second) == ["a", "b"]
    all_wait(patient, 1)
    patient.put_many("cd")
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
            queue.put_many("ab")
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
    assert waiters() == []


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
    """Shows S55."""
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
