"""Segments that real processes made, in every state that there is, are found to be as they must be."""

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

import shmq
from checker import Image, entries, judge, judge_quiet
from checker.queue import queues_of
from tests.support.health import reap_the_dead
from tests.support.offspring import Offspring, Say, eventually, family
from tests.support.segment_image import check_image, image_of, standing_still
from tests.support.size import sized

Queue = shmq.Queue[Any]
LARGE = b"x" * 5000


def bodies(broker_dir: Path, name: str) -> list[bytes]:
    return [message.body for message in entries(image_of(broker_dir), name)]


def test_a_broker_without_queues(broker_dir: Path, broker: shmq.Broker) -> None:
    check_image(broker_dir, {0})


def test_an_empty_queue(broker_dir: Path, queue: Queue) -> None:
    check_image(broker_dir, {0})
    assert bodies(broker_dir, "jobs") == []


def test_a_queue_with_messages_in_slots_and_in_blocks(broker_dir: Path, queue: Queue) -> None:
    put = [b"%d" % n + (LARGE if n % 3 == 0 else b"") for n in range(200)]
    queue.put_many(put)
    queue.put(b"with headers", headers={"kind": "text", "number": 7})
    check_image(broker_dir, {0})
    assert bodies(broker_dir, "jobs") == [*put, b"with headers"]


@pytest.mark.parametrize("maxsize", [None, 1000])
def test_a_full_queue(broker_dir: Path, maxsize: int | None) -> None:
    with shmq.open(broker_dir, memory="16MiB", disk=0) as broker:
        queue: Queue = broker.queue("full", maxsize=maxsize) if maxsize else broker.queue("full", slot_size=4096)
        with pytest.raises(shmq.Full):
            queue.put_many((b"x" for _ in range(100_000)), timeout=0)
        check_image(broker_dir, {0})


def test_a_ring_that_wraps_with_entries_that_it_carries(broker_dir: Path, broker: shmq.Broker) -> None:
    queue: Queue = broker.queue("old", maxsize=1024)
    queue.put_many(b"%d" % n for n in range(10))
    held = [queue.receive(timeout=0) for _ in range(3)]
    for n in range(5000):
        queue.put(b"new %d" % n)
        if n >= 20:
            queue.get(timeout=0)
        if n % 997 == 0:
            check_image(broker_dir, {0})
    held[1].release()
    held[0].retry()
    held[2].ack()
    image = check_image(broker_dir, {0})
    assert [(m.body, m.redelivered) for m in entries(image, "old")][:2] == [(b"0", True), (b"1", True)]
    assert queue.get(timeout=0) == b"0"
    check_image(broker_dir, {0})


def test_messages_in_hand_and_every_way_out_of_it(broker_dir: Path, broker: shmq.Broker) -> None:
    queue: Queue = broker.queue("jobs", max_attempts=2)
    queue.put_many([b"small", LARGE, b"again", b"dies", LARGE + b"2", b"kept"])
    consumer = queue.consumer()
    first, second, third, fourth, fifth, kept = (consumer.receive(timeout=0) for _ in range(6))
    check_image(broker_dir, {0})
    first.ack()
    second.release()
    third.retry()
    fourth.reject()
    fifth.ack()
    image = check_image(broker_dir, {0})
    left = [(m.body, m.state, m.redelivered, m.delivery) for m in entries(image, "jobs")]
    assert left == [(LARGE, "AVAILABLE", True, 0), (b"again", "AVAILABLE", True, 1), (b"kept", "ACQUIRED", False, 0)]
    kept.ack()
    queue.purge()
    check_image(broker_dir, {0})
    consumer.close()
    check_image(broker_dir, {0})


def test_a_queue_of_several_levels(broker_dir: Path, broker: shmq.Broker) -> None:
    queue: Queue = broker.queue("ranked", priorities=10, maxsize=1024, max_bytes="1MiB")
    for priority in (3, 9, 0, 9, 3):
        queue.put(b"%d" % priority + (LARGE if priority == 3 else b""), priority=priority)
    queue.put(b"late", priority=5, delay=3600)
    consumer = queue.consumer(selector="JMSPriority < 9")
    held = consumer.receive(timeout=0)
    image = check_image(broker_dir, {0})
    assert [(m.body[:4], m.state) for m in entries(image, "ranked")] == [
        (b"9", "AVAILABLE"),
        (b"9", "AVAILABLE"),
        (b"late", "HELD"),
        (b"3xxx", "ACQUIRED"),
        (b"3xxx", "AVAILABLE"),
        (b"0", "AVAILABLE"),
    ]
    assert [m.position for m in entries(image, "ranked")] == [m.position for m in queue.browse()]
    for n in range(2500):
        queue.put(b"%d" % n, priority=n % 10)
        queue.get(timeout=0)
    check_image(broker_dir, {0})
    held.release()
    queue.purge(selector="JMSPriority > 4")
    check_image(broker_dir, {0})
    queue.delete()
    check_image(broker_dir, {0})


def test_views_and_loans(broker_dir: Path, broker: shmq.Broker, queue: Queue) -> None:
    queue.put(LARGE)
    with queue.receive(timeout=0) as message:
        view, other = message.view(), message.view()
        check_image(broker_dir, {0})
    del message
    check_image(broker_dir, {0})
    assert bytes(view) == bytes(other)
    del view, other
    loan = queue.loan(40_000)
    check_image(broker_dir, {0})
    loan.commit()
    del loan
    check_image(broker_dir, {0})


