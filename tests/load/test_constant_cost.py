"""The cost of put, get, settle and wake does not grow with the depth of the queue, nor with its consumers (G6).

Margin: times are medians of turns that alternate, and may differ by FACTOR. The machine may be busy with other
things, and a deep queue does not fit into the caches. A walk over all messages of the queue would cost some thousand
times as much. The cost of a wake is counted in switches of threads and not by a clock. Shows G6.
"""

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.support.offspring import eventually
from tests.support.size import sized

Queue = shmq.Queue[Any]
FACTOR = 4
SHALLOW, DEEP = 10, 50_000
CONSUMERS = 500
TURNS, CALLS = sized(21, 201), 200
SLEEPERS, MESSAGES = 50, 100


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="128MiB", disk="8GiB") as opened:
        yield opened


def put_and_get(queue: Queue) -> None:
    for _ in range(CALLS):
        queue.put(b"x")
        queue.get(timeout=0)


def put_and_settle(queue: Queue) -> None:
    for _ in range(CALLS):
        queue.put(b"x")
        queue.receive(timeout=0).ack()


def put_and_release(queue: Queue) -> None:
    for _ in range(CALLS):
        queue.receive(timeout=0).release()


def put_and_drop(queue: Queue) -> None:
    for _ in range(2 * CALLS):
        queue.put(b"x", timeout=0)


def seconds(work: Callable[[Queue], None], queue: Queue) -> float:
    begin = time.perf_counter()
    work(queue)
    return time.perf_counter() - begin


def spent(work: Callable[[Queue], None], queue: Queue) -> float:
    begin = time.thread_time()
    work(queue)
    return time.thread_time() - begin


def medians(work: Callable[[Queue], None], *queues: Queue) -> list[float]:
    """Of each queue, in turns that alternate, so that what disturbs one disturbs all."""
    turns = [[seconds(work, queue) for queue in queues] for _ in range(TURNS)]
    return [statistics.median(turn[number] for turn in turns) for number in range(len(queues))]


@pytest.mark.alone
@pytest.mark.parametrize("work", [put_and_get, put_and_settle, put_and_release])
def test_a_deep_queue_costs_no_more_than_a_shallow_one(broker: shmq.Broker, work: Callable[[Queue], None]) -> None:
    shallow, deep = broker.queue("shallow", maxsize=60_000), broker.queue("deep", maxsize=60_000)
    shallow.put_many([b"x"] * SHALLOW)
    deep.put_many([b"x"] * DEEP)
    few, many = medians(work, shallow, deep)
    print(f"{few / CALLS * 1e6:.1f} us at depth {SHALLOW}, {many / CALLS * 1e6:.1f} us at depth {DEEP:,}")
    assert many < few * FACTOR
    assert (shallow.qsize(), deep.qsize()) == (SHALLOW, DEEP)


def count(queue: Queue) -> None:
    for _ in range(CALLS):
        queue.qsize()


@pytest.mark.alone
@pytest.mark.memory
def test_counting_a_deep_queue_costs_no_more_than_a_shallow_one(broker: shmq.Broker) -> None:
    shallow, deep = broker.queue("shallow", maxsize=60_000), broker.queue("deep", maxsize=60_000)
    shallow.put_many([b"x"] * SHALLOW)
    deep.put_many([b"x"] * DEEP)
    few, many = medians(count, shallow, deep)
    print(f"{few / CALLS * 1e6:.1f} us at depth {SHALLOW}, {many / CALLS * 1e6:.1f} us at depth {DEEP:,}")
    assert many < few * FACTOR
    deep.get()
    assert (shallow.qsize(), deep.qsize()) == (SHALLOW, DEEP - 1)


@pytest.mark.alone
@pytest.mark.parametrize("max_memory", [None, "16KiB"])
def test_the_oldest_is_dropped_at_the_cost_of_a_get(broker: shmq.Broker, max_memory: shmq.Size | None) -> None:
    """Also where messages come back from disk: it is found without a look at all of those that are back."""
    full = broker.queue("full", maxsize=DEEP, max_memory=max_memory, overflow="drop_oldest")
    taken = broker.queue("taken", maxsize=60_000, max_memory=max_memory)
    for queue in (full, taken):
        queue.put_many([b"x"] * DEEP)
        assert (queue.statistics().flowed > 0) == bool(max_memory)
    turns = [(seconds(put_and_drop, full), seconds(put_and_get, taken)) for _ in range(TURNS)]
    dropping, getting = (statistics.median(turn) for turn in zip(*turns, strict=True))
    print(f"{dropping / CALLS / 2 * 1e6:.1f} us a put that drops, {getting / CALLS * 1e6:.1f} us a put and a get")
    assert dropping / 2 < getting * FACTOR
    assert full.statistics().dropped == TURNS * 2 * CALLS


