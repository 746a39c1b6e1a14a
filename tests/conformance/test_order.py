"""One order, for everybody and for the whole life of an entry."""

import threading
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.conformance.crowd import begin
from tests.engine.child import Child
from tests.engine.test_shutdown import finish
from tests.support.size import sized

Queue = shmq.Queue[Any]
TURNS = 3000  # entries that make the smallest ring, of 1,024 slots, go round more than twice


def turn_over(queue: Queue) -> None:
    """The ring goes round until all that was there before is older than its reach."""
    for number in range(TURNS):
        queue.put(number)
        assert queue.get(timeout=0) == number


def test_all_observers_see_one_order(broker_dir: Path, queue: Queue) -> None:
    """Browsers in two processes, and the one who takes, while several producers add. Shows S1, S3, S8, S85."""
    program = """
for m in shmq.open(sys.argv[1]).queue("jobs").browse(follow=True):
    say(m.id)
    if m.body == "end":
        break
"""
    each = sized(100, 2000)
    with Child(program, broker_dir) as first, Child(program, broker_dir) as second:
        producers = [threading.Thread(target=lambda: [queue.put(n) for n in range(each)]) for _ in range(4)]
        for producer in producers:
            producer.start()
        for producer in producers:
            producer.join(60)
        queue.put("end")
        seen = [[int(child.line()) for _ in range(4 * each + 1)] for child in (first, second)]
        taken = [m.id for m in queue.receive_many(4 * each + 1, timeout=0)]
        assert seen == [taken, taken]
        assert len(set(taken)) == 4 * each + 1
        first.end()
        second.end()


def test_entries_that_come_back_in_any_order_are_offered_in_theirs(queue: Queue) -> None:
    """C comes back, then A, of A B C: A first, B not again, each to one. Shows S2, S80, S81, S92, R2."""
    queue.put_many("abcd")
    a, b, c = queue.receive_many(3, timeout=0)
    with queue.consumer() as left, queue.consumer() as right:
        c.release()
        a.release()
        one, other, last = (consumer.receive(timeout=0) for consumer in (left, right, left))
        assert [m.body for m in (one, other, last)] == ["a", "c", "d"]
        assert [m.redelivered for m in (one, other, last)] == [True, True, False]
        b.ack()
        with pytest.raises(shmq.Empty):
            right.receive(timeout=0)
        for m in (one, other, last):
            m.ack()


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)], ids=str)
def test_entries_that_come_back_late_still_go_before_all_later_ones(queue: Queue, order: tuple[int, ...]) -> None:
    """The ring has turned over them meanwhile. Shows S2, S78, R2, R17."""
    queue.put_many(["old 0", "old 1", "old 2", "old 3"])
    old = queue.receive_many(4, timeout=0)
    turn_over(queue)
    queue.put("new")
    for number in order:
        old[number].release()
    assert queue.get_many(5, timeout=0) == ["old 0", "old 1", "old 2", "old 3", "new"]


def test_every_observer_has_a_pointer_of_its_own(queue: Queue) -> None:
    """Three browsers at three places, and takers who do not move them. Shows S4, S79."""
    queue.put_many(range(6))
    ahead, behind = queue.browse(), queue.browse()
    assert [next(ahead).body for _ in range(4)] == [0, 1, 2, 3]
    assert next(behind).body == 0
    middle = queue.browse(start=next(queue.browse()).position + 2)
    assert next(middle).body == 2
    assert queue.get(timeout=0) == 0
    assert [next(browser).body for browser in (ahead, behind, middle)] == [4, 1, 3]


def test_a_browser_does_not_get_twice_what_came_back(queue: Queue) -> None:
    """Shows S81, S92."""
    queue.put_many("abc")
    browser = queue.browse()
    held = queue.receive(timeout=0)
    assert [next(browser).body, next(browser).body] == ["a", "b"]
    held.release()
    assert [m.body for m in browser] == ["c"]


def test_entries_in_the_middle_go_and_pointers_pass_where_they_were(queue: Queue) -> None:
    """One browser rests on an entry that goes, and on slots that are used again. Shows S23, S78, S86, R17, E18."""
    queue.put_many(range(8))
    resting = queue.browse(follow=True)
    assert [next(resting).body for _ in range(3)] == [0, 1, 2]
    held = queue.receive_many(8, timeout=0)
    for number in (2, 3, 5):
        held[number].ack()
    assert [m.body for m in queue.browse()] == [0, 1, 4, 6, 7]
    turn_over(queue)
    for number in (7, 6, 4, 1, 0):
        held[number].release()
    assert [next(resting).body for _ in range(3)] == [4, 6, 7]
    queue.put("newcomer")
    assert next(resting).body == "newcomer"
    assert queue.get_many(9, timeout=0) == [0, 1, 4, 6, 7, "newcomer"]


def test_what_is_appended_after_the_end_was_reached_is_found_from_there(queue: Queue) -> None:
    """Shows S26, S90."""
    browser = queue.browse(follow=True)
    places = []
    for number in range(20):
        with pytest.raises(shmq.Empty):
            queue.receive(timeout=0)
        queue.put(number)
        assert next(browser).body == number
        with queue.receive(timeout=0) as m:
            assert m.body == number
            places.append(m.position)
    assert places == list(range(places[0], places[0] + 20))


def test_a_message_goes_through_the_queue_though_somebody_waits_for_it(queue: Queue) -> None:
    """It has a place and is seen by browsers before and while it is in hand. Shows S9, S97, S91."""
    thread, results = begin(queue.receive)
    follower = queue.browse(follow=True)
    queue.put("at once")
    finish(thread)
    m = results[0]
    assert m.body == "at once"
    assert [browsed.body for browsed in queue.browse()] == ["at once"]
    assert next(follower).position == m.position
    queue.put("later")
    m.ack()
    assert queue.receive(timeout=0).position == m.position + 1
    assert next(follower).position == m.position + 1


def test_who_waits_gets_what_came_back_before_what_arrives(queue: Queue) -> None:
    """A newcomer is handed over only to who cannot take anything before it. Shows S81, S89."""
    for number in range(sized(50, 1000)):
        queue.put(f"old {number}")
        old = queue.receive(timeout=0)
        thread, results = begin(queue.get)
        old.release()
        queue.put(f"new {number}")
        finish(thread)
        assert results == [f"old {number}"]
        assert queue.get(timeout=0) == f"new {number}"


def test_one_body_on_two_queues_is_two_entries(broker: shmq.Broker, queue: Queue, kind: dict[str, Any]) -> None:
    """Each with its own state, count, mark and outcome. Shows S76, S82."""
    other = broker.queue("others", **kind)
    body = {"the": ["same"] * 100}
    for each in (queue, other):
        each.put(body)
    queue.receive(timeout=0).retry("no luck")
    again, untouched = queue.receive(timeout=0), other.receive(timeout=0)
    assert (again.delivery_count, again.redelivered) == (2, True)
    assert (untouched.delivery_count, untouched.redelivered) == (1, False)
    assert again.id != untouched.id
    again.ack()
    assert not untouched.settled
    assert untouched.body == body
    assert (queue.statistics().unsettled, other.statistics().unsettled) == (0, 1)
    untouched.ack()
