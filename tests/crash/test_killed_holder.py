"""kill -9 of who holds messages: others have them at once, in their place, marked as delivered again.

Margins: the protocol's figure is 50 ms from the death. Asked for here: the median within 50 ms of the *kill*, which is
before the death, and no single one above 500 ms, since the machine may be busy with other things. Shows G4.
"""

import random
import signal
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import shmq
from tests.support.health import check_empty, reap_the_dead, usage
from tests.support.offspring import Offspring, Say, eventually
from tests.support.size import sized

HELD = 10
ROUNDS = sized(20, 200)
MEDIAN, LONGEST = 0.050, 0.500

Queue = shmq.Queue[Any]


def hold(queue: Queue, say: Say) -> None:
    held = [queue.receive(timeout=30) for _ in range(HELD)]
    assert [m.body for m in held] == list(range(HELD))
    say("held")
    signal.pause()


def hold_one(queue: Queue, say: Say) -> None:
    held = queue.receive(timeout=30)
    say(held.body)
    signal.pause()


def put_more(queue: Queue, say: Say) -> None:
    say(queue.put("more", timeout=30))


def watch_and_hold(queue: Queue, idle: Queue, say: Say) -> None:
    """Sleeps in one thread, so that its process is the one that watches, and holds with the other."""
    threading.Thread(target=idle.get, daemon=True).start()
    eventually(lambda: idle._waiters()["asleep"] == 1, "the thread sleeps")
    hold(queue, say)


def take_over(queue: Queue, say: Say) -> None:
    """Waits for what another holds; says when it had all of it."""
    while True:
        taken = [queue.receive()]
        while len(taken) < HELD:
            taken.append(queue.receive())
        at = time.monotonic_ns()
        bodies = [m.body for m in taken]
        again = [m.redelivered for m in taken]
        for m in taken:
            m.ack()
        say(f"{at} {bodies == list(range(HELD))} {all(again)}")


def refill(queue: Queue) -> None:
    eventually(lambda: queue._census()["ready"] + queue._census()["unsettled"] == 0, "the queue is empty")
    queue.put_many(range(HELD))


def measure(
    queue: Queue, rng: random.Random, start: Callable[[], Offspring], ready: Callable[[], object], rest: float
) -> list[float]:
    """For each round the seconds from the kill to the moment when another has all of it."""
    delays = []
    for _ in range(ROUNDS):
        refill(queue)
        holder = start()
        try:
            holder.expect("held")
            with Offspring(take_over, queue) as other:
                eventually(ready, "everybody else sleeps")
                time.sleep(rest + rng.random() * 0.04)  # for any phase of their sleep; they have slept for a while
                begin = time.monotonic_ns()
                holder.kill()
                at, in_order, again = other.line().split()
                assert (in_order, again) == ("True", "True")
                delays.append((int(at) - begin) / 1e9)
        finally:
            holder.close()
    return sorted(delays)


def check(delays: list[float], figure: Callable[..., None]) -> None:
    figure("deaths", deaths=len(delays), delays_ms=[round(delay * 1e3, 2) for delay in delays])
    assert statistics.median(delays) < MEDIAN, delays
    assert delays[-1] < LONGEST, delays


def asleep(queue: Queue, count: int) -> Callable[[], bool]:
    return lambda: queue._waiters()["asleep"] == count


@pytest.mark.alone
@pytest.mark.parametrize("rest", [0.0, 0.25], ids=["just_asleep", "asleep_for_long"])
def test_ten_held_messages_are_with_others_within_50_ms_of_a_kill(
    broker: shmq.Broker, seed: int, figure: Callable[..., None], rest: float
) -> None:
    """Shows S22, E13, C12, R3."""
    queue = broker.queue("jobs", max_deaths=0)
    delays = measure(queue, random.Random(seed), lambda: Offspring(hold, queue), asleep(queue, 1), rest)
    check(delays, figure)
    check_empty(broker, queue)


