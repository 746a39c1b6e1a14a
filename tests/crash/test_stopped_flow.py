"""SIGSTOP of a process in the middle of its turn between memory and disk: others go on as far as memory goes.

Each single step of such a turn is stopped at by the step killer; here are whole processes, and what they see meanwhile.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import shmq
from checker.queue import queues_of
from tests.support.health import check_sound, reap_the_dead
from tests.support.offspring import Offspring, Say, eventually
from tests.support.segment_image import image_of, is_stopped

Queue = shmq.Queue[Any]
LITTLE = 20_000  # bytes in memory
COUNT = 3000
HELD = 20
PATIENCE = 120.0


def body_of(producer: int, number: int) -> bytes:
    return b"%d %d " % (producer, number) + b"x" * 60


def parsed(body: bytes) -> tuple[int, int]:
    producer, number = body.split(b" ")[:2]
    return int(producer), int(number)


def put_on(queue: Queue, taken: Queue, control: Queue, say: Say) -> None:
    """Until it is told to end; says how many."""
    say("here")
    number = 0
    while control.qsize() == 0:
        queue.put(body_of(1, number), timeout=PATIENCE)
        number += 1
    say(number)


def take_on(queue: Queue, taken: Queue, control: Queue, say: Say) -> None:
    """Most of what it moves, it brings back; it puts as many, so that there is always something on disk."""
    say("here")
    number = 0
    while control.qsize() == 0:
        with queue.receive(timeout=PATIENCE) as message:
            taken.put(message.body, timeout=PATIENCE)
        queue.put(body_of(1, number), timeout=PATIENCE)
        number += 1
    say(number)


WORK = {"puts": put_on, "takes": take_on}


def stop_amid_its_turn(child: Offspring, broker_dir: Path) -> None:
    for _ in range(20_000):
        child.signal(signal.SIGSTOP)
        eventually(lambda: is_stopped(child.pid), "it is stopped")
        if any(queue.flow.unfinished == child.pid for queue in queues_of(image_of(broker_dir))):
            return
        child.signal(signal.SIGCONT)
    raise AssertionError("it is never amid a turn")


def put_until_full(queue: Queue, first: int) -> int:
    while True:
        try:
            queue.put(body_of(0, first), timeout=0)
        except shmq.Full:
            return first
        first += 1


def take_until_empty(queue: Queue, taken: list[tuple[int, int]]) -> None:
    while True:
        try:
            taken.append(parsed(queue.get(timeout=0)))
        except shmq.Empty:
            return


def doctor(broker_dir: Path) -> tuple[int, list[str]]:
    """Its exit code, and what it says of movers."""
    command = [sys.executable, "-m", "shmq", "-d", str(broker_dir), "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, [look["detail"] for look in json.loads(done.stdout)["checks"] if look["check"] == "movers"]


def check_doctor_names(broker_dir: Path, pid: int) -> None:
    code, (told,) = doctor(broker_dir)
    assert code == 1
    assert f"process {pid} was stopped while it moved messages of queue 'backlog'" in told
    assert f"kill -CONT {pid}" in told


def check_in_order(taken: list[tuple[int, int]], producer: int, count: int) -> None:
    own = [number for who, number in taken if who == producer]
    assert own == list(range(count)), f"of producer {producer}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("ending", [signal.SIGCONT, signal.SIGKILL], ids=["goes_on", "dies"])
@pytest.mark.parametrize("what", WORK)
def test_while_a_mover_is_stopped_others_put_take_and_settle_what_is_in_memory(
    broker: shmq.Broker, broker_dir: Path, what: str, ending: signal.Signals
) -> None:
    """Shows G5."""
    queue: Queue = broker.queue("backlog", max_memory=LITTLE, codec="bytes", max_deaths=0)
    results: Queue = broker.queue("taken", codec="bytes")
    control: Queue = broker.queue("control")
    for number in range(COUNT):
        queue.put(body_of(0, number), timeout=0)
    held = [queue.receive(timeout=0) for _ in range(HELD)]
    with Offspring(WORK[what], queue, results, control) as child:
        child.expect("here")
        stop_amid_its_turn(child, broker_dir)
        check_doctor_names(broker_dir, child.pid)
        mine = put_until_full(queue, COUNT)
        for message in held[::2]:
            message.ack()
        for message in reversed(held[1::2]):
            message.release()
        taken: list[tuple[int, int]] = []
        take_until_empty(queue, taken)
        assert taken[: HELD // 2] == [(0, number) for number in range(1, HELD, 2)]
        assert queue.qsize() > 0, "what is on disk waits for who is stopped"
        control.put("end", timeout=0)
        assert control.qsize() == 1
        child.signal(ending)
        theirs = int(child.line()) if ending == signal.SIGCONT else None
        assert child.wait() == (0 if theirs is not None else -signal.SIGKILL)
        reap_the_dead(broker)
        rest: list[tuple[int, int]] = []
        for number in range(mine, mine + 500):  # puts go on, by moving
            queue.put(body_of(0, number), timeout=PATIENCE)
        take_until_empty(queue, rest)
    assert doctor(broker_dir)[1] == ["no process is stopped while it moves messages to or from disk"]
    by_child = [parsed(body) for body in results.get_many(100_000, timeout=0)]
    check_all(taken[HELD // 2 :], rest, by_child, mine + 500, theirs)
    assert queue.qsize() == 0
    check_sound(broker, queue, results, control)


def check_all(
    taken: list[tuple[int, int]],
    rest: list[tuple[int, int]],
    by_child: list[tuple[int, int]],
    mine: int,
    theirs: int | None,
) -> None:
    """Those of each producer once, in order: what the child had, what came while it was stopped, and all later ones.

    A child that takes may have been between two of its takes; one that was killed there may have told of one in hand.
    """
    for one in (taken, rest, by_child):
        for producer in (0, 1):
            own = [number for who, number in one if who == producer]
            assert own == sorted(own)
    told_twice = [pair for pair in by_child[-1:] if pair in taken[:1] + rest[:1]]
    everything = sorted([*taken, *rest, *by_child, *((0, number) for number in range(HELD))])
    for pair in told_twice:
        everything.remove(pair)
    check_in_order(everything, 0, mine)
    check_in_order(everything, 1, theirs if theirs is not None else sum(who for who, _ in everything))
