"""Looking without taking: in order, from anywhere, following or not, and never in anybody's way."""

import time
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child
from tests.engine.lifecycle.test_shutdown import finish, in_thread


def bodies(queue: shmq.Queue[Any], **options: Any) -> list[Any]:
    return [m.body for m in queue.browse(**options)]


def test_browsing_takes_nothing_and_counts_nothing(queue: shmq.Queue[Any]) -> None:
    """Shows S20."""
    queue.put_many(["a", {"b": 1}, b"c" * 10_000])
    before = queue.statistics()
    for _ in range(3):
        assert bodies(queue) == ["a", {"b": 1}, b"c" * 10_000]
    after = queue.statistics()
    assert (after.ready, after.delivered, after.redelivered) == (before.ready, before.delivered, before.redelivered)
    m = queue.receive(timeout=0)
    assert (m.delivery_count, m.redelivered) == (1, False)
    m.ack()


def test_what_was_browsed_says_what_it_is(queue: shmq.Queue[Any]) -> None:
    before = time.time()
    number = queue.put({"n": 1}, headers={"source": "web"})
    queue.receive(timeout=0).retry("once")
    (m,) = queue.browse()
    assert (m.id, m.position, m.delivery_count, m.redelivered) == (number, 0, 1, True)
    assert dict(m.headers) == {"source": "web"}
    assert before - 1 < m.enqueued_at < time.time() + 1
    assert not m.settled


@pytest.mark.parametrize("outcome", ["ack", "release", "retry", "reject"])
def test_settling_what_was_only_browsed_is_refused(queue: shmq.Queue[Any], outcome: str) -> None:
    queue.put("a")
    (m,) = queue.browse()
    with pytest.raises(shmq.SettlementError, match="only browsed"):
        getattr(m, outcome)()
    assert queue.get(timeout=0) == "a"


def test_a_with_block_of_what_was_only_browsed_is_refused_before_it_begins(queue: shmq.Queue[Any]) -> None:
    queue.put("a")
    (m,) = queue.browse()
    entered = []

    def work() -> None:
        with m:
            entered.append(m.body)

    with pytest.raises(shmq.SettlementError, match="only browsed"):
        work()
    assert entered == []
    assert queue.get(timeout=0) == "a"


def test_what_was_browsed_stays_readable(queue: shmq.Queue[Any]) -> None:
    queue.put({"n": [1] * 1000})
    (m,) = queue.browse()
    queue.purge()
    queue.put_many([b"x" * 3000] * 50)
    assert m.body == {"n": [1] * 1000}


def test_browsing_starts_at_the_first_the_next_or_a_position(queue: shmq.Queue[Any]) -> None:
    """Shows S30."""
    queue.put_many(range(10))
    assert bodies(queue) == list(range(10))
    assert bodies(queue, start="first") == list(range(10))
    assert bodies(queue, start="next") == []
    assert bodies(queue, start=7) == [7, 8, 9]
    assert bodies(queue, start=10) == []
    assert bodies(queue, start=1_000_000) == []
    assert bodies(queue, start=2**64 - 1) == bodies(queue, start=2**64) == bodies(queue, start=2**70) == []
    queue.get_many(5, timeout=0)
    assert bodies(queue, start=2) == [5, 6, 7, 8, 9]
    assert [m.position for m in queue.browse(start=8)] == [8, 9]


def test_browsing_shows_what_consumers_hold_too(queue: shmq.Queue[Any]) -> None:
    """Shows S20."""
    queue.put_many(["a", "b", "c"])
    m = queue.receive(timeout=0)
    assert bodies(queue) == ["a", "b", "c"]
    m.ack()
    assert bodies(queue) == ["b", "c"]


def test_a_browser_that_does_not_follow_ends_at_what_was_there(queue: shmq.Queue[Any]) -> None:
    queue.put_many(["a", "b"])
    browser = queue.browse()
    assert next(browser).body == "a"
    queue.put_many(["c", "d"])
    assert [m.body for m in browser] == ["b"]


def test_a_follower_sees_newcomers_until_the_shutdown(broker_dir: Path, queue: shmq.Queue[Any]) -> None:
    """Shows S66, C2."""
    queue.put("a")
    thread, results = in_thread(lambda: bodies(queue, follow=True))
    newcomer = queue.browse(start="next", follow=True)
    newcomers, seen_new = in_thread(lambda: [m.body for m in newcomer])
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
follower = q.browse(follow=True)
say(next(follower).body)
say(next(follower).body)
"""
    with Child(program, broker_dir) as child:
        assert child.line() == "a"
        child.sleeps()
        queue.put("b")
        assert child.line() == "b"
        child.end()
    queue.put_many(range(100))
    queue.shutdown()
    finish(thread)
    finish(newcomers)
    assert results == [["a", "b", *range(100)]]
    assert seen_new == [["b", *range(100)]]


def test_browsing_while_others_work_shows_each_message_at_most_once_and_in_order(queue: shmq.Queue[Any]) -> None:
    """Shows S1, S4, S92, G1."""

    def traffic() -> None:
        for n in range(5000):
            queue.put(n)
            if n % 2:
                queue.get(timeout=5)
        queue.shutdown()

    thread, _ = in_thread(traffic)
    seen = [m.position for m in queue.browse(follow=True)]
    finish(thread)
    assert seen == sorted(set(seen))
    queue.reopen()
    assert bodies(queue) == list(range(2500, 5000))


def test_a_browser_reads_every_codec_that_its_handle_knows(broker: shmq.Broker) -> None:
    broker.queue("jobs", codec="pickle").put({1, 2})
    (m,) = broker.queue("jobs").browse()
    with pytest.raises(shmq.DecodeError):
        m.body  # noqa: B018
    (m,) = broker.queue("jobs", codec="pickle").browse()
    assert m.body == {1, 2}


def test_dead_messages_are_browsed_with_their_death(queue: shmq.Queue[Any]) -> None:
    queue.put("a")
    queue.receive(timeout=0).reject("why")
    (m,) = queue.broker.queue("jobs.dead").browse()
    assert m.death is not None
    assert m.death.error == "why"