@pytest.mark.alone
def test_the_same_when_the_killed_one_was_itself_the_watcher(
    broker: shmq.Broker, seed: int, figure: Callable[..., None]
) -> None:
    queue, idle = broker.queue("jobs", max_deaths=0), broker.queue("idle")
    rng = random.Random(seed)
    delays = measure(queue, rng, lambda: Offspring(watch_and_hold, queue, idle), asleep(queue, 1), 0.2)
    check(delays, figure)
    check_empty(broker, queue, idle)


@pytest.mark.alone
def test_the_same_after_a_watcher_that_held_nothing_was_killed(
    broker: shmq.Broker, seed: int, figure: Callable[..., None]
) -> None:
    queue, idle = broker.queue("jobs", max_deaths=0), broker.queue("idle")

    def watch(say: Say) -> None:
        say("here")
        idle.get()

    watchers: list[Offspring] = []

    def start() -> Offspring:
        watcher = Offspring(watch)
        watchers.append(watcher)
        watcher.expect("here")
        eventually(asleep(idle, 1), "the watcher sleeps")
        holder = Offspring(hold, queue)
        eventually(lambda: queue._census()["unsettled"] == HELD, "it holds")
        return holder

    def kill_watcher() -> bool:
        if not asleep(queue, 1)():
            return False
        watchers[-1].kill()
        return True

    try:
        check(measure(queue, random.Random(seed), start, kill_watcher, 0.0), figure)
    finally:
        for watcher in watchers:
            watcher.close()
    check_empty(broker, queue, idle)


@pytest.mark.alone
def test_the_same_while_producers_sleep_at_a_full_queue(
    broker: shmq.Broker, seed: int, figure: Callable[..., None]
) -> None:
    queue = broker.queue("jobs", max_deaths=0, maxsize=HELD)
    rng = random.Random(seed)
    delays = []
    for _ in range(ROUNDS // 2):
        refill(queue)
        with (
            Offspring(hold, queue) as holder,
            Offspring(put_more, queue) as first,
            Offspring(put_more, queue) as second,
        ):
            holder.expect("held")
            eventually(lambda: queue._waiters()["producers_waiting"] == 2, "both producers wait")
            time.sleep(rng.random() * 0.2)
            with Offspring(take_over, queue) as other:
                eventually(asleep(queue, 1), "the other consumer sleeps")
                begin = time.monotonic_ns()
                holder.kill()
                at, in_order, again = other.line().split()
                assert (in_order, again) == ("True", "True")
                delays.append((int(at) - begin) / 1e9)
                first.line()
                second.line()
                other.kill()
        assert [queue.get(timeout=5) for _ in range(2)] == ["more", "more"]
    delays.sort()
    check(delays, figure)
    check_empty(broker, queue)


def test_messages_of_a_killed_consumer_come_before_later_ones_and_count_the_death(broker: shmq.Broker) -> None:
    """Shows S2, E13, R3, G1."""
    queue = broker.queue("jobs")
    queue.put_many(range(20))
    with Offspring(hold, queue) as holder:
        holder.expect("held")
        holder.kill()
        seen = []
        reap_the_dead(broker)
        for _ in range(20):
            with queue.receive(timeout=10) as m:
                seen.append((m.body, m.redelivered, m.delivery_count))
    assert seen == [(n, n < HELD, 1 + (n < HELD)) for n in range(20)]
    assert queue.statistics().deaths == HELD
    assert usage(broker)["deaths"] == 1
    check_empty(broker, queue)


def test_a_message_that_kills_too_often_is_dead(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", max_deaths=2)
    queue.put("poison")
    pids = []
    for _ in range(2):
        with Offspring(hold_one, queue) as victim:
            victim.expect("poison")
            victim.kill()
            pids.append(victim.pid)
        broker.statistics()
    with pytest.raises(shmq.Empty):
        queue.receive(timeout=0.2)
    with broker.queue("jobs.dead").receive(timeout=5) as m:
        assert m.body == "poison"
        assert m.death is not None
        assert m.death.pids == tuple(pids)
