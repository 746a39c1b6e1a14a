"""Fork: Broker and Queue work in the child; what the parent has borrowed stays the parent's."""

import os
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import shmq
from tests.engine.child import Child
from tests.engine.conftest import Taker


def in_fork(work: Callable[[], object]) -> None:
    """Runs `work` in a forked child; fails with its traceback if it raised."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        text = ""
        try:
            work()
        except BaseException:
            text = traceback.format_exc()
        os.write(writing, text.encode())
        os._exit(1 if text else 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    assert status == 0, text


def test_broker_and_queue_work_in_the_child_as_a_member_of_its_own(
    broker: shmq.Broker, queue: shmq.Queue[Any], take: Taker
) -> None:
    queue.put("from the parent")

    def work() -> None:
        assert take(queue, 5.0) == "from the parent"
        queue.put({"from": "the child"})
        assert {process.pid for process in broker.statistics().processes} >= {os.getpid(), os.getppid()}
        broker.queue("another").put("x")

    in_fork(work)
    assert queue.get(timeout=0) == {"from": "the child"}
    assert broker.queue("another", create=False).qsize() == 1


def test_messages_consumers_and_loans_stay_the_parents(queue: shmq.Queue[Any]) -> None:
    queue.put_many(["a", "b", b"x" * 10_000])
    consumer = queue.consumer()
    m, borrowed = consumer.receive(timeout=0), queue.receive(timeout=0)
    loan = queue.loan(5)

    def work(joined: bool) -> None:
        if joined:
            queue.put("from the child")
        for message in (m, borrowed):
            for settle in (message.ack, message.release, message.retry, message.reject):
                with pytest.raises(shmq.SettlementError, match="parent"):
                    settle()
        for call in (consumer.receive, lambda: consumer.receive_many(3), lambda: next(iter(consumer))):
            with pytest.raises(shmq.SettlementError, match="parent"):
                call()
        with pytest.raises(shmq.SettlementError):
            loan.commit()
        assert m.body == "a"  # readable for as long as the parent has it
        consumer.close()

    in_fork(lambda: work(False))
    in_fork(lambda: work(True))
    loan.view[:] = b"hello"
    loan.commit()
    m.ack()
    borrowed.ack()
    assert queue.get_many(5, timeout=0) == [b"x" * 10_000, "from the child", b"hello"]
    assert consumer.receive_many(5, timeout=0) == []
    assert queue.statistics().acked == 5


def test_what_the_child_drops_or_leaves_does_not_touch_the_parents_messages(queue: shmq.Queue[Any]) -> None:
    queue.put_many(["a", "b", "c"])
    held = [queue.receive(timeout=0)]
    consumer = queue.consumer()
    held.append(consumer.receive(timeout=0))

    def work() -> None:
        held.clear()
        queue.broker.close()

    in_fork(work)
    statistics = queue.statistics()
    assert (statistics.unsettled, statistics.ready) == (2, 1)
    for m in held:
        m.ack()


def test_a_loan_that_the_child_drops_is_still_the_parents(queue: shmq.Queue[Any]) -> None:
    loans = [queue.loan(100_000)]

    def work() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            queue.qsize()
            loans.clear()

    in_fork(work)
    loans[0].view[:5] = b"hello"
    loans[0].commit(nbytes=5)
    assert queue.get(timeout=0) == b"hello"


def test_views_of_the_parent_are_readable_in_the_child(queue: shmq.Queue[Any]) -> None:
    queue.put(numpy.arange(100_000))
    m = queue.receive(timeout=0)
    array, view = m.array(), m.view()

    def work() -> None:
        queue.qsize()
        assert int(array[-1]) == 99_999
        assert view.nbytes == m.size
        assert int(m.body[5]) == 5

    in_fork(work)
    m.ack()
    in_fork(work)


def test_receive_in_the_child_uses_a_consumer_of_its_own(queue: shmq.Queue[Any]) -> None:
    queue.put_many(["a", "b"])
    m = queue.receive(timeout=0)

    def work() -> None:
        with queue.receive(timeout=5) as other:
            assert other.body == "b"

    in_fork(work)
    m.ack()
    queue.join(timeout=60)


def test_a_closed_broker_is_closed_in_the_child_too(broker_dir: Path) -> None:
    broker = shmq.open(broker_dir, memory="8MiB")
    queue = broker.queue("jobs")
    broker.close()

    def work() -> None:
        with pytest.raises(shmq.Closed):
            queue.put("a")

    in_fork(work)


def test_the_childs_close_is_not_the_parents(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    def work() -> None:
        queue.put("a")
        broker.close()
        with pytest.raises(shmq.Closed):
            queue.put("b")

    in_fork(work)
    assert queue.get(timeout=5) == "a"


def test_a_child_that_ends_by_itself_gives_back_what_it_had(broker_dir: Path, queue: shmq.Queue[Any]) -> None:
    queue.put("a")
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
pid = os.fork()
if pid == 0:
    m = q.receive(timeout=5)
    sys.exit()
os.waitpid(pid, 0)
m = q.receive(timeout=5)
say(m.body, m.delivery_count)
m.release()
"""
    with Child(program, broker_dir) as child:
        assert child.end() == "a 1\n"


def test_ids_of_parent_and_child_differ(queue: shmq.Queue[Any]) -> None:
    ids = [queue.put(n) for n in range(5)]
    for _ in range(3):
        in_fork(lambda: queue.put_many(range(5)))
    ids += [queue.put(n) for n in range(5)]
    seen = [m.id for m in queue.browse()]
    assert len(set(seen)) == len(seen) == 25
    assert set(ids) <= set(seen)


def test_a_fork_while_threads_work_leaves_a_usable_child(queue: shmq.Queue[Any]) -> None:
    """Locks of other threads are copied as they are at the fork; the child must not wait for any of them."""
    program = """
broker = shmq.open(memory="8MiB")
q = broker.queue("jobs")
stop = threading.Event()
def work():
    while not stop.is_set():
        c = q.consumer()
        q.put("x" * 300)
        with c.receive(timeout=10):
            pass
        c.close()
        broker.queue("jobs")
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for n in range(60):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        if n % 2:
            m = broker.queue("mine").put("a")
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert status == 0, (n, status)
stop.set()
for t in threads: t.join()
say("done")
"""
    with Child(program) as child:
        assert child.line() == "done"
        child.end()
