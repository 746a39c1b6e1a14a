"""Beside a deep backlog flushes fail, and consumers drain it together: all of it comes."""

import resource
from contextlib import suppress
from pathlib import Path
from typing import Any

import shmq
from tests.support.health import check_empty
from tests.support.offspring import Offspring, Say, family

BODY = bytes(1024)
TURNS = 200
DEEP = 30_000


def put_and_get_on_a_full_disk(queue: shmq.Queue[Any], say: Say) -> None:
    """Of each turn the first puts find that nothing can be written; the others, and all gets, go on."""
    put = came = 0
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    for turn in range(TURNS):
        is_full = turn >= TURNS // 2
        for room in (0 if is_full else limit[0], limit[0]):
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, limit[1]))
            with suppress(shmq.ShmqError):
                for _ in range(200 if is_full else 500):
                    queue.put(BODY, timeout=0)
                    put += 1
        for _ in range(300):
            queue.get(timeout=5.0)
            came += 1
    say(f"{put} {came}")


def test_nothing_is_lost_when_flushes_fail_beside_a_deep_backlog(broker_dir: Path) -> None:
    """Shows G5."""
    with shmq.open(broker_dir, memory="64MiB", disk="8GiB") as broker:
        queue = broker.queue("backlog", codec="bytes", max_memory="16MiB")
        with Offspring(put_and_get_on_a_full_disk, queue) as child:
            child.line()
            assert child.wait() == 0
        assert queue._check() is None
        while queue.get_many(1000, timeout=0.5):
            pass
        check_empty(broker, queue)


def drain(queue: shmq.Queue[Any], say: Say) -> None:
    say("here")
    try:
        while True:
            queue.get()
    except shmq.ShutDown:
        say(queue.qsize())


def test_a_consumer_hears_of_a_shutdown_when_the_backlog_is_drained(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="64MiB", disk="8GiB") as broker, family() as children:
        queue = broker.queue("backlog", codec="bytes", max_memory="16MiB")
        for _ in range(DEEP):
            queue.put(BODY)
        queue.shutdown()
        children.extend(Offspring(drain, queue) for _ in range(3))
        for child in children:
            child.expect("here")
        assert max(int(child.line()) for child in children) < len(children)
