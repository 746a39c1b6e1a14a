"""One order, for everybody and for the whole life of an entry."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.conformance.crowd import asleep, begin
from tests.engine.child import Child, eventually
from tests.engine.lifecycle.test_shutdown import finish
from tests.support.size import sized

Queue = shmq.Queue[Any]
Wait = Callable[[], None]
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
    queue.put_many([*"abcd"])
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


def close(consumer: shmq.Consumer[Any], count: int, may_end: Wait) -> None:
    kept = consumer.receive_many(count, timeout=0)
    may_end()
    consumer.close()
    assert len(kept) == count


def leave_block(consumer: shmq.Consumer[Any], count: int, may_end: Wait) -> None:
    with consumer:
        kept = consumer.receive_many(count, timeout=0)
        may_end()
    assert len(kept) == count


def leave_loop(consumer: shmq.Consumer[Any], count: int, may_end: Wait) -> None:
    kept = []
    for m in consumer:
        kept.append(m)
        if len(kept) == count:
            may_end()
            break


SLEEPER = """
queue = shmq.open(sys.argv[1]).queue("jobs")
with queue.consumer() as consumer:
    listen()
    for _ in range(int(sys.argv[2])):
        with consumer.receive() as m:
            say(m.body)
"""


@pytest.mark.parametrize("give_back", [close, leave_block, leave_loop])
def test_who_sleeps_gets_what_a_consumer_gives_back_in_order(
    broker_dir: Path, queue: Queue, give_back: Callable[[shmq.Consumer[Any], int, Wait], None]
) -> None:
    """A consumer has taken all, and ends; another process sleeps. Shows S2, R2, R3, C11."""
    count = 2000  # so many that the sleeper is up before the last one is back
    queue.put_many(range(count))
    with Child(SLEEPER, broker_dir, count) as sleeper:

        def somebody_sleeps() -> None:
            sleeper.tell("now")
            eventually(lambda: asleep(queue) == 1, "a sleeper")

        give_back(queue.consumer(), count, somebody_sleeps)
        assert [int(sleeper.line()) for _ in range(count)] == list(range(count))
        sleeper.end()


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
    queue.put_many(["a", "b", "c"])
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


def traffic(queue: Queue, exclusive: bool) -> list[tuple[Any, ...]]:
    """One consumer's deliveries of messages that lie there, come back, and arrive while it sleeps; then the counts."""
    seen: list[tuple[Any, ...]] = []
    queue.put_many(range(6))
    with queue.consumer(exclusive=exclusive, prefetch=4) as consumer:
        held = consumer.receive_many(9, timeout=0)
        seen += [(m.body, m.redelivered, m.delivery_count) for m in held]
        for number, outcome in ((2, "release"), (0, "retry"), (1, "ack"), (3, "release")):
            getattr(held[number], outcome)()
        for _ in range(5):
            with consumer.receive(timeout=0) as m:
                seen.append((m.body, m.redelivered, m.delivery_count))
        for number in range(6, 16):
            thread, results = begin(consumer.receive)
            eventually(lambda: asleep(queue) == 1, "the consumer asleep")
            queue.put(number)
            finish(thread)
            seen.append((results[0].body, results[0].redelivered, results[0].delivery_count))
            results.pop().ack()
    s = queue.statistics()
    return [*seen, (s.ready, s.unsettled, s.put, s.delivered, s.acked, s.redelivered, s.dead_lettered)]


def test_an_exclusive_consumer_gets_just_what_any_other_would(
    broker: shmq.Broker, queue: Queue, kind: dict[str, Any]
) -> None:
    """Shows S14."""
    assert traffic(queue, exclusive=True) == traffic(broker.queue("shared by one", **kind), exclusive=False)


def test_newcomers_go_to_who_waits_while_older_ones_come_back_for_others(queue: Queue) -> None:
    """Two takers that sleep, one that gives back and a producer, all at once: each message once. Shows S91, S98."""
    count = sized(200, 3000)
    queue.put_many(range(count))
    old = queue.receive_many(count, timeout=0)
    taken: list[list[tuple[int, bool]]] = [[], []]

    def take(mine: list[tuple[int, bool]]) -> None:
        with queue.consumer() as consumer:
            for m in consumer:
                with m:
                    mine.append((m.body, m.redelivered))

    def give_back() -> None:
        for m in old:
            m.release()

    takers = [threading.Thread(target=take, args=(mine,)) for mine in taken]
    for taker in takers:
        taker.start()
    eventually(lambda: asleep(queue) == 2, "both asleep")
    queue.put(-1)  # at once, though all that is before it is still in a hand
    eventually(lambda: sum(map(len, taken)) == 1, "the first newcomer with somebody")
    giver = threading.Thread(target=give_back)
    giver.start()
    for number in range(count, 2 * count):
        queue.put(number)
    giver.join(60)
    queue.shutdown()
    for taker in takers:
        taker.join(60)
    assert sorted([*taken[0], *taken[1]]) == [
        (-1, False),
        *((n, True) for n in range(count)),
        *((n, False) for n in range(count, 2 * count)),
    ]
    for mine in taken:  # of those that came, and of those that came back, each taker has its own in order
        for back in (True, False):
            numbers = [number for number, redelivered in mine if redelivered is back]
            assert numbers == sorted(numbers)


def test_a_message_goes_through_the_queue_though_somebody_waits_for_it(queue: Queue) -> None:
    """It has a place and is seen by browsers before and while it is in hand. Shows S9, S97."""
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
