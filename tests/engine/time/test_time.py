"""Delays and times to live, as their users see them; leases beside them."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import shmq
from tests.engine.child import eventually
from tests.engine.conftest import Taker
from tests.support.offspring import Offspring, Say

FAR = 3600.0
SOON = 0.02
DELAYS = (SOON, 0.3, 3.0, 30.0)  # on a busy machine the shorter ones may be over before anybody looks


def dead_of(queue: shmq.Queue[Any]) -> list[tuple[Any, str]]:
    dead = queue.broker.queue(f"{queue.name}.dead")
    return [(m.body, m.death.reason) for m in dead.browse() if m.death is not None]


# ---- delay


def test_a_delayed_message_is_for_nobody_before_its_time(queue: shmq.Queue[Any], take: Taker) -> None:
    put_at = time.monotonic()
    queue.put("later", delay=1.0)
    with pytest.raises(shmq.Empty):
        take(queue, 0)
    s = queue.statistics()
    assert (s.ready, s.delayed, s.unsettled) == (0, 1, 0)
    assert take(queue, 30) == "later"
    assert time.monotonic() - put_at >= 1.0


def delayed(queue: shmq.Queue[Any], act: Callable[[float], object]) -> int:
    """How many messages are delayed behind an act whose delay is not over when one looks."""
    seen = 0
    for delay in DELAYS:
        act(delay)
        if seen := queue.statistics().delayed:
            break
    return seen


def test_what_is_not_delayed_overtakes(queue: shmq.Queue[Any]) -> None:
    """Shows E6."""
    queue.put("later", delay=FAR)
    queue.put("now")
    assert queue.get(timeout=0) == "now"
    assert queue.statistics().delayed == 1


def test_a_delayed_message_comes_in_its_place(queue: shmq.Queue[Any]) -> None:
    """Shows E7, R11, G1."""
    for delay in DELAYS:
        queue.put_many(["a", "b"], delay=delay)
        queue.put_many(["c", "d"])
        if (first := queue.get(timeout=0)) == "c":
            break
        queue.purge()
    assert first == "c"
    eventually(lambda: queue.qsize() == 3, "the end of the delay")
    assert queue.get_many(4, timeout=0) == ["a", "b", "d"]


@pytest.mark.parametrize("ttl", [0, 1, 5])
def test_what_would_expire_before_it_is_due_is_refused(queue: shmq.Queue[Any], ttl: float) -> None:
    puts: list[Callable[..., object]] = [
        lambda **options: queue.put("a", **options),
        lambda **options: queue.put_many(["a", "b"], **options),
        lambda **options: queue.loan(1, **options),
        lambda **options: queue.loan_array(1, "u1", **options),
    ]
    for put in puts:
        with pytest.raises(ValueError, match=f"delay=5: ttl is {ttl} s.*; give a shorter delay or a longer ttl"):
            put(delay=5, ttl=ttl)
    queue.alter(max_ttl=ttl)
    with pytest.raises(ValueError, match=f"delay=5: max_ttl of the queue is {ttl} s"):
        queue.put("a", delay=5, ttl=60)
    assert (queue.statistics().delayed, queue.statistics().put) == (0, 0)
    queue.alter(max_ttl=5.1)
    queue.put("a", delay=5, ttl=5.1)
    assert queue.statistics().delayed == 1


def test_a_batch_is_delayed_as_a_whole(queue: shmq.Queue[Any]) -> None:
    queue.put_many(range(200), delay=SOON)
    assert [queue.get(timeout=30) for _ in range(200)] == list(range(200))


def test_a_loan_can_be_delayed(queue: shmq.Queue[Any]) -> None:
    def lend(delay: float) -> None:
        with queue.loan(3, delay=delay) as loan:
            loan.view[:] = b"abc"

    assert delayed(queue, lend) == 1
    assert queue.get(timeout=30) == b"abc"


def test_browsers_see_what_is_delayed_and_purge_takes_it(queue: shmq.Queue[Any]) -> None:
    queue.put("later", delay=FAR)
    queue.put("now")
    assert [m.body for m in queue.browse()] == ["later", "now"]
    assert queue.purge(selector="x IS NULL") == 2
    queue.put("later", delay=FAR)
    queue.put("now")
    assert queue.purge() == 2
    assert queue.statistics().delayed == 0


def test_join_waits_for_what_is_delayed(queue: shmq.Queue[Any]) -> None:
    queue.put("later", delay=FAR)
    with pytest.raises(shmq.Timeout):
        queue.join(timeout=0.01)


def test_a_deleted_queue_takes_what_is_delayed_along(broker: shmq.Broker) -> None:
    queue = broker.queue("doomed", dead_letter="kept")
    queue.put("later", delay=FAR)
    queue.delete()
    assert [m.body for m in broker.queue("kept").browse()] == ["later"]


def test_a_queue_without_times_has_no_records_for_them(broker: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = broker.queue("plain")
    before = broker.statistics().memory_used
    queue.put("now")
    assert broker.statistics().memory_used == before
    queue.put("later", delay=FAR)
    assert broker.statistics().memory_used > before


@pytest.mark.parametrize("delay", [-1, float("nan"), 1e9])
def test_unfit_delays_are_refused_and_the_message_stays(queue: shmq.Queue[Any], delay: float) -> None:
    queue.put("a")
    m = queue.receive(timeout=0)
    with pytest.raises(ValueError, match="delay"):
        m.release(delay=delay)
    with pytest.raises(ValueError, match="delay"):
        m.retry(delay=delay)
    assert not m.settled
    m.ack()


def test_a_release_with_a_delay_is_not_counted_and_a_retry_is(queue: shmq.Queue[Any]) -> None:
    queue.put("a")
    assert delayed(queue, lambda delay: queue.receive(timeout=0).release(delay=delay)) == 1
    m = queue.receive(timeout=30)
    assert (m.delivery_count, m.redelivered) == (1, True)
    m.retry(delay=SOON)
    m = queue.receive(timeout=30)
    assert m.delivery_count == 2
    m.ack()


def test_retry_delay_is_by_attempt_and_the_last_one_repeats(broker: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = broker.queue("slowly", retry_delay=(0, 0.03, FAR))
    queue.put("a")
    queue.receive(timeout=0).retry()
    began = time.monotonic()
    queue.receive(timeout=0).retry()
    m = queue.receive(timeout=30)
    assert time.monotonic() - began >= 0.03
    m.retry()
    assert queue.statistics().delayed == 1
    with pytest.raises(shmq.Empty):
        queue.receive(timeout=0)
    assert broker.queue("slowly").options["retry_delay"] == (0.0, 0.03, FAR)


def test_retry_delay_holds_for_an_exception_in_a_with_block_and_yields_to_an_own_delay(broker: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = broker.queue("slowly", retry_delay=FAR)
    queue.put_many(["a", "b"])
    with contextlib.suppress(ZeroDivisionError), queue.receive(timeout=0):
        raise ZeroDivisionError
    queue.receive(timeout=0).retry(delay=0)
    s = queue.statistics()
    assert (s.delayed, s.ready) == (1, 1)


def test_a_worker_pool_waits_for_what_it_tries_again(broker: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = broker.queue("work", retry_delay=SOON, max_attempts=3)
    queue.put("never works")
    shmq.WorkerPool(queue, _fail, processes=0).run(until_empty=True)
    assert dead_of(queue) == [("never works", "max_attempts")]


def _fail(m: shmq.Message[Any]) -> None:
    raise ZeroDivisionError


@pytest.mark.alone
def test_a_delayed_message_is_with_a_waiting_consumer_in_time(queue: shmq.Queue[Any]) -> None:
    """Shows S54, E7."""
    late = []
    for _ in range(20):
        due = time.monotonic() + 0.05
        queue.put("a", delay=0.05)
        queue.get(timeout=30)
        late.append(time.monotonic() - due)
    assert min(late) >= -0.001
    assert sorted(late)[10] < 0.02, f"late by {late}"


def wait_for_one(queue: shmq.Queue[Any], say: Say) -> None:
    say("ready")
    say(queue.get(timeout=30))


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGSTOP])
def test_a_dead_or_stopped_sleeper_does_not_delay_what_is_due(queue: shmq.Queue[Any], ending: signal.Signals) -> None:
    """Shows R11, G4."""
    other: shmq.Queue[Any] = queue.broker.queue("other")
    with Offspring(wait_for_one, other) as watcher, Offspring(wait_for_one, queue) as taker:
        watcher.expect("ready")
        taker.expect("ready")
        eventually(lambda: queue._waiters()["asleep"] == 1 and other._waiters()["asleep"] == 1, "both asleep")
        queue.put("later", delay=0.2)
        os.kill(watcher.pid, ending)
        taker.expect("later")
        os.kill(watcher.pid, signal.SIGCONT)


def put_delayed_and_die(queue: shmq.Queue[Any], say: Say) -> None:
    queue.put("left", delay=0.1)
    say("put")
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_process_has_delayed_comes(queue: shmq.Queue[Any]) -> None:
    """Shows R11, G4."""
    with Offspring(put_delayed_and_die, queue) as child:
        child.expect("put")
        assert queue.get(timeout=30) == "left"


# ---- time to live


def test_what_has_expired_is_delivered_to_nobody(queue: shmq.Queue[Any], take: Taker) -> None:
    """Shows R7."""
    queue.put("gone", ttl=0)
    queue.put("gone soon", ttl=SOON)
    queue.put("stays", ttl=FAR)
    time.sleep(2 * SOON)
    assert take(queue, 0) == "stays"
    with pytest.raises(shmq.Empty):
        take(queue, 0)
    s = queue.statistics()
    assert (s.expired, s.ready, s.dead_lettered) == (2, 0, 0)


def test_a_message_says_when_it_expires(queue: shmq.Queue[Any]) -> None:
    queue.put("a", ttl=60)
    queue.put("b")
    seen = {m.body: m.expires_at for m in queue.browse()}
    assert seen == {"a": pytest.approx(time.time() + 60, abs=5), "b": None}
    with queue.receive(timeout=0) as m:
        assert m.expires_at == seen["a"]


def test_the_queue_limits_the_life_of_what_says_less_or_nothing(broker: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = broker.queue("short")
    queue.put("before the limit")
    queue.put("long", ttl=FAR)
    broker.queue("short", max_ttl=SOON)
    queue.put("after it")
    eventually(lambda: queue.statistics().expired == 3, "the end of all three")
    assert queue.qsize() == 0


def test_a_limit_that_is_altered_holds_at_once_for_what_is_there(queue: shmq.Queue[Any]) -> None:
    queue.put("a")
    queue.alter(max_ttl=SOON)
    queue.join(timeout=30)
    assert queue.statistics().expired == 1
    queue.alter(max_ttl=None)
    queue.put("b")
    with queue.receive(timeout=0) as m:
        assert m.expires_at is None


def test_what_expires_while_nobody_takes_goes_by_itself(queue: shmq.Queue[Any]) -> None:
    queue.put("a", ttl=SOON)
    queue.join(timeout=30)
    assert queue.statistics().expired == 1


def test_what_expires_in_a_hand_is_taken_from_it(queue: shmq.Queue[Any]) -> None:
    """Shows E11, R7, R8."""
    queue.put("a", ttl=2.0)
    m = queue.receive(timeout=0)
    eventually(lambda: queue.statistics().expired == 1, "its end")
    with pytest.raises(shmq.SettlementError, match="it had expired"):
        m.ack()
    s = queue.statistics()
    assert (s.unsettled, s.acked) == (0, 0)
    assert queue.broker.statistics().processes[0].unsettled == 0


def test_what_is_released_after_its_time_does_not_come_back(queue: shmq.Queue[Any]) -> None:
    """Shows R7, G3."""
    queue.put("a", ttl=1.0)
    m = queue.receive(timeout=0)
    assert m.expires_at is not None
    time.sleep(max(0.0, m.expires_at - time.time()) + SOON)  # to the time that it says itself
    with contextlib.suppress(shmq.SettlementError):  # housekeeping may have been first
        m.release()
    with pytest.raises(shmq.Empty):
        queue.get(timeout=0)
    assert queue.statistics().expired == 1


def test_expired_messages_go_to_the_dead_where_the_queue_says_so(broker: shmq.Broker, take: Taker) -> None:
    queue: shmq.Queue[Any] = broker.queue("kept", dead_letter_expired=True)
    queue.put("a", ttl=0, headers={"n": 1})
    queue.put("b")
    assert take(queue, 0) == "b"
    assert dead_of(queue) == [("a", "expired")]
    s = queue.statistics()
    assert (s.expired, s.dead_lettered) == (1, 1)


def test_expired_messages_are_buried_when_nobody_takes(broker: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = broker.queue("kept", dead_letter_expired=True)
    queue.put("in hand", ttl=2.0)
    m = queue.receive(timeout=0)
    queue.put("held", ttl=2.0)
    queue.receive(timeout=0).release(delay=FAR)
    queue.put("a", ttl=SOON)
    idle: shmq.Queue[Any] = broker.queue("idle")
    while len(dead_of(queue)) < 3:  # whoever waits for anything does it
        with contextlib.suppress(shmq.Empty):
            idle.get(timeout=0.3)
    assert sorted(dead_of(queue)) == [("a", "expired"), ("held", "expired"), ("in hand", "expired")]
    with pytest.raises(shmq.SettlementError, match="expired"):
        m.ack()


@pytest.mark.parametrize("act", ["put", "put_many", "get", "receive"])
def test_who_is_always_busy_buries_what_expires_in_any_queue(broker: shmq.Broker, act: str) -> None:
    """Nobody waits, nobody asks for figures: the look that each call takes has to be enough."""
    busy: shmq.Queue[Any] = broker.queue("busy", maxsize=100, overflow="drop_oldest")
    kept: shmq.Queue[Any] = broker.queue("kept", dead_letter_expired=True)
    dead: shmq.Queue[Any] = broker.queue("kept.dead")

    def keep_busy() -> None:
        busy.put_many(["b", "c"]) if act == "put_many" else busy.put("b")
        if act == "get":
            busy.get()
        elif act == "receive":
            busy.receive().ack()

    def is_buried() -> bool:
        keep_busy()
        return next(dead.browse(), None) is not None

    kept.put("a", ttl=SOON)
    eventually(is_buried, "its burial")


def test_nothing_expires_among_the_dead_by_itself(broker: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = broker.queue("short", max_ttl=SOON, dead_letter_expired=True)
    queue.put("a")
    eventually(lambda: queue.statistics().expired == 1, "its end")
    (dead,) = broker.queue("short.dead").browse()
    assert dead.expires_at is None


def test_from_a_queue_for_the_dead_the_expired_are_dropped(broker: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = broker.queue("jobs")
    queue.put("a")
    queue.receive(timeout=0).reject()
    dead: shmq.Queue[Any] = broker.queue("jobs.dead", max_ttl=SOON, dead_letter_expired=True)
    eventually(lambda: dead.statistics().expired == 1, "its end")
    assert dead.qsize() == 0
    assert [q.name for q in broker.queues()] == ["jobs", "jobs.dead"]


# ---- all at once


def test_many_threads_with_delays_leases_and_lives_lose_nothing(broker: shmq.Broker) -> None:
    """Shows G3."""
    queue: shmq.Queue[Any] = broker.queue("busy", lease=5, retry_delay=0.005, max_attempts=0)
    done: list[int] = []
    count = 400

    def work() -> None:
        while True:
            try:
                m = queue.receive(timeout=None)
            except shmq.ShutDown:
                return
            if m.delivery_count == 1 and m.body % 3 == 0:
                m.retry()
            elif not m.redelivered and m.body % 3 == 1:
                m.release(delay=0.003)
            else:
                done.append(m.body)
                m.ack()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(count):
        queue.put(n, delay=0.002 * (n % 5), ttl=FAR)
    queue.join(timeout=60)
    queue.shutdown()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(count))
    assert queue._check() is None


# ---- with priorities


def test_delays_lives_and_leases_hold_on_every_level(broker: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = broker.queue("levels", priorities=10, lease=2.0)
    for priority in range(10):
        queue.put(["later", priority], priority=priority, delay=FAR)
        queue.put(["gone", priority], priority=priority, ttl=0)
        queue.put(["now", priority], priority=priority)
        queue.put(["soon", priority], priority=priority, delay=2.0)
    kept = [queue.receive(timeout=0) for _ in range(10)]
    assert [m.body for m in kept] == [["now", priority] for priority in range(9, -1, -1)]
    eventually(lambda: queue.qsize() == 20, "the end of leases and delays")
    s = queue.statistics()
    assert (s.expired, s.delayed, s.unsettled) == (10, 10, 0)
    with pytest.raises(shmq.SettlementError, match="lease"):
        kept[0].ack()
    order = [[kind, priority] for priority in range(9, -1, -1) for kind in ("now", "soon")]
    assert queue.get_many(20, timeout=0) == order
    assert queue.purge() == 10
    assert queue.statistics().delayed == 0
    assert queue._check() is None
