"""SIGSTOP of a producer or a taker at any moment delays the others by at most the patience (0.1 s here).

Margin: 0.3 s, for a machine that is busy with other things; each stop lasts 0.8 s, so waiting it out would show. A stop
between claim and publish, and what comes after it, is made on purpose in native/tests/ring/test_ring.c. Shows G4.
"""

import contextlib
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.crash.test_killed_producer import Ledger
from tests.support.health import check_empty, usage
from tests.support.offspring import Offspring, Say, family
from tests.support.size import sized

Queue = shmq.Queue[Any]
PATIENCE, MARGIN, STOP = 0.1, 0.3, 0.8
STOPS = sized(12, 150)


def produce(queue: Queue, producer: int, say: Say) -> None:
    number = 0
    say("here")
    try:
        while True:
            if number % 5 == 0:
                queue.put_many(b"%d %d " % (producer, n) for n in range(number, number + 10))
                number += 10
            else:
                queue.put(b"%d %d " % (producer, number))
                number += 1
    except shmq.ShutDown as error:
        say(number + getattr(error, "accepted", 0))


def longest_gap(queue: Queue, ledger: Ledger, seconds: float) -> float:
    """Takes for so long; the longest time that one get() took."""
    longest = 0.0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        body = queue.get(timeout=30)
        longest = max(longest, time.monotonic() - begin)
        ledger.note(body)
    return longest


def drain(queue: Queue, ledger: Ledger) -> None:
    try:
        while True:
            ledger.note(queue.get(timeout=30))
    except shmq.ShutDown:
        return


@pytest.mark.alone
@pytest.mark.parametrize("maxsize", [0, 40], ids=["unlimited", "full_all_the_time"])
def test_a_producer_that_is_stopped_anywhere_delays_others_by_at_most_the_patience(
    broker_dir: Path, seed: int, maxsize: int
) -> None:
    """Shows S3. Of a queue that stays in memory: see test_stopped_flow.py for one that flows."""
    with shmq.open(broker_dir, memory="64MiB", disk=0) as broker:
        puts_go_on_beside_stopped_producers(broker, seed, maxsize)


def puts_go_on_beside_stopped_producers(broker: shmq.Broker, seed: int, maxsize: int) -> None:
    rng = random.Random(seed)
    queue = broker.queue("jobs", codec="bytes", maxsize=maxsize)
    ledger = Ledger()
    gaps = []
    with family() as children:
        for number in range(3):
            children.append(Offspring(produce, queue, number))
            children[-1].expect("here")
        for _ in range(STOPS):
            longest_gap(queue, ledger, rng.random() * 0.02)
            stopped = rng.sample(children, rng.choice([1, 1, 2]))
            for child in stopped:
                child.signal(signal.SIGSTOP)
            gaps.append(longest_gap(queue, ledger, STOP))
            for child in stopped:
                child.signal(signal.SIGCONT)
        queue.shutdown()
        drain(queue, ledger)
        told = [int(child.line()) for child in children]
        drain(queue, ledger)  # a put that was under way at the shutdown may have been accepted behind the first one
        for number, (child, accepted) in enumerate(zip(children, told, strict=True)):
            assert accepted <= ledger.next[number] <= accepted + 10
            assert child.wait() == 0
    print(f"{STOPS} stops, longest delay {max(gaps) * 1e3:.0f} ms")
    assert max(gaps) < PATIENCE + MARGIN, gaps
    check_empty(broker, queue)


def take(queue: Queue, say: Say) -> None:
    # The first wait takes a row, under the structure lock: guarantees.md tells what it costs if one is stopped there.
    with contextlib.suppress(shmq.Empty):
        queue.get(timeout=0.001)
    say("here")
    while True:
        queue.get()


@pytest.mark.alone
def test_a_taker_that_is_stopped_anywhere_delays_others_by_at_most_the_patience(broker: shmq.Broker, seed: int) -> None:
    rng = random.Random(seed)
    queue = broker.queue("jobs", codec="bytes", maxsize=40)
    longest = 0.0
    with family() as children:
        for _ in range(2):
            children.append(Offspring(take, queue))
            children[-1].expect("here")
        for _ in range(STOPS):
            for n in range(rng.randrange(200)):
                queue.put(b"%d" % n)
            stopped = rng.choice(children)
            stopped.signal(signal.SIGSTOP)
            end = time.monotonic() + STOP / 2
            while time.monotonic() < end:
                begin = time.monotonic()
                queue.put(b"x" * rng.randrange(100), timeout=30)
                longest = max(longest, time.monotonic() - begin)
            stopped.signal(signal.SIGCONT)
        queue.join(timeout=30)
    print(f"{STOPS} stops, longest delay {longest * 1e3:.0f} ms, rescues {usage(broker)['rescues']}")
    assert longest < PATIENCE + MARGIN
    check_empty(broker, queue)


@pytest.mark.alone
def test_a_stopped_holder_keeps_its_messages_and_settles_them_when_it_goes_on(broker: shmq.Broker) -> None:
    """Shows R3."""
    queue = broker.queue("jobs")

    def hold(say: Say) -> None:
        m = queue.receive(timeout=30)
        say("held")
        signal.sigwait([signal.SIGUSR1])
        m.ack()
        say("settled")

    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        with Offspring(hold) as child:
            queue.put("mine")
            child.expect("held")
            child.signal(signal.SIGSTOP)
            queue.put("other")
            assert queue.get(timeout=5) == "other"
            with pytest.raises(shmq.Empty):
                queue.get(timeout=3 * PATIENCE)
            child.signal(signal.SIGCONT)
            child.signal(signal.SIGUSR1)
            child.expect("settled")
            assert child.wait() == 0
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    check_empty(broker, queue)
