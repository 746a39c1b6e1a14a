"""A consumer of several queues passes by those that were empty, until something has come: whatever makes a message
available there, it gets it in turn, although another queue keeps it busy.

The patience is a minute: nothing is found only because it looks at all of them now and then. Shows G2.
"""

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.core.queue import reap
from tests.engine.child import Child, eventually

Queue = shmq.Queue[Any]

QUIET = 20  # queues beside the busy one
WANTED = "wanted"


@pytest.fixture
def patient(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="32MiB", disk="8GiB", patience=60.0) as opened:
        yield opened


def put(queue: Queue) -> None:
    queue.put(WANTED)


def put_many(queue: Queue) -> None:
    queue.put_many([WANTED])


def put_with_delay(queue: Queue) -> None:
    queue.put(WANTED, delay=0.05)
    eventually(lambda: queue.qsize() == 1, "what is due")


def release(queue: Queue) -> None:
    queue.put(WANTED)
    held = queue.receive(timeout=0)
    settle_down(queue)
    held.release()


def release_with_delay(queue: Queue) -> None:
    queue.put(WANTED)
    held = queue.receive(timeout=0)
    settle_down(queue)
    held.release(delay=0.05)
    eventually(lambda: queue.qsize() == 1, "what is due")


def close(queue: Queue) -> None:
    consumer = queue.consumer()
    queue.put(WANTED)
    held = consumer.receive(timeout=0)
    settle_down(queue)
    consumer.close()
    del held


def move(queue: Queue) -> None:
    other = shmq.open(queue_broker(queue)).queue("elsewhere")
    other.put(WANTED)
    other.move(queue)


def die(queue: Queue) -> None:
    other = shmq.open(queue_broker(queue)).queue(f"others of {queue.name}", dead_letter=queue.name)
    other.put(WANTED)
    other.receive(timeout=0).reject()


def end_of_lease(queue: Queue) -> None:
    queue.alter(lease=0.05)
    queue.put(WANTED)
    held = queue.receive(timeout=0)
    settle_down(queue)
    eventually(lambda: queue.qsize() == 1, "the end of the lease")
    del held


def reopen(queue: Queue) -> None:
    queue.shutdown(immediate=True)
    settle_down(queue)
    queue.reopen()
    queue.put(WANTED)


def death_of_a_consumer(queue: Queue) -> None:
    queue.put(WANTED)
    with Child(
        'm = shmq.open(sys.argv[1]).queue(sys.argv[2]).receive()\nsay("has it")\nlisten()', *place(queue)
    ) as child:
        assert child.line() == "has it"
        settle_down(queue)
        os.kill(child.pid, signal.SIGKILL)
        child.process.wait(120)
    reap(queue._membership.live())


def put_by_another_process(queue: Queue) -> None:
    with Child('shmq.open(sys.argv[1]).queue(sys.argv[2]).put("wanted")', *place(queue)) as child:
        child.end()


def flow(queue: Queue) -> None:
    queue.alter(max_memory=1)
    queue.put_many([WANTED] * 40)


EVENTS = [
    put,
    put_many,
    put_with_delay,
    release,
    release_with_delay,
    close,
    move,
    die,
    end_of_lease,
    reopen,
    death_of_a_consumer,
    put_by_another_process,
    flow,
]

rounds: dict[str, Callable[[], None]] = {}


def queue_broker(queue: Queue) -> str:
    path = queue._membership.path
    assert path is not None
    return path


def place(queue: Queue) -> tuple[str, str]:
    return queue_broker(queue), queue.name


def settle_down(queue: Queue) -> None:
    """The consumer finds nothing in the quiet queues, and remembers it."""
    rounds[queue_broker(queue)]()


@pytest.mark.memory
@pytest.mark.parametrize("event", EVENTS)
def test_what_comes_to_a_quiet_queue_is_received_in_turn(
    patient: shmq.Broker, broker_dir: Path, event: Callable[[Queue], None]
) -> None:
    busy = patient.queue("busy")
    quiet = [patient.queue(f"quiet {i}") for i in range(QUIET)]
    with patient.consumer(busy, *quiet) as consumer:

        def some_of_busy() -> None:
            busy.put_many(range(5))
            for _ in range(5):
                with consumer.receive(timeout=0) as m:
                    assert m.queue == busy

        rounds[queue_broker(busy)] = some_of_busy
        some_of_busy()
        for chosen in (quiet[7], quiet[0]):
            event(chosen)
            busy.put_many(range(5))
            found = [consumer.receive(timeout=0) for _ in range(2)]
            assert [m.body for m in found if m.queue == chosen] == [WANTED]
            for m in found:
                m.ack()
            for queue in (busy, chosen):
                queue.purge()
            chosen.alter(lease=None)
            some_of_busy()


@pytest.mark.memory
def test_a_group_that_is_free_again_and_a_deletion_are_noticed(patient: shmq.Broker) -> None:
    busy, grouped = patient.queue("busy"), patient.queue("grouped", groups="shared")
    grouped.put_many(["first", "second"], group="a")
    held = grouped.receive(timeout=0)
    with patient.consumer(busy, grouped) as consumer:
        busy.put_many(range(20))
        for _ in range(5):
            with consumer.receive(timeout=0) as m:
                assert m.queue == busy
        held.ack()
        bodies = []
        for _ in range(2):
            with consumer.receive(timeout=0) as m:
                bodies.append(m.body)
        assert "second" in bodies
        consumer.receive(timeout=0).ack()
        grouped.delete()
        with pytest.raises(shmq.NotFound):
            consumer.receive(timeout=0)


def test_a_message_that_was_dropped_unsettled_is_told_by_the_next_call(patient: shmq.Broker) -> None:
    queues = [patient.queue(f"quiet {i}") for i in range(3)]
    with patient.consumer(*queues) as consumer:
        queues[1].put("a")
        consumer.receive(timeout=0)
        with pytest.raises(shmq.SettlementError, match="dropped"):
            consumer.receive(timeout=0)
        with consumer.receive(timeout=0) as m:
            assert (m.body, m.delivery_count) == ("a", 2)


@pytest.mark.memory
def test_of_many_producers_and_consumers_of_several_queues_nothing_stays_behind(broker_dir: Path, seed: int) -> None:
    """Producers put to random queues, consumers of all of them take, and a message that nobody looks at would stay."""
    each, queues_count = 3_000, 12
    with shmq.open(broker_dir, memory="32MiB", patience=60.0) as broker:
        queues = [broker.queue(f"q{i}") for i in range(queues_count)]
        producer = f"""
import random
numbers, broker = random.Random(int(sys.argv[2])), shmq.open(sys.argv[1])
queues = [broker.queue(f"q{{i}}") for i in range({queues_count})]
for number in range({each}):
    numbers.choice(queues).put([int(sys.argv[2]), number])
"""
        numbers = random.Random(seed)
        got: list[tuple[int, int]] = []
        lock = threading.Lock()

        def consume() -> None:
            with broker.consumer(*queues) as consumer:
                while len(got) < 2 * each:
                    try:
                        m = consumer.receive(timeout=0.2)
                    except shmq.Empty:
                        continue
                    with lock:
                        got.append(tuple(m.body))
                    m.ack()

        with Child(producer, broker_dir, seed) as one, Child(producer, broker_dir, seed + 1) as other:
            threads = [threading.Thread(target=consume) for _ in range(numbers.choice([1, 2]))]
            for thread in threads:
                thread.start()
            for child in (one, other):
                child.end()
            for thread in threads:
                thread.join(120)
                assert not thread.is_alive()
        assert sorted(got) == sorted((who, n) for who in (seed, seed + 1) for n in range(each))
