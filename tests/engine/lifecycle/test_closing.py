"""Closing: consumers and brokers, with messages in hand and threads that wait, twice, and not at all."""

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child, eventually
from tests.engine.conftest import MEMORY, fail
from tests.engine.lifecycle.test_shutdown import TAKE_CALLS, finish, in_thread


def test_a_closed_consumer_gives_back_what_it_has_in_place_and_uncounted(queue: shmq.Queue[Any]) -> None:
    """Shows S2, S88, C11, R3."""
    queue.put_many(range(4))
    with queue.consumer() as consumer:
        held = consumer.receive_many(3, timeout=0)
    again = queue.receive_many(4, timeout=0)
    assert [(m.body, m.delivery_count) for m in again] == [(0, 1), (1, 1), (2, 1), (3, 1)]
    for m in held:
        assert not m.settled
        with pytest.raises(shmq.SettlementError, match="closed"):
            m.ack()
    with pytest.raises(shmq.SettlementError, match="body has gone"):
        held[0].body  # noqa: B018
    assert consumer.closed
    consumer.close()


def test_calls_on_a_closed_consumer_say_so(queue: shmq.Queue[Any]) -> None:
    consumer = queue.consumer()
    consumer.close()
    for call in (consumer.receive, lambda: consumer.receive_many(2), lambda: next(iter(consumer))):
        with pytest.raises(shmq.Closed, match="make a new one"):
            call()


def test_a_loop_that_is_left_gives_back_what_is_in_hand(queue: shmq.Queue[Any]) -> None:
    queue.put_many(["a", "b"])
    consumer = queue.consumer()
    held = []
    for m in consumer:
        held.append(m)
        break
    assert queue.qsize() == 2
    with pytest.raises(shmq.SettlementError):
        held[0].ack()
    assert consumer.receive(timeout=0).body == "a"


def test_a_loop_that_ends_by_an_exception_has_retried(queue: shmq.Queue[Any]) -> None:
    queue.put("a")

    def loop() -> None:
        for m in queue.consumer():
            with m:
                fail()

    with pytest.raises(ZeroDivisionError):
        loop()
    assert queue.receive(timeout=0).delivery_count == 2


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("prefetch", [None, 1, 10])
def test_a_consumer_closed_while_threads_wait_ends_their_waits(
    queue: shmq.Queue[Any], threads: int, prefetch: int | None
) -> None:
    """Shows S17, C11."""
    consumer = queue.consumer(prefetch=prefetch)
    waiting = [in_thread(consumer.receive) for _ in range(threads)]
    expected = 1 if prefetch == 1 else threads
    eventually(lambda: queue._waiters()["asleep"] == expected, "waiting threads")
    consumer.close()
    for thread, results in waiting:
        finish(thread)
        assert isinstance(results[0], shmq.Closed)
    queue.put("a")
    assert queue.statistics().consumers == 0
    assert queue.get(timeout=0) == "a"


def test_closing_and_reopening_consumers_under_traffic_loses_and_mixes_nothing(queue: shmq.Queue[Any]) -> None:
    """Shows S17, C11, R3."""
    total = 3000
    taken: list[int] = []
    current = [queue.consumer()]
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            try:
                with current[0].receive(timeout=0.05) as m:
                    body = m.body
                taken.append(body)
            except (shmq.Closed, shmq.Empty):
                continue
            except shmq.SettlementError:
                continue  # closed while it was in hand: it went back

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for n in range(total):
        queue.put(n)
        if n % 20 == 0:
            old, current[0] = current[0], queue.consumer()
            old.close()
    queue.join(timeout=30)
    stop.set()
    for worker in workers:
        finish(worker)
    current[0].close()
    assert sorted(taken) == list(range(total))
    statistics = queue.statistics()
    assert (statistics.acked, statistics.unsettled, statistics.consumers) == (total, 0, 0)


# ---- brokers ---------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[shmq.Broker, shmq.Queue[Any]], Any]] = {
    "queue": lambda b, q: b.queue("jobs"),
    "queues": lambda b, q: b.queues(),
    "statistics": lambda b, q: b.statistics(),
    "put": lambda b, q: q.put("a"),
    "put_slow": lambda b, q: q.put([1]),
    "put_many": lambda b, q: q.put_many(["a", "b"]),
    "get": lambda b, q: q.get(),
    "get_many": lambda b, q: q.get_many(2),
    "receive": lambda b, q: q.receive(),
    "receive_many": lambda b, q: q.receive_many(2),
    "consumer": lambda b, q: q.consumer(),
    "browse": lambda b, q: list(q.browse()),
    "browse_next": lambda b, q: list(q.browse(start="next")),
    "loan": lambda b, q: q.loan(5),
    "loan_array": lambda b, q: q.loan_array(5, "int8"),
    "qsize": lambda b, q: q.qsize(),
    "queue.statistics": lambda b, q: q.statistics(),
    "options": lambda b, q: q.options,
    "join": lambda b, q: q.join(),
    "purge": lambda b, q: q.purge(),
    "shutdown": lambda b, q: q.shutdown(),
    "reopen": lambda b, q: q.reopen(),
    "delete": lambda b, q: q.delete(),
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_every_call_after_the_close_of_the_broker_is_refused(broker_dir: Path, name: str) -> None:
    broker = shmq.open(broker_dir, memory=MEMORY)
    queue = broker.queue("jobs")
    queue.put("a")
    broker.close()
    broker.close()
    with pytest.raises(shmq.Closed, match="open it again"):
        CALLS[name](broker, queue)


