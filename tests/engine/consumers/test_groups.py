"""Groups: who gets which message of a group, and what deaths, closes, leases and moves do to that."""

import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import pytest

import shmq
from shmq.errors import Empty, OptionsMismatch, SettlementError
from tests.engine.child import Child, eventually

Kind = Literal["shared", "sticky"]


@pytest.fixture
def shared(broker: shmq.Broker) -> shmq.Queue[Any]:
    return broker.queue("changes", groups="shared")


@pytest.fixture
def sticky(broker: shmq.Broker) -> shmq.Queue[Any]:
    return broker.queue("orders", groups="sticky")


@pytest.fixture(params=["shared", "sticky"])
def grouped(broker: shmq.Broker, request: pytest.FixtureRequest) -> shmq.Queue[Any]:
    return broker.queue("either", groups=request.param)


def fill(queue: shmq.Queue[Any], keys: str, **options: Any) -> None:
    """One message for each letter: its group, and its number in that group. "." is a message without one."""
    seen: dict[str, int] = {}
    for key in keys:
        seen[key] = seen.get(key, 0) + 1
        queue.put(f"{key}{seen[key]}", group=None if key == "." else key, **options)


def gets_nothing(consumer: shmq.Consumer[Any] | shmq.Queue[Any]) -> None:
    with pytest.raises(Empty):
        consumer.receive(timeout=0)


def taken(consumer: shmq.Consumer[Any] | shmq.Queue[Any], body: str) -> shmq.Message[Any]:
    m = consumer.receive(timeout=0)
    assert m.body == body
    return m


@pytest.mark.in_hand
def test_while_one_consumer_has_a_message_nobody_else_gets_one_of_its_group(grouped: shmq.Queue[Any]) -> None:
    """Shows R6, G1."""
    fill(grouped, "aab.")
    with grouped.consumer() as one, grouped.consumer() as two:
        first = taken(one, "a1")
        other = taken(two, "b1")
        free = taken(two, ".1")
        gets_nothing(two)
        second = taken(one, "a2")
        for m in (first, second, other, free):
            m.ack()
        gets_nothing(one)
        gets_nothing(two)


def test_a_shared_group_is_free_when_its_last_message_is_settled(shared: shmq.Queue[Any]) -> None:
    fill(shared, "aaaa")
    with shared.consumer() as one, shared.consumer() as two:
        first, second = taken(one, "a1"), taken(one, "a2")
        gets_nothing(two)
        first.ack()
        gets_nothing(two)
        second.ack()
        third = taken(two, "a3")
        gets_nothing(one)
        third.ack()
        taken(one, "a4").ack()


def test_a_sticky_group_stays_with_its_consumer_until_that_closes(sticky: shmq.Queue[Any]) -> None:
    fill(sticky, "aa")
    with sticky.consumer() as two:
        with sticky.consumer() as one:
            taken(one, "a1").ack()
            gets_nothing(two)
            sticky.put("c1", group="c")
            taken(two, "c1").ack()
            taken(one, "a2").ack()
            sticky.put("c2", group="c")
            gets_nothing(one)
            taken(two, "c2").ack()
            sticky.put("a3", group="a")
            gets_nothing(two)
        taken(two, "a3").ack()


@pytest.mark.parametrize("way", ["release", "retry"])
def test_what_comes_back_goes_before_the_rest_of_its_group(shared: shmq.Queue[Any], way: str) -> None:
    """A consumer that had to pass it turns back. Shows R6, S2, G1."""
    fill(shared, "aaa")
    with shared.consumer() as one, shared.consumer() as two:
        first = taken(one, "a1")
        gets_nothing(two)
        (first.release if way == "release" else first.retry)()
        again = taken(two, "a1")
        assert again.redelivered
        gets_nothing(one)
        again.ack()
        taken(one, "a2").ack()
        taken(two, "a3").ack()


def test_an_earlier_one_comes_back_to_its_owner_only_while_that_has_a_later_one(shared: shmq.Queue[Any]) -> None:
    fill(shared, "aaa")
    with shared.consumer() as one, shared.consumer() as two:
        first, second = taken(one, "a1"), taken(one, "a2")
        first.release()
        gets_nothing(two)
        first = taken(one, "a1")
        second.ack()
        gets_nothing(two)
        first.ack()
        taken(two, "a3").ack()


def test_one_that_is_rejected_frees_its_group(broker: shmq.Broker, shared: shmq.Queue[Any]) -> None:
    """The dead letter keeps its key, and the queue of the dead has no groups."""
    fill(shared, "aa")
    with shared.consumer() as one, shared.consumer() as two:
        first = taken(one, "a1")
        gets_nothing(two)
        first.reject("no")
        taken(two, "a2").ack()
    with broker.queue("changes.dead", create=False).receive(timeout=0) as dead:
        assert (dead.body, dead.group) == ("a1", "a")


