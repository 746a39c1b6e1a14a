"""Delayed messages of which there are more than slots: they wait on disk, and come back to their places."""

import multiprocessing
import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import eventually
from tests.support.health import check_empty
from tests.support.offspring import Offspring, Say, family

Queue = shmq.Queue[Any]
MANY = 10_000  # a broker of 16 MiB has 4,096 slots for a queue
PAUSE = 0.3


def body_of(number: int, due: float) -> bytes:
    return b"%d %f" % (number, due)


def work(jobs: Queue, done: Queue, say: Say) -> None:
    """Each message fails once, rests, and is done with its next attempt; what comes too early is an error."""
    say("here")
    while True:
        try:
            m = jobs.receive()
        except shmq.ShutDown:
            return
        number, due = m.body.split()
        if m.delivery_count == 1:
            assert time.monotonic() >= float(due), f"message {number!r} came early"
            m.retry(delay=PAUSE)
            continue
        done.put(int(number))
        m.ack()


def test_delays_and_pauses_of_more_than_the_slots_come_once_and_not_early(broker_dir: Path, tmp_path: Path) -> None:
    """Shows G5."""
    with shmq.open(broker_dir, memory="16MiB") as broker, family() as children:
        jobs = broker.queue("jobs", codec="bytes", max_attempts=0, max_deaths=0)
        done = broker.queue("done")
        begun = time.monotonic()
        for number in range(MANY):
            delay = 0.5 + number * 7919 % MANY / MANY
            jobs.put(body_of(number, time.monotonic() + delay - 0.001), delay=delay)
        if time.monotonic() - begun < 0.4:  # else some are due by now, on a busy machine
            assert jobs.statistics().delayed == MANY
            assert jobs.statistics().flowed
        for _ in range(3):
            children.append(Offspring(work, jobs, done))
        for child in children:
            child.expect("here")
        eventually(lambda: done.qsize() > MANY // 10, "some are done")
        children[0].kill()
        jobs.join()
        jobs.shutdown()
        for child in children[1:]:
            assert child.wait() == 0
        times = Counter(done.get_many(2 * MANY, timeout=0))
        assert sorted(times) == list(range(MANY))
        assert sum(times.values()) <= MANY + 1, "more than what the killed one had just said"
        check_empty(broker, jobs)


def test_they_are_browsed_moved_and_purged_where_they_lie(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB") as broker:
        queue, other = (broker.queue(name, codec="bytes") for name in ("queue", "other"))
        for number in range(MANY):
            queue.put(b"%d" % number, delay=3600, headers={"odd": number % 2})
        assert (queue.qsize(), queue.statistics().delayed) == (0, MANY)
        assert [int(m.body) for m in queue.browse()] == list(range(MANY))
        assert queue.purge(selector="odd = 1") == MANY // 2
        assert queue.move(other) == MANY // 2
        assert queue.statistics().delayed == 0
        assert queue.statistics().disk_bytes == 0
        assert (other.qsize(), other.statistics().delayed) == (0, MANY // 2)
        assert [int(m.body) for m in other.browse()] == list(range(0, MANY, 2))
        assert other.purge() == MANY // 2
        check_empty(broker, queue)


def test_browsers_find_all_of_them_in_their_order_also_those_that_came_since(broker_dir: Path, seed: int) -> None:
    """More than are looked at in one turn, on disk in the order of their times, which is none of places; some come back
    below others: they were between two attempts."""
    rng = random.Random(seed)
    with shmq.open(broker_dir, memory="16MiB") as broker:
        jobs = broker.queue("jobs", max_attempts=0)
        jobs.put_many(range(100))
        held = jobs.consumer().receive_many(100, timeout=0)
        for end in (MANY, 2 * MANY, 2 * MANY + 5_000):
            for number in range(jobs.statistics().delayed + len(held), end):
                jobs.put(number, delay=rng.uniform(60, 3600))
            for m in held[:50]:
                m.retry(delay=rng.uniform(60, 3600))
            del held[:50]
            found = list(jobs.browse())
            assert [m.body for m in found] == list(range(end))
            assert [m.position for m in found] == sorted(m.position for m in found)


def test_those_of_a_deleted_queue_go_to_the_dead_letters(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB") as broker:
        broker.queue("dead", codec="bytes")
        queue = broker.queue("queue", codec="bytes", dead_letter="dead")
        for number in range(MANY):
            queue.put(b"%d" % number, delay=3600)
        queue.delete()
        dead = broker.queue("dead", codec="bytes")
        eventually(lambda: dead.qsize() == MANY, "all are dead")


def test_they_are_encrypted(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB", encryption_key=bytes(range(32))) as broker:
        queue = broker.queue("queue", codec="bytes")
        for number in range(MANY):
            queue.put(b"the secret of %d" % number, delay=3600)
        files = [path for path in broker_dir.rglob("*") if path.is_file() and "disk" in path.parts]
        assert files
        assert not any(b"secret" in path.read_bytes() for path in files)
        assert [m.body for m in queue.browse()][MANY - 1] == b"the secret of %d" % (MANY - 1)


def test_a_queue_full_of_them_says_what_is_true_where_nothing_may_go_to_disk(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB", disk=0) as broker:
        queue = broker.queue("queue", codec="bytes")
        with pytest.raises(shmq.Full):
            queue.put_many((b"%d" % number for number in range(MANY)), delay=3600, timeout=0)
        assert 4000 < queue.statistics().delayed < 4200
        queue.purge()


def look_and_leave(queue: Queue, some: int) -> None:
    """Exits while a thread of it looks; a thread ends amid a look, too."""
    for seen, _ in enumerate(queue.browse()):
        if seen == some:
            break
    begun = threading.Event()

    def look_on() -> None:
        for _ in queue.browse():
            begun.set()

    threading.Thread(target=look_on, daemon=True).start()
    assert begun.wait(60)


def test_a_fork_an_exit_and_a_close_amid_a_look_harm_nobody(broker_dir: Path) -> None:
    """Each thread keeps an index of their places."""
    fork = multiprocessing.get_context("fork")
    with shmq.open(broker_dir, memory="16MiB") as broker:
        queue = broker.queue("queue", codec="bytes")
        for number in range(MANY):
            queue.put(b"%d" % number, delay=3600)
        browser = queue.browse()
        assert [int(next(browser).body) for _ in range(100)] == list(range(100))
        children = [fork.Process(target=look_and_leave, args=(queue, some)) for some in (0, 1000)]
        for child in children:
            child.start()
        for child in children:
            child.join(120)
            assert child.exitcode == 0
        assert [int(m.body) for m in browser] == list(range(100, MANY))
    with shmq.open(broker_dir) as broker:
        queue = broker.queue("queue", codec="bytes")
        begun, ended = threading.Event(), threading.Event()

        def look() -> None:
            try:
                while True:
                    for _ in queue.browse():
                        begun.set()
            except shmq.Closed:
                ended.set()

        looker = threading.Thread(target=look)
        looker.start()
        assert begun.wait(60)
        broker.close()
        looker.join(60)
        assert ended.is_set()
    with shmq.open(broker_dir) as broker:
        queue = broker.queue("queue", codec="bytes")
        assert queue.move(broker.queue("other", codec="bytes"), limit=1000) == 1000
        assert queue.purge() == MANY - 1000
