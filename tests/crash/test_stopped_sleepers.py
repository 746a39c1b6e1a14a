"""SIGSTOP of those who sleep: whatever they were to do, or had the first claim to, others do and have.

A stopped process wakes for nobody, and nothing says so. Nowhere but in the first test is there a deadline: what goes
wrong here lasts as long as somebody is stopped, and the limit of a line from a child is long. Shows G4.
"""

import os
import random
import signal
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.support.health import check_empty
from tests.support.offspring import Offspring, Say, eventually, falls_asleep, family, state_of
from tests.support.size import sized

PATIENCE = 0.1
PROMISED, LONGEST = PATIENCE + 0.3, 1.0  # seconds; the machine may be busy with other things
ROUNDS = sized(10, 100)

Queue = shmq.Queue[Any]


def stop(child: Offspring) -> None:
    falls_asleep(child)
    child.signal(signal.SIGSTOP)
    eventually(lambda: state_of(child.pid) == "T", "it is stopped")


# ---- those who sleep -------------------------------------------------------------------------------------------------


def as_taker(path: Path, say: Say) -> None:
    consumer = shmq.open(path).queue("jobs").consumer()
    say("sleeps")
    held = consumer.receive()
    say(held.body)
    signal.pause()
    held.ack()


def as_getter_of_another_queue(path: Path, say: Say) -> None:
    queue = shmq.open(path).queue("idle")
    say("sleeps")
    queue.get()


def as_taker_of_several_queues(path: Path, say: Say) -> None:
    broker = shmq.open(path)
    consumer = broker.consumer(broker.queue("idle"), broker.queue("jobs"))
    say("sleeps")
    consumer.receive()


def as_taker_of_higher_priority(path: Path, say: Say) -> None:
    consumer = shmq.open(path).queue("jobs").consumer(priority=9)
    say("sleeps")
    consumer.receive()


def as_one_in_reserve(path: Path, say: Say) -> None:
    consumer = shmq.open(path).queue("served", live_consumers=1).consumer(priority=9)
    say("sleeps")
    consumer.receive()


def with_a_live_place(path: Path, say: Say) -> None:
    broker = shmq.open(path)
    consumer = broker.queue(None, live_consumers=1).consumer()
    say("sleeps")
    consumer.receive()


def with_a_sticky_group(path: Path, say: Say) -> None:
    queue = shmq.open(path).queue(f"sticky {os.getpid()}", groups="sticky")
    consumer = queue.consumer()
    queue.put("first", group="g")
    consumer.receive().ack()
    say("sleeps")
    consumer.receive()


def with_a_ticket(path: Path, say: Say) -> None:
    queue = shmq.open(path).queue("full", maxsize=1)
    say("sleeps")
    queue.put("more")


SLEEPERS: list[Callable[[Path, Say], None]] = [
    as_taker,
    as_getter_of_another_queue,
    as_taker_of_several_queues,
    as_taker_of_higher_priority,
    as_one_in_reserve,
    with_a_live_place,
    with_a_sticky_group,
    with_a_ticket,
]


# ---- who holds, and who lives ----------------------------------------------------------------------------------------


def hold(path: Path, say: Say) -> None:
    held = shmq.open(path).queue("jobs").receive()
    say("holds")
    signal.pause()
    held.ack()


def in_one_sleep(queue: Queue) -> shmq.Message[Any]:
    return queue.receive()


def in_short_sleeps(queue: Queue) -> shmq.Message[Any]:
    while True:
        try:
            return queue.receive(timeout=0.01)
        except shmq.Empty:
            pass


def take(path: Path, how: Callable[[Queue], shmq.Message[Any]], say: Say) -> None:
    queue = shmq.open(path).queue("jobs")
    say("here")
    while True:
        with how(queue) as m:
            at = time.monotonic_ns()
        say(f"{m.body} {m.redelivered} {at}")


def living(path: Path, how: Callable[[Queue], shmq.Message[Any]]) -> Offspring:
    child = Offspring(take, path, how)
    child.expect("here")
    falls_asleep(child)
    return child