def test_names_can_be_read_after_the_close(broker_dir: Path) -> None:
    broker = shmq.open(broker_dir, memory=MEMORY)
    queue = broker.queue("jobs")
    broker.close()
    assert (queue.name, queue.broker, broker.path) == ("jobs", broker, str(broker_dir))
    assert broker.url == f"shmq://{broker_dir}"


@pytest.mark.parametrize("name", sorted(TAKE_CALLS))
def test_the_close_of_the_broker_ends_the_waits_of_takers(broker: shmq.Broker, name: str) -> None:
    queue = broker.queue("jobs")
    thread, results = in_thread(lambda: TAKE_CALLS[name](queue))
    eventually(lambda: queue._waiters()["asleep"] == 1, "a waiting thread")
    broker.close()
    finish(thread)
    assert isinstance(results[0], shmq.Closed)


def test_the_close_of_the_broker_ends_all_other_waits(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=1)
    queue.put("a")
    waiting = [
        in_thread(lambda: queue.put("b")),
        in_thread(lambda: queue.join()),
        in_thread(lambda: list(queue.browse(start="next", follow=True))),
    ]
    eventually(lambda: queue.statistics().producers_waiting == 1, "a waiting producer")
    broker.close()
    for thread, results in waiting:
        finish(thread)
        assert isinstance(results[0], shmq.Closed), results


def test_the_close_of_the_broker_gives_back_what_its_consumers_have(broker_dir: Path) -> None:
    """Shows S88, R3."""
    broker = shmq.open(broker_dir, memory=MEMORY)
    queue = broker.queue("jobs")
    queue.put_many(["a", "b", "c"])
    consumer = queue.consumer()
    held = [queue.receive(timeout=0), consumer.receive(timeout=0)]
    broker.close()
    for m in held:
        with pytest.raises(shmq.SettlementError):
            m.ack()
        with pytest.raises(shmq.SettlementError):
            m.body  # noqa: B018
    consumer.close()
    with shmq.open(broker_dir) as again:
        messages = again.queue("jobs").receive_many(3, timeout=0)
        assert [(m.body, m.delivery_count) for m in messages] == [("a", 1), ("b", 1), ("c", 1)]


def test_handles_opened_separately_count(broker_dir: Path) -> None:
    first = shmq.open(broker_dir, memory=MEMORY)
    second = shmq.open(broker_dir)
    assert len(second.statistics().processes) == 1
    first.queue("jobs").put("a")
    first.close()
    with pytest.raises(shmq.Closed):
        first.queue("jobs")
    queue = second.queue("jobs")
    assert queue.get(timeout=0) == "a"
    second.close()
    with pytest.raises(shmq.Closed):
        queue.get(timeout=0)


def test_a_url_opens_the_same_broker(broker_dir: Path, broker: shmq.Broker) -> None:
    with shmq.open(broker.url, create=False) as same:
        same.queue("jobs").put("a")
    assert broker.queue("jobs").get(timeout=0) == "a"


def test_a_broker_that_was_never_closed_is_left_when_the_process_ends(broker_dir: Path, broker: shmq.Broker) -> None:
    program = "b = shmq.open(sys.argv[1]); q = b.queue('jobs'); q.put('a'); m = q.receive(); say(os.getpid())"
    with Child(program, broker_dir) as child:
        child.end()
    (process,) = broker.statistics().processes
    assert process.pid == os.getpid()
    assert broker.queue("jobs").statistics().deaths == 0


def test_an_anonymous_broker_leaves_nothing_behind() -> None:
    program = """
b = shmq.open(memory="8MiB")
b.queue("jobs").put("a")
name = b.url.rpartition("/")[2]
assert os.path.exists("/dev/shm/" + name)
say(name)
"""
    with Child(program) as child:
        name = child.end().strip()
    assert name.startswith("shmq-")
    assert not Path("/dev/shm", name).exists()


def test_the_memory_of_a_closed_broker_is_given_back(broker_dir: Path) -> None:
    for _ in range(5):
        broker = shmq.open(broker_dir, memory=MEMORY)
        broker.queue("jobs").put("a")
        name = os.path.basename(broker._membership.member.name)
        broker.close()
    del broker
    gc.collect()
    assert name not in Path("/proc/self/maps").read_text()
