"""Messages that a consumer takes by then, or that come back: never both."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.errors import Empty, Returned, ShutDown
from tests.engine.conftest import MEMORY
from tests.support.offspring import Offspring, Say, eventually

SLOW = 30.0


def test_what_nobody_takes_in_time_comes_back(queue: shmq.Queue[Any]) -> None:
    """Shows S12, S16."""
    for immediate in (True, 0, 0.05):
        with pytest.raises(Returned, match="no consumer of queue 'jobs' took the message") as caught:
            queue.put("now or never", immediate=immediate)
        assert caught.value.reason == "no_consumer"
    assert queue.qsize() == 0
    with pytest.raises(Empty):
        queue.get(timeout=0)


@pytest.mark.parametrize(("immediate", "ttl"), [(True, 0), (0.3, 0.1), (0.3, 0.3), (True, 0.001)])
def test_one_that_would_expire_before_that_is_refused(queue: shmq.Queue[Any], immediate: float, ttl: float) -> None:
    """It would be neither taken nor come back."""
    with pytest.raises(ValueError, match=r"immediate: ttl is .* has to live longer"):
        queue.put("x", immediate=immediate, ttl=ttl)
    queue.alter(max_ttl=ttl)
    with pytest.raises(ValueError, match="immediate: max_ttl of the queue is"):
        queue.put("x", immediate=immediate)
    assert queue.statistics().put == 0
    queue.alter(max_ttl=60)
    with pytest.raises(Returned):
        queue.put("x", immediate=True, ttl=60)


def test_a_consumer_that_waits_takes_it(broker_dir: Path) -> None:
    broker = shmq.open(broker_dir, memory=MEMORY, patience=60.0)  # it is waited for, however busy the machine is
    queue: shmq.Queue[Any] = broker.queue("jobs")
    for take in (queue.get, lambda **t: queue.receive(**t).ack()):
        thread = threading.Thread(target=take, kwargs={"timeout": SLOW})
        thread.start()
        eventually(lambda: queue._waiters()["asleep"] == 1, "it waits")
        assert queue.put("taken", immediate=True) > 0
        thread.join(SLOW)
    broker.close()


def test_it_is_given_the_time_that_was_said(queue: shmq.Queue[Any]) -> None:
    got: list[Any] = []
    begun = threading.Event()

    def late() -> None:
        begun.wait(SLOW)
        got.append(queue.get(timeout=SLOW))

    thread = threading.Thread(target=late)
    thread.start()
    threading.Timer(0.05, begun.set).start()
    queue.put("waits for a taker", immediate=SLOW)
    thread.join(SLOW)
    assert got == ["waits for a taker"]


def test_what_was_with_a_consumer_and_came_back_is_not_withdrawn(queue: shmq.Queue[Any]) -> None:
    """Shows S15: whoever had it once has had it."""

    def take_and_give_back() -> None:
        queue.receive(timeout=SLOW).release()

    thread = threading.Thread(target=take_and_give_back)
    thread.start()
    queue.put("once", immediate=SLOW)
    thread.join(SLOW)
    assert queue.get(timeout=0) == "once"


def take_some(path: str, seed: int, count: int, say: Say) -> None:
    queue = shmq.open(path).queue("jobs")
    chance = random.Random(seed)
    got: list[int] = []
    while len(got) < count:
        try:
            body = queue.get(timeout=chance.choice((0, 0, 0.001)))
        except Empty:
            continue
        if body is None:
            break
        got.append(body)
    say(",".join(map(str, got)))


def test_it_is_never_both_returned_and_delivered(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    """Shows R9, G2."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    returned, accepted = set(), set()
    with Offspring(take_some, broker.path, seed, 1 << 20) as taker:
        for n in range(2000):
            try:
                queue.put(n, immediate=chance.choice((True, 0.0001, 0.001)))
                accepted.add(n)
            except Returned:
                returned.add(n)
        queue.put(None)
        delivered = {int(n) for n in taker.line().split(",") if n}
    assert delivered == accepted
    assert not delivered & returned
    assert len(accepted) + len(returned) == 2000


def put_and_wait(path: str, immediate: float, ttl: float | None, say: Say) -> None:
    queue = shmq.open(path).queue("jobs", create=False)
    try:
        queue.put("waits", immediate=immediate, ttl=ttl)
        say("taken")
    except Returned as error:
        say("returned" if "taken out" in str(error) else str(error))


TAKEN_OUT: dict[str, Callable[[shmq.Queue[Any]], object]] = {
    "purged": lambda queue: queue.purge(),
    "purged by a selector": lambda queue: queue.purge(selector="JMSPriority = 4"),
    "dropped": lambda queue: queue.put("newer"),
    "deleted": lambda queue: queue.delete(),
}


@pytest.mark.parametrize("how", TAKEN_OUT)
def test_what_is_taken_out_before_anybody_had_it_comes_back(broker: shmq.Broker, how: str) -> None:
    """Shows G2."""
    queue = broker.queue("jobs", maxsize=1, overflow="drop_oldest")
    with Offspring(put_and_wait, broker.path, SLOW, None) as putter:
        eventually(lambda: queue.qsize() == 1, "it is there")
        TAKEN_OUT[how](queue)
        putter.expect("returned")


def test_what_has_expired_while_its_producer_was_stopped_comes_back(
    broker: shmq.Broker, queue: shmq.Queue[Any]
) -> None:
    """Shows G2."""
    with Offspring(put_and_wait, broker.path, 2.0, 2.5) as putter:
        eventually(lambda: queue.qsize() == 1, "it is there")
        os.kill(putter.pid, signal.SIGSTOP)
        begun = time.monotonic()
        eventually(lambda: time.monotonic() - begun > 2.6, "its time is over")
        with pytest.raises(Empty):
            queue.get(timeout=0)
        queue.put_many(range(3000))  # its place is another's
        assert len(queue.get_many(3000, timeout=0)) == 3000
        os.kill(putter.pid, signal.SIGCONT)
        putter.expect("returned")


def test_what_is_moved_counts_as_taken(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    elsewhere = broker.queue("elsewhere")
    with Offspring(put_and_wait, broker.path, SLOW, None) as putter:
        eventually(lambda: queue.qsize() == 1, "it is there")
        queue.move(elsewhere)
        putter.expect("taken")
    assert elsewhere.get(timeout=0) == "waits"


def test_a_selector_that_does_not_want_it_is_no_taker(queue: shmq.Queue[Any]) -> None:
    def wait() -> None:
        with queue.consumer(selector="kind = 'png'") as consumer, pytest.raises(ShutDown):
            consumer.receive(timeout=SLOW)

    thread = threading.Thread(target=wait)
    thread.start()
    eventually(lambda: queue._waiters()["asleep"] == 1, "it waits")
    with pytest.raises(Returned):
        queue.put("text", immediate=True)
    queue.shutdown()
    thread.join(SLOW)
    assert queue.qsize() == 0


def test_it_does_not_go_with_delay_batches_and_loans(queue: shmq.Queue[Any]) -> None:
    for wrong in (
        lambda: queue.put("x", immediate=True, delay=1),
        lambda: queue.put_many(["x"], immediate=True),
        lambda: queue.loan(1, immediate=True),
        lambda: queue.put("x", immediate=-1),
    ):
        with pytest.raises(ValueError, match="immediate"):
            wrong()
    assert queue.qsize() == 0
