"""The four outcomes: once each, by whoever is first, and what a with block makes of its end."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child
from tests.engine.conftest import fail

Outcome = Callable[[shmq.Message[Any]], None]
OUTCOMES: dict[str, Outcome] = {
    "ack": lambda m: m.ack(),
    "release": lambda m: m.release(),
    "retry": lambda m: m.retry("too early"),
    "reject": lambda m: m.reject("no use"),
}


@pytest.mark.parametrize("second", sorted(OUTCOMES))
@pytest.mark.parametrize("first", sorted(OUTCOMES))
def test_a_second_settlement_is_refused_and_changes_nothing(queue: shmq.Queue[Any], first: str, second: str) -> None:
    """Shows E10."""
    queue.put({"n": 1})
    m = queue.receive(timeout=0)
    OUTCOMES[first](m)
    before = queue.statistics()
    with pytest.raises(shmq.SettlementError) as caught:
        OUTCOMES[second](m)
    assert "MainThread" in str(caught.value)
    assert " s ago" in str(caught.value)
    assert m.settled
    after = queue.statistics()
    assert (after.ready, after.unsettled, after.acked, after.dead_lettered) == (
        before.ready,
        before.unsettled,
        before.acked,
        before.dead_lettered,
    )


@pytest.mark.parametrize(
    "unfit",
    [
        lambda m: m.retry(5),
        lambda m: m.retry(ValueError),
        lambda m: m.reject(b"no"),
        lambda m: m.retry("no", delay="5"),
        lambda m: m.release(elsewhere=1),
    ],
)
def test_an_argument_of_another_type_leaves_the_message_in_hand(
    queue: shmq.Queue[Any], unfit: Callable[[Any], None]
) -> None:
    queue.put("a")
    m = queue.receive(timeout=0)
    with pytest.raises(TypeError, match=r"expected|give"):
        unfit(m)
    assert queue.statistics().unsettled == 1
    m.ack()
    assert queue.statistics().acked == 1


def test_a_with_block_left_normally_acks(queue: shmq.Queue[Any]) -> None:
    queue.put("a")
    before = []
    with queue.receive(timeout=0) as m:
        before.append(m.settled)
    assert [*before, m.settled] == [False, True]
    assert queue.statistics().acked == 1
    assert queue.qsize() == 0


def test_an_exception_in_a_with_block_retries_and_goes_on(queue: shmq.Queue[Any]) -> None:
    """Shows S22, E8, E13."""
    queue.put("a")
    with pytest.raises(ZeroDivisionError), queue.receive(timeout=0):
        fail()
    with queue.receive(timeout=0) as again:
        assert (again.body, again.redelivered, again.delivery_count) == ("a", True, 2)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_is_not_the_fault_of_the_message_releases_it_uncounted(
    queue: shmq.Queue[Any], kind: type[BaseException]
) -> None:
    queue.put("a")
    with pytest.raises(kind), queue.receive(timeout=0):
        raise kind
    with queue.receive(timeout=0) as again:
        assert (again.body, again.redelivered, again.delivery_count) == ("a", True, 1)


@pytest.mark.parametrize("name", sorted(OUTCOMES))
def test_a_with_block_leaves_what_was_settled_inside(queue: shmq.Queue[Any], name: str) -> None:
    queue.put("a")
    with queue.receive(timeout=0) as m:
        OUTCOMES[name](m)
    queue.put("b")
    m = queue.receive(timeout=0)
    OUTCOMES[name](m)
    with pytest.raises(ZeroDivisionError), m:
        fail()


def test_the_end_of_a_with_block_after_a_steal_says_that_the_work_may_be_done_twice(broker: shmq.Broker) -> None:
    """Shows E9, E11, R8."""
    queue = broker.queue("stolen", maxsize=1, overflow="drop_oldest")
    queue.put("a")
    with pytest.raises(shmq.SettlementError, match="taken away"), queue.receive(timeout=0):
        queue.put("b")


def test_a_body_that_was_taken_away_is_gone_and_not_damaged(broker: shmq.Broker) -> None:
    queue, other = broker.queue("stolen", maxsize=1, overflow="drop_oldest"), broker.queue("other")
    queue.put("a" * 10_000)
    m = queue.receive(timeout=0)
    queue.put("b")
    other.put("b" * 10_000)  # in the same block
    with pytest.raises(shmq.SettlementError, match="taken away"):
        _ = m.body
    assert other.get(timeout=0) == "b" * 10_000


def test_an_exception_after_a_steal_is_what_the_caller_sees(broker: shmq.Broker) -> None:
    """Shows G3."""
    queue = broker.queue("stolen", maxsize=1, overflow="drop_oldest")
    queue.put("a")
    m = queue.receive(timeout=0)
    queue.put("b")
    with pytest.raises(ZeroDivisionError) as caught, m:
        fail()
    assert any("taken away" in note for note in caught.value.__notes__)


def test_of_many_threads_that_settle_one_message_one_is_first(queue: shmq.Queue[Any]) -> None:
    """Shows S49, E10, G3."""
    for _ in range(20):
        queue.put("a")
        m = queue.receive(timeout=1.0)
        barrier = threading.Barrier(8)
        results: list[bool] = []

        def settle(m: shmq.Message[Any] = m, barrier: threading.Barrier = barrier, to: list[bool] = results) -> None:
            barrier.wait()
            try:
                m.ack()
            except shmq.SettlementError:
                to.append(False)
            else:
                to.append(True)

        threads = [threading.Thread(target=settle) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == [False] * 7 + [True]
    assert queue.statistics().acked == 20


def test_the_body_can_be_read_after_the_settlement(queue: shmq.Queue[Any]) -> None:
    for body in ({"n": 1}, "x" * 10_000, b"small"):
        queue.put(body)
        m = queue.receive(timeout=0)
        m.ack()
        assert m.body == body


def test_a_released_message_goes_before_all_later_ones(queue: shmq.Queue[Any]) -> None:
    """Shows S2, S81, R2, G1."""
    queue.put_many(range(10))
    first, second, third = queue.receive_many(3, timeout=0)
    second.release()
    again = queue.receive(timeout=0)
    assert again.position == second.position
    third.release()
    first.release()
    with queue.consumer() as consumer:
        assert [m.body for m in consumer.receive_many(3, timeout=0)] == [0, 2, 3]


def test_a_retried_message_keeps_its_place(queue: shmq.Queue[Any]) -> None:
    queue.put_many(range(3))
    queue.receive(timeout=0).retry("later")
    assert queue.get_many(3, timeout=0) == [0, 1, 2]


def test_a_message_released_here_goes_first_in_another_process(broker_dir: Path, queue: shmq.Queue[Any]) -> None:
    """Once release() has returned, nobody gets a later one first - in whatever process. Shows S2, S81, G1."""
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
while (word := listen()) != "end":
    with q.receive(timeout=10) as m:
        say(m.body)
"""
    with Child(program, broker_dir) as child:
        for n in range(50):
            queue.put_many([2 * n, 2 * n + 1])
            m = queue.receive(timeout=0)
            assert m.body == 2 * n
            m.release()
            child.tell("take")
            assert child.line() == str(2 * n)
            assert queue.get(timeout=0) == 2 * n + 1
        child.tell("end")
        child.end()


def test_attributes_of_a_message_say_where_it_comes_from(broker: shmq.Broker) -> None:
    queue = broker.queue("named")
    number = queue.put({"n": 1}, headers={"source": "web", "n": 7, "on": True, "raw": b"\0", "none": None, "f": 1.5})
    with queue.receive(timeout=0) as m:
        assert m.id == number
        assert m.position == 0
        assert m.queue is queue
        assert m.size == len(b'{"n":1}')
        assert m.content_type == "application/json"
        assert dict(m.headers) == {"source": "web", "n": 7, "on": True, "raw": b"\0", "none": None, "f": 1.5}
        assert (m.redelivered, m.delivery_count, m.death) == (False, 1, None)
        with pytest.raises(TypeError):
            m.headers["source"] = "other"  # type: ignore[index]


def test_a_message_cannot_be_made_by_hand() -> None:
    with pytest.raises(TypeError, match="receive"):
        shmq.Message()