def members(family: list[Offspring], count: int, path: Path, kind: Callable[[Path, Say], None]) -> list[Offspring]:
    """So many that sleep, one after the other: the first has the watch, the second is its deputy."""
    sleepers = []
    for _ in range(count):
        child = Offspring(kind, path)
        family.append(child)
        sleepers.append(child)
        child.expect("sleeps")
        falls_asleep(child)
    return sleepers


def one_held(queue: Queue, path: Path, children: list[Offspring]) -> Offspring:
    queue.put("job")
    holder = Offspring(hold, path)
    children.append(holder)
    holder.expect("holds")
    return holder


@pytest.fixture
def jobs(broker_dir: Path) -> Any:
    """The queue, of a broker with all that the sleepers need; this process sleeps nowhere and looks at nothing."""
    with shmq.open(broker_dir, memory="64MiB", patience=PATIENCE) as broker:
        broker.queue("full", maxsize=1).put("old")
        served = broker.queue("served", live_consumers=1).consumer()
        yield broker.queue("jobs", max_deaths=0)
        served.close()


@pytest.mark.alone
@pytest.mark.timeout(sized(200, 900))
@pytest.mark.parametrize("stopped", [1, 2, 4, 12])
def test_what_a_killed_process_held_is_with_a_sleeper_within_the_promised_time_however_many_are_stopped(
    jobs: Queue, broker_dir: Path, seed: int, stopped: int
) -> None:
    """Shows G4."""
    rng, delays = random.Random(seed), []
    for _ in range(ROUNDS):
        with family() as children:
            holder = one_held(jobs, broker_dir, children)
            sleepers = members(children, stopped, broker_dir, as_getter_of_another_queue)
            children.append(taker := living(broker_dir, in_one_sleep))
            for sleeper in sleepers:
                stop(sleeper)
            time.sleep(rng.random() * 0.3)  # for any phase of its sleep
            begin = time.monotonic_ns()
            holder.kill()
            body, again, at = taker.line().split()
            assert (body, again) == ("job", "True")
            delays.append((int(at) - begin) / 1e9)
    print(stopped, "stopped:", [round(delay * 1e3, 1) for delay in sorted(delays)], "ms")
    assert statistics.median(delays) < PROMISED, delays
    assert max(delays) < LONGEST, delays