def test_many_queues_some_deleted_some_temporary(broker_dir: Path, broker: shmq.Broker) -> None:
    queues: list[Queue] = [broker.queue(f"q{n}", temporary=n % 5 == 0, slot_size=128) for n in range(12)]
    for n, queue in enumerate(queues):
        queue.put_many([b"x" * n, LARGE])
    check_image(broker_dir, {0})
    for queue in queues[::2]:
        queue.delete()
    check_image(broker_dir, {0})
    del queue, queues
    for n in range(30, 36):
        broker.queue(f"q{n}", slot_size=128).put(b"y")
    check_image(broker_dir, {0})


def blocked_at(broker_dir: Path, name: str) -> int:
    return next(queue.waiters for queue in queues_of(image_of(broker_dir)) if queue.name == name)


def sleep_at(queue: Queue, say: Say) -> None:
    say("here")
    say(queue.get(timeout=60))


def block_at(queue: Queue, say: Say) -> None:
    say("here")
    queue.put(b"last", timeout=60)
    say("put")


def test_sleeping_consumers_and_blocked_producers(broker_dir: Path, broker: shmq.Broker) -> None:
    empty: Queue = broker.queue("empty")
    full: Queue = broker.queue("full", maxsize=3)
    full.put_many([b"1", b"2", b"3"])
    with family() as children:
        children += [Offspring(sleep_at, empty) for _ in range(3)] + [Offspring(block_at, full) for _ in range(2)]
        for child in children:
            child.expect("here")
        eventually(lambda: empty._waiters()["asleep"] == 3, "three sleep")
        eventually(lambda: blocked_at(broker_dir, "full") == 2, "two wait for room")
        pids = [child.pid for child in children]
        deadline = time.monotonic() + 30
        while True:
            with standing_still(pids):
                image = image_of(broker_dir)
                assert judge(image, set()) == []
                quiet = judge_quiet(image, set(range(6)))
            # A blocked producer looks by itself now and then: at such a moment nobody is at rest.
            if not quiet:
                break
            assert {violation.rule for violation in quiet} <= {"quiet.slot", "quiet.moving"}, quiet
            assert time.monotonic() < deadline
        empty.put_many([b"a", b"b", b"c"])
        full.get(timeout=5)
        full.get(timeout=5)
        for child in children:
            child.line()
            child.wait()
    reap_the_dead(broker)
    check_image(broker_dir, {0})


def work(queue: Queue, number: int, seed: int, say: Say) -> None:
    """Everything that a user can do, at random, for ever."""
    chance = random.Random(seed + number)
    levels = queue.options["priorities"]
    consumer = queue.consumer(selector="JMSPriority <> 4") if levels > 1 and number == 0 else queue.consumer()
    say("here")
    count = 0
    while True:
        what = chance.randrange(8)
        if what < 3 and queue.qsize() < 300:
            for _ in range(chance.randrange(1, 5)):
                count += 1
                body = b"%d %d " % (number, count) + (LARGE if chance.random() < 0.3 else b"")
                options: Any = {"priority": chance.randrange(10)} if levels > 1 else {}
                queue.put(body, **options)
        elif what == 3:
            queue.put_many(b"%d %d " % (number, count + n) for n in range(1, 4))
            count += 3
        else:
            try:
                message = consumer.receive(timeout=0.001)
            except shmq.Empty:
                continue
            view = message.view() if chance.random() < 0.3 else None
            (message.ack, message.ack, message.ack, message.release, message.retry)[chance.randrange(5)]()
            del message, view


@pytest.fixture(params=[1, 3], ids=["plain", "priorities"])
def busy(broker: shmq.Broker, request: pytest.FixtureRequest) -> Queue:
    return broker.queue("busy", maxsize=1024, max_attempts=0, max_deaths=0, priorities=request.param)


def check_moment(image: Image, dead: set[int]) -> None:
    assert judge(image, dead) == []


def test_any_moment_of_processes_at_work(broker_dir: Path, busy: Queue, seed: int) -> None:
    moments = sized(60, 2000)
    with family() as children:
        children += [Offspring(work, busy, number, seed) for number in range(3)]
        for child in children:
            child.expect("here")
        chance = random.Random(seed)
        pids = [child.pid for child in children]
        for _ in range(moments):
            time.sleep(chance.random() * 0.01)
            with standing_still(pids):
                image = image_of(broker_dir)
            check_moment(image, set())
        ended = [pid for pid in pids if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)]
        assert not ended, "they work until the end of the test, or nothing was judged"


def test_any_moment_at_which_processes_were_killed_and_what_the_reaper_makes_of_it(
    broker_dir: Path, broker: shmq.Broker, busy: Queue, seed: int
) -> None:
    chance = random.Random(seed)
    for round_number in range(sized(15, 300)):
        with family() as children:
            children += [Offspring(work, busy, number, seed + 10 * round_number) for number in range(2)]
            for child in children:
                child.expect("here")
            time.sleep(chance.random() * 0.02)
            pids = [child.pid for child in children]
            with standing_still(pids):
                for child in children:
                    child.signal(9)
            for child in children:
                child.wait()
            image = image_of(broker_dir)
            dead = {process.row for process in image.processes if process.row != 0 and process.state != 0}
            assert judge(image, dead) == []
        reap_the_dead(broker)
        check_image(broker_dir, {0})