@pytest.mark.alone
@pytest.mark.parametrize("work", [put_and_get, put_and_settle])
def test_many_registered_consumers_cost_no_more_than_one(broker: shmq.Broker, work: Callable[[Queue], None]) -> None:
    lonely, crowded = broker.queue("lonely"), broker.queue("crowded")
    consumers = [lonely.consumer(), *(crowded.consumer() for _ in range(CONSUMERS))]
    few, many = medians(work, lonely, crowded)
    print(f"{few / CALLS * 1e6:.1f} us with 1 consumer, {many / CALLS * 1e6:.1f} us with {CONSUMERS}")
    assert many < few * FACTOR
    assert crowded.statistics().consumers >= CONSUMERS
    for consumer in consumers:
        consumer.close()


def switches(threads: list[threading.Thread]) -> int:
    """How often they went to sleep by themselves; a thread that is woken for nothing sleeps once more."""
    total = 0
    for thread in threads:
        text = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
        total += int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return total


@contextmanager
def asleep(
    queue: Queue, count: int, use: Callable[[Any], object] = lambda body: None, choosy: bool = False
) -> Iterator[list[threading.Thread]]:
    """So many threads that wait for messages, if choosy for those of their `k`, until block and queue end."""

    def take(number: int) -> None:
        if choosy:
            with queue.consumer(selector=f"k = {number}") as consumer:
                for m in consumer:
                    m.ack()
                    use(m.body)
            return
        with suppress(shmq.ShutDown):
            while True:
                use(queue.get())

    threads = [threading.Thread(target=take, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: queue._waiters()["asleep"] == count, "all sleep")
        yield threads
    finally:
        queue.shutdown()
        for thread in threads:
            thread.join()


def sleep_and_leave(queue: Queue) -> None:
    for _ in range(CALLS // 10):
        with suppress(shmq.Empty):
            queue.get(timeout=0.0001)


@pytest.mark.alone
def test_to_join_many_sleepers_and_leave_them_costs_no_more_than_with_one(broker: shmq.Broker) -> None:
    """CPU time of the one thread, as the others take none. Shows S59, S60."""
    lonely, crowded = broker.queue("lonely"), broker.queue("crowded")
    with asleep(lonely, 1), asleep(crowded, CONSUMERS):
        turns = [[spent(sleep_and_leave, queue) for queue in (lonely, crowded)] for _ in range(TURNS)]
        few, many = (statistics.median(turn[number] for turn in turns) for number in range(2))
    print(f"{few / CALLS * 1e7:.1f} us beside 1 sleeper, {many / CALLS * 1e7:.1f} us beside {CONSUMERS}")
    assert many < few * FACTOR


@pytest.mark.alone
def test_a_message_wakes_one_sleeper_and_not_the_whole_crowd(broker: shmq.Broker) -> None:
    """Shows S70, C4."""
    queue, done = broker.queue("jobs"), broker.queue("done")
    with asleep(queue, SLEEPERS, done.put) as threads:
        before = switches(threads)
        for number in range(MESSAGES):
            queue.put(number)
            assert done.get(timeout=30) == number
        woken = switches(threads) - before
    print(f"{woken} switches for {MESSAGES} messages and {SLEEPERS} sleepers")
    assert woken < MESSAGES * SLEEPERS / 4


@pytest.mark.alone
def test_a_message_wakes_the_one_sleeper_whose_selector_wants_it(broker: shmq.Broker) -> None:
    """All others sleep on, also when something comes that nobody wants."""
    queue, done = broker.queue("jobs"), broker.queue("done")
    with asleep(queue, SLEEPERS, done.put, choosy=True) as threads:
        before = switches(threads)
        for number in range(MESSAGES):
            queue.put(-1, headers={"k": -1})
            queue.put(number, headers={"k": number * 7 % SLEEPERS})
            assert done.get(timeout=30) == number
        woken = switches(threads) - before
    print(f"{woken} switches for {MESSAGES} messages and {SLEEPERS} sleepers")
    assert woken < MESSAGES * SLEEPERS / 10