@pytest.mark.parametrize("stopped", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", SLEEPERS, ids=lambda kind: kind.__name__)
def test_what_a_killed_process_held_comes_to_one_that_lives_whoever_else_is_stopped_in_its_sleep(
    jobs: Queue, broker_dir: Path, kind: Callable[[Path, Say], None], stopped: int
) -> None:
    with family() as children:
        sleepers = members(children, stopped, broker_dir, kind)
        holder = one_held_by_a_living(jobs, broker_dir, children, sleepers)
        children.append(taker := living(broker_dir, in_one_sleep))
        holder.kill()
        assert taker.line().split()[:2] == ["job", "True"]


def one_held_by_a_living(queue: Queue, path: Path, children: list[Offspring], sleepers: list[Offspring]) -> Offspring:
    """The sleepers are stopped before there is anything to take, so none of them takes it."""
    for sleeper in sleepers:
        stop(sleeper)
    return one_held(queue, path, children)


@pytest.mark.parametrize("stopped", [1, 2, 3, 4])
@pytest.mark.parametrize("how", [in_one_sleep, in_short_sleeps], ids=lambda how: how.__name__)
@pytest.mark.parametrize("first", [True, False], ids=["slept_before_the_stop", "sleeps_after_it"])
def test_it_comes_to_one_that_sleeps_for_long_and_to_one_that_sleeps_for_moments(
    jobs: Queue, broker_dir: Path, stopped: int, how: Callable[[Queue], shmq.Message[Any]], first: bool
) -> None:
    with family() as children:
        holder = one_held(jobs, broker_dir, children)
        sleepers = members(children, stopped, broker_dir, as_taker)
        if first:
            children.append(taker := living(broker_dir, how))
        for sleeper in sleepers:
            stop(sleeper)
        if not first:
            children.append(taker := living(broker_dir, how))
        holder.kill()
        assert taker.line().split()[:2] == ["job", "True"]


@pytest.mark.parametrize("stopped", [1, 2, 4])
def test_those_who_go_on_lose_nothing_and_the_watch_is_kept(jobs: Queue, broker_dir: Path, stopped: int) -> None:
    with family() as children:
        sleepers = members(children, stopped, broker_dir, as_taker)
        holder = one_held_by_a_living(jobs, broker_dir, children, sleepers)
        taker = living(broker_dir, in_one_sleep)
        children.append(taker)
        holder.kill()
        assert taker.line().split()[:2] == ["job", "True"]
        taker.kill()
        for sleeper in sleepers:
            sleeper.signal(signal.SIGCONT)
        for number in range(stopped):
            jobs.put(number)  # each holds one, and sleeps no more: so the next goes to the next
        assert sorted(int(sleeper.line()) for sleeper in sleepers) == list(range(stopped))
        children.append(taker := living(broker_dir, in_one_sleep))
        for sleeper in sleepers:
            sleeper.kill()
        assert sorted(int(taker.line().split()[0]) for _ in sleepers) == list(range(stopped))


def test_what_is_due_comes_while_the_watch_and_its_deputy_are_stopped(jobs: Queue, broker_dir: Path) -> None:
    with family() as children:
        for sleeper in members(children, 3, broker_dir, as_getter_of_another_queue):
            stop(sleeper)
        children.append(taker := living(broker_dir, in_one_sleep))
        for number in range(3):
            jobs.put(number, delay=0.05)
            assert taker.line().split()[0] == str(number)


# ---- the first claim to a message ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stopped", [1, 2, 3, 4])
@pytest.mark.parametrize("by_get", [False, True], ids=["receive", "get"])
def test_any_number_of_stopped_consumers_of_higher_priority_keep_nothing_from_others(
    jobs: Queue, broker_dir: Path, stopped: int, by_get: bool
) -> None:
    """Shows S56, R5, S75."""
    with family() as children:
        for sleeper in members(children, stopped, broker_dir, as_taker_of_higher_priority):
            stop(sleeper)
        jobs.put_many(range(5))
        if by_get:
            assert [jobs.get(timeout=30) for _ in range(5)] == list(range(5))
        else:
            with jobs.consumer() as low:
                for number in range(5):
                    with low.receive(timeout=30) as m:
                        assert m.body == number


def test_those_of_higher_priority_are_first_again_when_they_go_on(jobs: Queue, broker_dir: Path) -> None:
    with family() as children:
        sleepers = members(children, 2, broker_dir, as_taker_of_higher_priority)
        for sleeper in sleepers:
            stop(sleeper)
        jobs.put("for any")
        assert jobs.get(timeout=30) == "for any"
        for sleeper in sleepers:
            sleeper.signal(signal.SIGCONT)
            falls_asleep(sleeper)
    check_empty(shmq.open(broker_dir), jobs)


@pytest.mark.parametrize("reserve", [1, 2, 3, 4])
@pytest.mark.parametrize("stopped", [False, True], ids=["living", "stopped"])
def test_consumers_in_reserve_whatever_their_priority_keep_nothing_from_the_live_one(
    jobs: Queue, broker_dir: Path, reserve: int, stopped: bool
) -> None:
    """Shows C3, C13."""
    with shmq.open(broker_dir) as broker, broker.queue("ranked", live_consumers=1).consumer() as live:
        queue = broker.queue("ranked")

        def stand_by(path: Path, say: Say) -> None:
            consumer = shmq.open(path).queue("ranked").consumer(priority=9)
            say("sleeps")
            with consumer.receive() as m:
                say(m.body)

        with family() as children:
            sleepers = members(children, reserve, broker_dir, stand_by)
            if stopped:
                for sleeper in sleepers:
                    stop(sleeper)
            queue.put_many(range(4))
            for number in range(3):
                with live.receive(timeout=30) as m:
                    assert m.body == number
            assert queue.get(timeout=30) == 3
            if not stopped:
                queue.put("for the next")
                live.close()
                lines: list[str] = []
                eventually(lambda: heard(sleepers, lines), "one of those in reserve follows")
                assert lines == ["for the next"]


def heard(children: list[Offspring], lines: list[str]) -> bool:
    for child in children:
        try:
            lines.append(child.line(0.01))
        except AssertionError:
            continue
        return True
    return False
