"""Consumers that take some messages only: what they get, in which order, and who is woken for what."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import shmq
from shmq.errors import Empty, SelectorError
from tests.engine.child import eventually
from tests.engine.lifecycle.test_shutdown import finish, in_thread
from tests.support.size import sized


@pytest.fixture(params=[1, 3], ids=["plain", "priorities"])
def queue(broker: shmq.Broker, request: pytest.FixtureRequest) -> shmq.Queue[Any]:
    return broker.queue("images", **({} if request.param == 1 else {"priorities": request.param}))


def fill(queue: shmq.Queue[Any], count: int) -> None:
    for n in range(count):
        queue.put(n, headers={"kind": "png" if n % 3 == 0 else "jpeg", "n": n})


def take(consumer: shmq.Consumer[Any]) -> Any:
    with consumer.receive(timeout=0) as m:
        return m.body


def test_a_consumer_takes_what_it_selects_in_order_and_leaves_the_rest(queue: shmq.Queue[Any]) -> None:
    """Looking ahead, and taking from the middle. Shows S5, S23, S80, S87."""
    fill(queue, 30)
    with queue.consumer(selector="kind = 'png'") as consumer:
        for expected in range(0, 30, 3):
            with consumer.receive(timeout=0) as m:
                assert m.body == expected
        with pytest.raises(Empty):
            consumer.receive(timeout=0)
    assert queue.get_many(99, timeout=0) == [n for n in range(30) if n % 3]


@pytest.mark.in_hand
def test_what_is_given_back_comes_again_first_to_whoever_selects_it(queue: shmq.Queue[Any]) -> None:
    """Everybody who is past it can see it again. Shows S2, S81, G1."""
    fill(queue, 12)
    with queue.consumer(selector="kind = 'png'") as one, queue.consumer(selector="n < 100") as two:
        taken = [one.receive(timeout=0) for _ in range(3)]
        assert [m.body for m in taken] == [0, 3, 6]
        assert [take(two) for _ in range(4)] == [1, 2, 4, 5]
        taken[1].release()
        taken[0].release()
        assert [take(two), take(one), take(one)] == [0, 3, 9]
        assert [take(two) for _ in range(4)] == [7, 8, 10, 11]


def test_a_sleeper_is_woken_for_what_it_selects_whoever_else_sleeps(queue: shmq.Queue[Any]) -> None:
    """A wake-up that meant another is passed on. Shows S43, S55, S74."""
    got: dict[int, int] = {}
    ready = threading.Barrier(9)

    def take_one(n: int) -> None:
        with queue.consumer(selector=f"n = {n}") as consumer:
            ready.wait(20)
            with consumer.receive(timeout=20) as m:
                got[n] = m.body

    threads = [threading.Thread(target=take_one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    ready.wait(20)
    for n in reversed(range(8)):
        queue.put(n, headers={"n": n})
    for thread in threads:
        thread.join(120)
    assert got == {n: n for n in range(8)}


def test_released_elsewhere_it_never_comes_back_to_this_consumer(queue: shmq.Queue[Any]) -> None:
    queue.put_many(["a", "b"])
    with queue.consumer() as one:
        m = one.receive(timeout=0)
        assert m.body == "a"
        m.release(elsewhere=True)
        assert take(one) == "b"
        with pytest.raises(Empty):
            one.receive(timeout=0)
        with queue.consumer() as two:
            with two.receive(timeout=0) as again:
                assert (again.body, again.redelivered, again.delivery_count) == ("a", True, 1)


@pytest.mark.parametrize("selector", [None, "TRUE"])
def test_released_elsewhere_another_thread_of_this_consumer_does_not_get_it_either(
    queue: shmq.Queue[Any], selector: str | None
) -> None:
    """That thread is the only one that waits. Many times, so that the refusal meets each step of its look."""
    with queue.consumer() as other:
        for number in range(sized(100, 3000)):
            with queue.consumer(selector=selector) as one:
                queue.put(f"not for one {number}")
                m = one.receive(timeout=0)
                thread, results = in_thread(one.receive)
                if number % 2:
                    eventually(lambda: queue._waiters()["asleep"] == 1, "the other thread asleep")
                m.release(elsewhere=True)
                queue.put(f"for one {number}")
                finish(thread)
                found = results.pop()
                assert isinstance(found, shmq.Message)
                assert found.body == f"for one {number}"
                found.ack()
                with other.receive(timeout=0) as again:
                    assert again.body == f"not for one {number}"


@pytest.mark.parametrize(
    "selector", ["kind =", "kind = 'png' AND", "kind LIKE 3", "(kind = 'png'", "a BETWEEN 1", "x IN ()"]
)
def test_a_selector_with_an_error_is_refused_at_once_with_its_place(queue: shmq.Queue[Any], selector: str) -> None:
    before = queue.statistics()
    with pytest.raises(SelectorError):
        queue.consumer(selector=selector)
    assert queue.statistics() == before


def test_a_message_without_the_header_is_not_selected(queue: shmq.Queue[Any]) -> None:
    queue.put("none")
    queue.put("one", headers={"n": 1})
    with queue.consumer(selector="n > 0") as some, queue.consumer(selector="n IS NULL") as others:
        assert take(some) == "one"
        assert take(others) == "none"


def test_the_messages_own_fields_can_be_asked(queue: shmq.Queue[Any]) -> None:
    identity = queue.put("first")
    queue.put("second")
    with queue.consumer(selector=f"JMSMessageID = {identity} AND JMSXDeliveryCount = 1") as fresh:
        m = fresh.receive(timeout=0)
        assert m.body == "first"
        m.retry("not yet")
        with pytest.raises(Empty):
            fresh.receive(timeout=0)
    with queue.consumer(selector="JMSRedelivered = TRUE AND JMSXDeliveryCount = 2") as later:
        assert take(later) == "first"


def test_iterating_ends_at_shutdown_with_what_others_are_to_take_left(queue: shmq.Queue[Any]) -> None:
    fill(queue, 9)
    queue.shutdown()
    with queue.consumer(selector="kind = 'png'") as consumer:
        seen = []
        for m in consumer:
            with m:
                seen.append(m.body)
    assert seen == [0, 3, 6]
    assert queue.qsize() == 6


def test_takers_of_all_kinds_share_a_queue_without_loss(queue: shmq.Queue[Any]) -> None:
    """Each message is taken once, by somebody who wanted it."""
    takers: dict[str, Callable[[int], bool]] = {
        "n BETWEEN 0 AND 1999": lambda n: n < 2000,
        "kind = 'png'": lambda n: n % 3 == 0,
        "kind LIKE 'j%'": lambda n: n % 3 != 0,
    }
    got: dict[str, list[int]] = {selector: [] for selector in takers}

    def take_all(selector: str) -> None:
        for m in queue.consumer(selector=selector):
            with m:
                got[selector].append(m.body)

    threads = [threading.Thread(target=take_all, args=(selector,)) for selector in takers]
    for thread in threads:
        thread.start()
    fill(queue, 3000)
    queue.shutdown()
    for thread in threads:
        thread.join(120)
    assert sorted(n for bodies in got.values() for n in bodies) == list(range(3000))
    for selector, wants in takers.items():
        assert all(map(wants, got[selector]))
        assert got[selector] == sorted(got[selector])