@pytest.mark.in_hand
def test_closing_a_consumer_gives_its_groups_to_others_in_order(grouped: shmq.Queue[Any]) -> None:
    fill(grouped, "abab")
    with grouped.consumer() as two:
        with grouped.consumer() as one:
            held = [taken(one, body) for body in ("a1", "b1", "a2")]
            gets_nothing(two)
        with pytest.raises(SettlementError):
            held[0].ack()
        for body in ("a1", "b1", "a2", "b2"):
            taken(two, body).ack()


def test_a_message_that_waits_for_its_time_does_not_keep_its_group(shared: shmq.Queue[Any]) -> None:
    fill(shared, "aa")
    with shared.consumer() as one, shared.consumer() as two:
        taken(one, "a1").release(delay=60)
        taken(two, "a2").ack()


def test_a_consumer_that_waits_is_woken_when_a_group_becomes_free(shared: shmq.Queue[Any]) -> None:
    """Shows R6, S54."""
    fill(shared, "aa")
    got: list[str] = []
    with shared.consumer() as one, shared.consumer() as two:
        first = taken(one, "a1")

        def wait() -> None:
            with two.receive(timeout=30) as m:
                got.append(m.body)

        thread = threading.Thread(target=wait)
        thread.start()
        first.ack()
        thread.join(120)
    assert got == ["a2"]


WAITS = """
with shmq.open(sys.argv[1]) as broker:
    with broker.queue(sys.argv[2]).consumer() as consumer:
        say("ready")
        with consumer.receive(timeout=30) as m:
            say(m.body)
"""
HOLDS = """
broker = shmq.open(sys.argv[1])
consumer = broker.queue(sys.argv[2]).consumer()
held = [consumer.receive(timeout=10) for _ in range(int(sys.argv[3]))]
say(*[m.body for m in held])
listen()
for m in held:
    try:
        m.ack()
        say("acked")
    except shmq.SettlementError:
        say("lost")
listen()
"""


def test_a_sleeping_process_is_woken_for_what_it_had_to_pass(broker_dir: Path, shared: shmq.Queue[Any]) -> None:
    fill(shared, "aa")
    first = taken(shared, "a1")
    with Child(WAITS, broker_dir, "changes") as child:
        assert child.line() == "ready"
        child.sleeps()
        first.ack()
        assert child.line() == "a2"
        child.end()


@pytest.mark.in_hand
def test_the_groups_of_a_dead_process_are_free_and_in_order(broker_dir: Path, grouped: shmq.Queue[Any]) -> None:
    """Shows R6, R3, G1."""
    fill(grouped, "aaab")
    with Child(HOLDS, broker_dir, "either", 2) as child, grouped.consumer() as consumer:
        assert child.line() == "a1 a2"
        taken(consumer, "b1").ack()
        gets_nothing(consumer)
        child.kill()
        bodies = []
        for _ in range(3):
            with consumer.receive(timeout=30) as m:
                bodies.append(m.body)
        assert bodies == ["a1", "a2", "a3"]


@pytest.mark.parametrize("kind", ["shared", "sticky"])
def test_an_owner_that_is_stopped_loses_its_group_with_its_lease(
    broker_dir: Path, broker: shmq.Broker, kind: Kind
) -> None:
    """Its messages first, then the rest; when it goes on it finds that they are no longer its own."""
    queue = broker.queue("leased", groups=kind, lease=2.0)
    fill(queue, "aaa")
    with Child(HOLDS, broker_dir, "leased", 2) as child, queue.consumer() as consumer:
        assert child.line() == "a1 a2"
        os.kill(child.pid, signal.SIGSTOP)
        try:
            bodies = []
            for _ in range(3):
                with consumer.receive(timeout=30) as m:
                    bodies.append(m.body)
        finally:
            os.kill(child.pid, signal.SIGCONT)
        assert sorted(bodies) == ["a1", "a2", "a3"]
        assert bodies[2] == "a3"
        child.tell("settle")
        assert [child.line(), child.line()] == ["lost", "lost"]
        fill(queue, "b")
        queue.put("a4", group="a")
        taken(consumer, "b1").ack()
        taken(consumer, "a4").ack()


