"""Ctrl-C in a wait: raised at once, nothing was taken, nothing put, nothing lost."""

import threading
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import PATIENCE, Child, eventually
from tests.engine.conftest import fill

WAITS = {
    "get": "q.get()",
    "get_many": "q.get_many(5)",
    "receive": "q.receive()",
    "receive_many": "q.receive_many(5)",
    "consumer": "q.consumer().receive()",
    "prefetch": "q.consumer(prefetch=1).receive()",
    "loop": "next(iter(q.consumer()))",
    "browse": "next(q.browse(start='next', follow=True))",
}
PROGRAM = """
q = shmq.open(sys.argv[1]).queue("jobs")
say("waits")
try:
    {wait}
except KeyboardInterrupt:
    say("interrupted")
else:
    say("came back")
listen()
say(q.qsize(), q.statistics().unsettled)
"""


@pytest.mark.parametrize("wait", sorted(WAITS))
def test_an_interrupt_ends_a_wait_at_once_and_nothing_was_taken(
    broker_dir: Path, queue: shmq.Queue[Any], wait: str
) -> None:
    with Child(PROGRAM.format(wait=WAITS[wait]), broker_dir) as child:
        assert child.line() == "waits"
        child.sleeps()
        child.interrupt()
        assert child.line() == "interrupted"
        queue.put_many(["a", "b"])
        child.tell("look")
        assert child.line() == "2 0"
        child.end()
    assert queue.get_many(2, timeout=0) == ["a", "b"]


@pytest.mark.parametrize("put", ["q.put(3)", "q.put(b'3')", "q.put_many([3, 4])", "q.loan(1).commit()"])
def test_an_interrupt_ends_a_put_on_a_full_queue_and_nothing_was_put(
    broker_dir: Path, broker: shmq.Broker, put: str
) -> None:
    queue = broker.queue("jobs", maxsize=2)
    queue.put_many([1, 2])
    with Child(PROGRAM.format(wait=put), broker_dir) as child:
        assert child.line() == "waits"
        eventually(lambda: queue.statistics().producers_waiting == 1, "a waiting producer")
        child.sleeps()
        child.interrupt()
        assert child.line() == "interrupted"
        child.tell("look")
        assert child.line() == "2 0"
        child.end()
    assert queue.get_many(5, timeout=0) == [1, 2]
    assert queue.statistics().put == 2


def test_an_interrupt_ends_a_put_that_waits_for_memory(broker_dir: Path, memory_only: shmq.Broker) -> None:
    queue = memory_only.queue("jobs")
    with pytest.raises(shmq.Full):
        fill(queue, b"x" * 1_000_000)
    had = queue.qsize()
    program = PROGRAM.format(wait="q.put(b'x' * 1_000_000)")
    with Child(program, broker_dir) as child:
        assert child.line() == "waits"
        child.sleeps()
        child.interrupt()
        assert child.line() == "interrupted"
        child.tell("look")
        assert child.line() == f"{had} 0"
        child.end()


def test_an_interrupt_ends_a_join(broker_dir: Path, queue: shmq.Queue[Any]) -> None:
    queue.put("a")
    with Child(PROGRAM.format(wait="q.join()"), broker_dir) as child:
        assert child.line() == "waits"
        child.sleeps()
        child.interrupt()
        assert child.line() == "interrupted"
        child.tell("look")
        assert child.line() == "1 0"
        child.end()


def test_interrupts_in_the_middle_of_traffic_lose_nothing_that_is_borrowed(
    broker_dir: Path, queue: shmq.Queue[Any]
) -> None:
    """Signals fall wherever they like, also between a message's arrival and its variable. Shows G2."""
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
done, over = 0, False

def work():
    global done, over
    while not over:
        try:
            with q.receive(timeout=20) as m:
                over = m.body is None
            done += not over
        except (KeyboardInterrupt, shmq.SettlementError):
            over = False

say("runs")
while not over:
    try:
        work()
    except KeyboardInterrupt:
        pass  # one that came on the way out of the inner handler
say(done, q.statistics().acked)
"""
    total = 3000
    with Child(program, broker_dir) as child:
        assert child.line() == "runs"
        stop = threading.Event()

        def interrupt() -> None:
            while not stop.wait(0.003):
                child.interrupt()

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            for n in range(total):
                queue.put(n, timeout=PATIENCE)
                if n % 10 == 0:
                    eventually(lambda: queue.qsize() == 0, "an empty queue")
            queue.join(timeout=PATIENCE)
        finally:
            stop.set()
            thread.join()
        queue.put(None)
        done, acked = map(int, child.line().split())
        child.end()
    # An interrupt between the ack and the child's next line hides a message from its own count, not from the queue.
    assert acked == total + 1
    assert done <= total
    assert queue.statistics().dead_lettered == 0


def test_a_signal_handler_may_close_the_consumer_that_waits(broker_dir: Path, queue: shmq.Queue[Any]) -> None:
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
c = q.consumer()
signal.signal(signal.SIGINT, lambda number, frame: c.close())
say("waits")
try:
    c.receive()
except shmq.Closed as error:
    say(error)
say(q.statistics().consumers)
"""
    with Child(program, broker_dir) as child:
        assert child.line() == "waits"
        child.sleeps()
        child.interrupt()
        assert "consumer of queue 'jobs' is closed" in child.line()
        assert child.line() == "0"
        child.end()


def test_a_signal_handler_may_close_the_broker_that_waits(broker_dir: Path, queue: shmq.Queue[Any]) -> None:
    program = """
broker = shmq.open(sys.argv[1])
q = broker.queue("jobs")
signal.signal(signal.SIGINT, lambda number, frame: broker.close())
say("waits")
try:
    {wait}
except shmq.Closed as error:
    say(error)
"""
    for wait in ("q.get()", "q.receive()", "q.consumer().receive()"):
        with Child(program.format(wait=wait), broker_dir) as child:
            assert child.line() == "waits"
            child.sleeps()
            child.interrupt()
            assert "closed in this process" in child.line()
            child.end()


def test_a_handler_that_returns_lets_the_wait_go_on(broker_dir: Path, queue: shmq.Queue[Any]) -> None:
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
signal.signal(signal.SIGINT, lambda number, frame: say("handled"))
say("waits")
say(q.get())
"""
    with Child(program, broker_dir) as child:
        assert child.line() == "waits"
        for _ in range(3):
            child.sleeps()
            child.interrupt()
            assert child.line() == "handled"
        queue.put("at last")
        assert child.line() == "at last"
        child.end()


def test_a_message_that_was_taken_but_never_lent_goes_back_uncounted(queue: shmq.Queue[Any]) -> None:
    """An interrupt between the taking and the lending leaves such a message. Shows S22."""
    queue.put_many(["a", "b" * 10_000])
    consumer = queue.consumer()
    messages = [consumer._receive(0) for _ in range(2)]
    assert (queue.qsize(), queue.statistics().unsettled) == (0, 2)
    messages.clear()
    assert (queue.qsize(), queue.statistics().unsettled) == (2, 0)
    batch = [consumer._receive_many(2, 0)]
    assert (queue.qsize(), queue.statistics().unsettled) == (0, 2)
    batch.clear()
    assert (queue.qsize(), queue.statistics().unsettled) == (2, 0)
    for body in ("a", "b" * 10_000):
        with consumer.receive(timeout=0) as m:
            assert (m.body, m.delivery_count) == (body, 1)
    consumer.close()
