"""kill -9 of those who clean up after others, at random moments, and of processes that make, join, delete and leave."""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import shmq
from shmq.core.queue import reap
from tests.support.health import check_empty, check_sound, reap_the_dead, usage
from tests.support.offspring import Offspring, Say, eventually, family
from tests.support.size import sized

Queue = shmq.Queue[Any]
LARGE = b"z" * 50_000
EACH = 3


def hold(queue: Queue, say: Say) -> None:
    """Holds small and large messages and a loan, and is in no call."""
    held = [queue.receive(timeout=30) for _ in range(EACH)]
    lent = queue.loan(60_000)
    say(f"{len(held)} {lent.view[0]}")
    signal.pause()


def clean_up(broker: shmq.Broker, say: Say) -> None:
    say("here")
    reap(broker._membership.live())
    say("done")


def test_reapers_that_are_killed_leave_nothing_undone(broker: shmq.Broker, seed: int) -> None:
    """Shows C12, R3, G3."""
    rng = random.Random(seed)
    queue = broker.queue("jobs", codec="bytes", max_deaths=0)
    dead = 8
    for _ in range(sized(12, 200)):
        bodies = [b"%d " % n + (LARGE if n % 2 else b"") for n in range(dead * EACH)]
        queue.put_many(bodies)
        with family() as holders:
            for _ in range(dead):
                holders.append(Offspring(hold, queue))
                holders[-1].line()
            for holder in holders:
                holder.kill()
        with family() as reapers:
            for _ in range(6):
                reapers.append(Offspring(clean_up, broker))
            for reaper in reapers:
                reaper.line()
            time.sleep(rng.random() * 0.004)
            for reaper in reapers:
                reaper.kill()
        reap_the_dead(broker)
        census = queue._census()
        assert (census["ready"], census["unsettled"]) == (dead * EACH, 0)
        seen = []
        for _ in range(dead * EACH):
            with queue.receive(timeout=10) as m:
                assert m.redelivered
                assert m.delivery_count == 2, "a death is counted once, however many count it"
                seen.append(bytes(m.body))
        del m  # its body is a view
        assert seen == bodies
        check_empty(broker, queue)


def wander(inherited: shmq.Broker, path: Path, rng: random.Random, say: Say) -> None:
    """Joins, makes, uses, deletes, leaves, for ever; without what it has from its parent."""
    inherited.close()
    say("here")
    while True:
        with shmq.open(path, create=False) as broker:
            for _ in range(rng.randrange(1, 4)):
                name = f"queue-{rng.randrange(5)}"
                try:
                    queue = broker.queue(name, temporary=True) if rng.random() < 0.2 else broker.queue(name)
                    queue.put(b"x" * rng.choice([10, 3000]), timeout=0)
                    if rng.random() < 0.5:
                        with queue.receive(timeout=0):
                            pass
                    if rng.random() < 0.4:
                        queue.delete()
                except (shmq.NotFound, shmq.Empty, shmq.Full, shmq.OptionsMismatch):
                    continue


def test_kills_amid_making_joining_deleting_and_leaving_leave_a_sound_broker(
    broker: shmq.Broker, broker_dir: Path, seed: int
) -> None:
    """Shows G2."""
    rng = random.Random(seed)
    keep = broker.queue("keep", codec="bytes")
    keep.put(b"kept")
    with family() as children:
        alive: list[Offspring] = []
        for _ in range(sized(80, 1000)):
            while len(alive) < 4:
                child_seed = rng.randrange(1 << 30)
                child = Offspring(wander, broker, broker_dir, random.Random(child_seed))
                child.expect("here")
                children.append(child)
                alive.append(child)
            time.sleep(rng.random() * 0.01)
            alive.pop(rng.randrange(len(alive))).kill()
        for child in alive:
            child.kill()
    reap_the_dead(broker)
    check_sound(broker, keep)
    assert keep.get(timeout=5) == b"kept"
    for queue in broker.queues():
        if queue.name != "keep":
            check_sound(broker, queue)
            queue.delete()
    # The memory of deleted queues goes back when the next one is made. Twice: slabs are kept for the next body.
    free = []
    for _ in range(2):
        broker.queue("probe").delete()
        free.append(usage(broker)["granules_free"])
    assert free[0] == free[1]
    assert [queue.name for queue in broker.queues()] == ["keep"]
    assert usage(broker)["blocks_used"] == 0
    check_empty(broker, keep)


def make(broker: shmq.Broker, say: Say) -> None:
    broker.queue("temporary", temporary=True).put("x")
    say("made")
    signal.pause()


def make_and_leave(broker: shmq.Broker, say: Say) -> None:
    broker.queue("temporary", temporary=True).put("x")
    broker.close()


def test_temporary_queues_go_with_their_maker_however_it_ends(broker: shmq.Broker) -> None:
    with Offspring(make, broker) as maker:
        maker.expect("made")
        assert "temporary" in [queue.name for queue in broker.queues()]
        maker.kill()
    reap_the_dead(broker)
    assert [queue.name for queue in broker.queues()] == []
    with Offspring(make_and_leave, broker) as maker:
        assert maker.wait() == 0
    assert [queue.name for queue in broker.queues()] == []


def attach_and_go(inherited: shmq.Broker, path: Path, number: int, say: Say) -> None:
    inherited.close()
    with shmq.open(path, create=False) as broker:
        queue = broker.queue("storm", create=False)
        queue.put(number)
        say("here")
        if number % 3 == 0:
            signal.pause()


def test_a_storm_of_200_processes_a_third_of_them_killed_leaves_a_clean_table(
    broker: shmq.Broker, broker_dir: Path
) -> None:
    queue = broker.queue("storm")
    count = 200
    with family() as children:
        for number in range(count):
            children.append(Offspring(attach_and_go, broker, broker_dir, number))
        for number, child in enumerate(children):
            if number % 3 == 0:
                child.expect("here")
                child.kill()
            else:
                assert child.wait() == 0
    assert sorted(queue.get_many(count, timeout=5)) == list(range(count))
    reap_the_dead(broker)
    check_empty(broker, queue)
    rows = broker._membership.live().processes()
    assert [row[3] for row in rows] == [os.getpid()]


def test_a_consumer_row_of_a_closed_broker_is_given_back(broker: shmq.Broker, broker_dir: Path) -> None:
    queue = broker.queue("jobs")
    queue.put("x")

    def leave(say: Say) -> None:
        broker.close()
        with shmq.open(broker_dir) as mine:
            consumer = mine.queue("jobs").consumer()
            consumer.receive(timeout=5)
        say("left")
        signal.pause()

    with Offspring(leave) as child:
        child.expect("left")
        eventually(lambda: queue._waiters()["consumers"] == 0, "no consumer is left in the table")
        assert queue.qsize() == 1