def test_processes_that_share_the_work_handle_each_group_in_order(broker_dir: Path, broker: shmq.Broker) -> None:
    """Each says when it begins and when it has ended a message; nobody begins one of a group before the last has ended.

    Shows R6, S1, G1.
    """
    queue, log = broker.queue("changes", groups="shared"), broker.queue("log")
    for n in range(120):
        queue.put(n, group=str(n % 5))
    program = """
    import itertools
    with shmq.open(sys.argv[1]) as broker:
        log = broker.queue("log")
        with broker.queue("changes").consumer() as consumer:
            say("ready")
            for count in itertools.count(1):
                try:
                    m = consumer.receive(timeout=3)
                except shmq.Empty:
                    break
                log.put(["begin", m.body])
                if count % 7 == 0 and not m.redelivered:
                    log.put(["end", -1 - m.body])
                    m.release()
                    continue
                log.put(["end", m.body])
                m.ack()
    """.replace("\n    ", "\n")
    with ExitStack() as stack:
        children = [stack.enter_context(Child(program, broker_dir)) for _ in range(3)]
        for child in children:
            assert child.line() == "ready"
        eventually(lambda: queue.statistics().acked == 120, "all is handled")
        for child in children:
            child.kill()
    open_ones: dict[int, int] = {}
    done: dict[int, list[int]] = {group: [] for group in range(5)}
    for what, number in log.get_many(999, timeout=0):
        body = number if number >= 0 else -1 - number
        if what == "begin":
            assert body % 5 not in open_ones, f"{body} began while {open_ones} was in hand"
            open_ones[body % 5] = body
        else:
            assert open_ones.pop(body % 5) == body
            if number >= 0:
                done[body % 5].append(body)
    assert done == {group: list(range(group, 120, 5)) for group in range(5)}


def test_what_get_takes_frees_its_group_at_once_or_keeps_it(shared: shmq.Queue[Any], sticky: shmq.Queue[Any]) -> None:
    """For get() the process is the consumer."""
    for queue in (shared, sticky):
        fill(queue, "aaa")
        with queue.consumer() as other:
            assert queue.get(timeout=0) == "a1"
            if queue is shared:
                taken(other, "a2").ack()
                assert queue.get(timeout=0) == "a3"
            else:
                gets_nothing(other)
                assert queue.get_many(9, timeout=0) == ["a2", "a3"]


def test_get_passes_what_others_have_in_hand(shared: shmq.Queue[Any]) -> None:
    fill(shared, "aab")
    with shared.consumer() as other:
        first = taken(other, "a1")
        assert shared.get_many(9, timeout=0) == ["b1"]
        with pytest.raises(Empty):
            shared.get(timeout=0)
        first.ack()
        assert shared.get(timeout=0) == "a2"


@pytest.mark.in_hand
def test_a_batch_in_and_out_keeps_to_groups(shared: shmq.Queue[Any]) -> None:
    shared.put_many(["a1", "a2", "a3"], group="a")
    shared.put_many(["b1", "b2"], group="b")
    with shared.consumer() as one, shared.consumer(prefetch=3) as two:
        batch = one.receive_many(2, timeout=0)
        assert [m.body for m in batch] == ["a1", "a2"]
        assert all(m.group == "a" for m in batch)
        assert [m.body for m in two.receive_many(9, timeout=0)] == ["b1", "b2"]


def test_a_loan_may_have_a_group(shared: shmq.Queue[Any]) -> None:
    with shared.loan(3, group="a") as loan:
        loan.view[:] = b"one"
    shared.put(b"two", group="a")
    with shared.consumer() as one, shared.consumer() as two:
        m = one.receive(timeout=0)
        assert (bytes(m.body), m.group) == (b"one", "a")
        gets_nothing(two)
        m.ack()


@pytest.mark.parametrize("levels", [2, 10])
def test_a_group_is_one_group_on_all_levels(broker: shmq.Broker, levels: int) -> None:
    """The more important ones first, also within a group; who passed some on several levels turns back on each."""
    queue = broker.queue("ranked", groups="shared", priorities=levels)
    for body, priority in (("low", 0), ("high", 9), ("high too", 9)):
        queue.put(body, group="a", priority=priority)
    with queue.consumer() as one, queue.consumer() as two:
        first = taken(one, "high")
        gets_nothing(two)
        first.ack()
        second = taken(two, "high too")
        gets_nothing(one)
        second.ack()
        taken(two, "low").ack()


def test_of_a_group_a_consumer_gets_what_it_selects(shared: shmq.Queue[Any]) -> None:
    """A message that it does not want keeps none from it; one in another's hands does."""
    for n in range(4):
        shared.put(n, group="a", headers={"n": n})
    with shared.consumer(selector="n > 1") as choosy, shared.consumer() as other:
        m = choosy.receive(timeout=0)
        assert m.body == 2
        gets_nothing(other)
        m.ack()
        for consumer, number in ((other, 0), (choosy, 3), (other, 1)):
            with consumer.receive(timeout=0) as m:
                assert m.body == number


