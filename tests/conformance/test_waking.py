"""A notifier wakes the right sleepers, as many as it should, and no others; nobody is forgotten or favoured."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import pytest

import shmq
from tests.conformance.crowd import asleep, begin, crowd
from tests.engine.child import eventually
from tests.engine.lifecycle.test_shutdown import finish
from tests.support.size import sized

Queue = shmq.Queue[Any]


def test_one_message_wakes_one_and_several_wake_several(queue: Queue) -> None:
    """Shows S43, S53, S70, S98, C4."""
    with crowd(queue, 5, settle=False) as sleepers:
        queue.put("one")
        sleepers.have(1)
        eventually(lambda: asleep(queue) == 4, "the others sleep on")  # now and then one looks by itself
        queue.put_many(["two", "three", "four"])
        sleepers.have(4)
        eventually(lambda: asleep(queue) == 1, "the last one sleeps on")
        assert sorted(map(len, sleepers.taken)) == [0, 1, 1, 1, 1]


def test_sleepers_are_woken_in_turn(queue: Queue) -> None:
    """None is forgotten. A consumer that has announced its sleep looks once more, and a sleeper now and then: each may
    take what another was woken for, so a busy machine gets more messages. The order of the wakes itself is shown
    where nobody looks (`native/tests/consumers/test_sleepers.c`). Shows S10, S73, S74."""
    with crowd(queue, 4) as sleepers:
        put = 0
        while put < 40 or (min(map(len, sleepers.taken)) < 5 and put < 400):
            sleepers.all_sleep()
            queue.put(put)
            put += 1
            sleepers.have(put)
        assert min(map(len, sleepers.taken)) >= 5, (put, sleepers.taken)
        assert sorted(chain(*sleepers.taken)) == list(range(put))


RETURNS: dict[str, Callable[[Any, Any], None]] = {
    "released": lambda m, consumer: m.release(),
    "retried": lambda m, consumer: m.retry("once more"),
    "its consumer closed": lambda m, consumer: consumer.close(),
}


@pytest.mark.parametrize("way", sorted(RETURNS))
def test_what_comes_back_wakes_who_sleeps(queue: Queue, way: str) -> None:
    """Shows S13, S54, S88, E13."""
    queue.put("a")
    consumer = queue.consumer()
    held = consumer.receive(timeout=0)
    with crowd(queue, 2) as sleepers:
        RETURNS[way](held, consumer)
        sleepers.have(1)
    consumer.close()


def take_some(queue: Queue, count: int) -> list[Any]:
    bodies = []
    with queue.consumer() as consumer:
        for _ in range(count):
            with consumer.receive() as m:
                bodies.append(m.body)
    return bodies


def test_who_has_no_credit_is_not_woken_and_others_are(queue: Queue) -> None:
    """Shows S51, S68, C8."""
    queue.put("held")
    with queue.consumer(prefetch=1) as stopped:
        held = stopped.receive(timeout=0)
        thread, results = begin(stopped.receive)
        eventually(stopped._room._waiters.__len__, "it waits for credit")  # type: ignore[attr-defined]
        assert asleep(queue) == 0
        other, taken = begin(partial(take_some, queue, 5))
        eventually(lambda: asleep(queue) == 1, "the other one sleeps")
        queue.put_many(range(5))
        finish(other)
        assert (taken, results) == ([list(range(5))], [])
        held.ack()
        queue.put("own")
        finish(thread)
        assert results[0].body == "own"
        results[0].ack()


def test_credit_that_comes_back_makes_a_consumer_look_by_itself(queue: Queue) -> None:
    """The message that arrived meanwhile woke nobody. Shows S44, S52, C9."""
    queue.put_many(["a", "b"])
    with queue.consumer(prefetch=1) as consumer:
        held = consumer.receive(timeout=0)
        thread, results = begin(consumer.receive)
        eventually(consumer._room._waiters.__len__, "it waits for credit")  # type: ignore[attr-defined]
        held.ack()
        finish(thread)
        assert results[0].body == "b"
        results[0].ack()


def test_a_consumer_at_work_is_no_sleeper_and_finds_the_next_by_itself(queue: Queue) -> None:
    """Shows S69, S71, S72, C6."""
    seen = []

    def work() -> None:
        for m in queue.consumer():
            seen.append((m.body, asleep(queue)))
            m.ack()

    thread, _ = begin(work)
    eventually(lambda: asleep(queue) == 1, "it sleeps: interested")
    queue.put_many(range(100))
    eventually(lambda: queue.statistics().acked == 100 and asleep(queue) == 1, "all done, and it sleeps again")
    queue.shutdown()
    finish(thread)
    assert seen == [(number, 0) for number in range(100)]


def test_a_wake_up_is_not_lost_with_a_consumer_that_closes(queue: Queue) -> None:
    """Two sleep, a message comes, one of them closes at once: the other has it. Shows S55, C7, C11, R3."""
    for number in range(sized(100, 5000)):
        closing, staying = queue.consumer(), queue.consumer()
        left, first = begin(closing.receive)
        right, second = begin(staying.receive)
        eventually(lambda: asleep(queue) == 2, "both sleep")
        queue.put(number)
        closing.close()
        finish(left)
        if not isinstance(first[0], shmq.Message):
            assert isinstance(first[0], shmq.Closed)
        finish_or_tell(right, queue)
        assert second[0].body == number
        second[0].ack()
        staying.close()
    assert (queue.statistics().consumers, queue.qsize()) == (0, 0)


def finish_or_tell(thread: Any, queue: Queue) -> None:
    """A message that nobody gets keeps the thread for ever: say what is there."""
    thread.join(120)
    assert not thread.is_alive(), (queue.statistics(), queue._waiters())


def bodies_of(browser: Iterator[shmq.Message[Any]]) -> list[Any]:
    return [m.body for m in browser]


def test_browsers_are_told_of_all_and_take_nobodys_turn(queue: Queue) -> None:
    """Shows S66, S67, C2, C10."""
    followers = [begin(lambda: [m.body for m in queue.browse(follow=True)]) for _ in range(3)]
    with crowd(queue, 1) as taker:
        for number in range(50):
            queue.put(number)
            taker.have(number + 1)
    for thread, _ in followers:
        finish(thread)
    for _, seen in followers:
        (bodies,) = seen
        assert bodies == sorted(set(bodies))  # what was settled before a browser came by is gone
    queue.reopen()
    browsers = [queue.browse(start="next", follow=True) for _ in range(3)]
    late = [begin(partial(bodies_of, browser)) for browser in browsers]
    for number in range(50):
        queue.put(number)
    queue.shutdown()
    for thread, seen in late:
        finish(thread)
        assert seen == [list(range(50))]