def test_the_key_can_be_selected(shared: shmq.Queue[Any]) -> None:
    fill(shared, "ab")
    with shared.consumer(selector="JMSXGroupID = 'b'") as choosy:
        taken(choosy, "b1").ack()
        gets_nothing(choosy)


def test_views_browse_and_purge_do_not_ask_for_groups(shared: shmq.Queue[Any]) -> None:
    fill(shared, "aab")
    with shared.consumer() as one:
        first = taken(one, "a1")
        seen = list(shared.browse())
        assert [(m.body, m.group) for m in seen] == [("a1", "a"), ("a2", "a"), ("b1", "b")]
        assert shared.qsize() == 2
        assert shared.purge() == 2
        first.ack()


def test_a_move_takes_keys_along_to_a_queue_with_groups_or_without(
    broker: shmq.Broker, shared: shmq.Queue[Any]
) -> None:
    plain = broker.queue("plain")
    target = broker.queue("target", groups="shared")
    fill(shared, "aa")
    assert shared.move(plain) == 2
    assert [m.group for m in plain.browse()] == ["a", "a"]
    with plain.consumer() as one, plain.consumer() as two:
        taken(one, "a1").release()
        first, second = taken(one, "a1"), taken(two, "a2")
        first.release()
        second.release()
    assert plain.move(target) == 2
    with target.consumer() as one, target.consumer() as two:
        first = taken(one, "a1")
        gets_nothing(two)
        first.ack()
        taken(two, "a2").ack()


@pytest.mark.memory  # all are in hand at once
def test_two_keys_may_be_treated_as_one_but_never_one_as_two(shared: shmq.Queue[Any]) -> None:
    """There are more keys than slots: with each key in hand somewhere, what is left of any comes to its owner only."""
    keys = [f"account {n}" for n in range(600)]
    for key in keys * 2:
        shared.put(key, group=key)
    with shared.consumer() as one, shared.consumer() as two:
        held = [consumer.receive(timeout=0) for _ in range(100) for consumer in (one, two)]
        owners: dict[str, int] = {}
        for n, m in enumerate(held):
            assert owners.setdefault(m.body, n % 2) == n % 2
        for consumer, number in ((one, 0), (two, 1)):
            held += (rest := consumer.receive_many(1200, timeout=0))
            assert all(owners.setdefault(m.body, number) == number for m in rest)
        assert len(held) == 1200


def test_a_key_is_a_text_of_limited_length(shared: shmq.Queue[Any]) -> None:
    shared.put("long", group="ä" * 100)
    with shared.receive(timeout=0) as m:
        assert m.group == "ä" * 100
    with pytest.raises(ValueError, match="group"):
        shared.put("too long", group="x" * 70_000)
    with pytest.raises((TypeError, ValueError), match="group"):
        shared.put("a number", group=17)  # type: ignore[arg-type]
    assert shared.qsize() == 0


@pytest.mark.parametrize("put", ["put", "put_many", "loan"])
def test_a_queue_without_groups_refuses_one(queue: shmq.Queue[Any], put: str) -> None:
    calls: dict[str, Any] = {
        "put": lambda: queue.put("x", group="a"),
        "put_many": lambda: queue.put_many(["x"], group="a"),
        "loan": lambda: queue.loan(3, group="a"),
    }
    with pytest.raises(ValueError, match="has no groups"):
        calls[put]()
    assert queue.qsize() == 0


def test_groups_are_settled_when_a_queue_is_made(broker: shmq.Broker, grouped: shmq.Queue[Any]) -> None:
    kind = grouped.options["groups"]
    assert broker.queue("either").options["groups"] == kind
    assert broker.queue("plain").options["groups"] is None
    with pytest.raises(OptionsMismatch, match="groups"):
        broker.queue("plain", groups="shared")
    with pytest.raises(OptionsMismatch, match="groups"):
        broker.queue("either", groups="sticky" if kind == "shared" else "shared")
    with pytest.raises(ValueError, match="groups"):
        broker.queue("third", groups="round")  # type: ignore[call-overload]
    with pytest.raises((TypeError, ValueError), match="groups"):
        grouped.alter(groups=None)


def test_an_expired_message_does_not_keep_its_group(broker: shmq.Broker) -> None:
    queue = broker.queue("changes", groups="shared")
    queue.put("a1", group="a", ttl=0.001)
    queue.put("a2", group="a")
    eventually(lambda: queue.qsize() == 1, "the first one has expired")
    with queue.consumer() as one:
        taken(one, "a2").ack()
