"""SIGSTOP of a consumer that stands by when its turn comes: a live place that it does not take up goes to the next.

A mistake here lasts as long as a process is stopped, so only the first test has a deadline. Shows G4.
"""

import os
import random
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.support.health import check_empty
from tests.support.offspring import Offspring, Say, eventually, falls_asleep, family, state_of
from tests.support.size import sized

PATIENCE = 0.1
# Two patiences for one that is stopped, four for any number, as docs/guarantees.md says; and a busy machine.
PROMISED = {1: 2 * PATIENCE + 0.05, 3: 4 * PATIENCE + 0.05, 6: 4 * PATIENCE + 0.05}
LONGEST = 1.5  # seconds
ROUNDS = sized(8, 100)

Queue = shmq.Queue[Any]


def stop(child: Offspring) -> None:
    child.signal(signal.SIGSTOP)
    eventually(lambda: state_of(child.pid) == "T", "it is stopped")


def go_on(child: Offspring) -> None:
    child.signal(signal.SIGCONT)


# ---- who stands by ---------------------------------------------------------------------------------------------------


def in_one_sleep(consumer: Any) -> Any:
    return consumer.receive()


def in_short_sleeps(consumer: Any) -> Any:
    while True:
        try:
            return consumer.receive(timeout=0.01)
        except shmq.Empty:
            pass


def by_looks(consumer: Any) -> Any:
    while not (found := consumer.receive_many(1, timeout=0)):
        time.sleep(0.005)  # of a program that polls: nothing waits for it
    return found[0]


HOWS = [in_one_sleep, in_short_sleeps, by_looks]


def serve(path: Path, priority: int, how: Callable[[Any], Any], say: Say) -> None:
    """Tells of each message, and acknowledges it."""
    consumer = shmq.open(path).queue("served").consumer(priority=priority)
    say("stands by")
    while True:
        with how(consumer) as m:
            say(f"{m.body} {m.redelivered} {time.monotonic_ns()}")


def serve_several(path: Path, priority: int, how: Callable[[Any], Any], say: Say) -> None:
    broker = shmq.open(path)
    consumer = broker.consumer(broker.queue("idle"), broker.queue("served"), priority=priority)
    say("stands by")
    while True:
        with how(consumer) as m:
            say(f"{m.body} {m.redelivered} {time.monotonic_ns()}")


def stands_by(
    children: list[Offspring],
    path: Path,
    priority: int = 0,
    how: Callable[[Any], Any] = in_one_sleep,
    kind: Callable[..., None] = serve,
) -> Offspring:
    child = Offspring(kind, path, priority, how)
    children.append(child)
    child.expect("stands by")
    falls_asleep(child)
    return child


def body(child: Offspring) -> tuple[str, bool]:
    number, again, _ = child.line().split()
    return number, again == "True"


def says_nothing(child: Offspring) -> bool:
    try:
        child.line(0.0)
    except AssertionError:
        return True
    return False


def heard(children: list[Offspring], said: list[tuple[str, bool]]) -> bool:
    for child in children:
        try:
            number, again, _ = child.line(0.01).split()
        except AssertionError:
            continue
        said.append((number, again == "True"))
        return True
    return False


# ---- the live one ----------------------------------------------------------------------------------------------------


class Live:
    """Has the live place of the queue, and leaves it in one way or another."""

    def __init__(self, path: Path, how: str, children: list[Offspring]) -> None:
        self.child: Offspring | None = None
        if how == "killed":
            self.child = Offspring(serve, path, 0, in_one_sleep)
            children.append(self.child)
            self.child.expect("stands by")
            falls_asleep(self.child)
        else:
            self.consumer = shmq.open(path).queue("served").consumer()

    def leaves(self) -> None:
        if self.child is not None:
            self.child.kill()
        else:
            self.consumer.close()


def leave_with_a_message(queue: Queue, live: Live) -> None:
    """The live one could take the message, and it would be nobody else's: so the message comes when it has gone."""
    live.leaves()
    queue.put("m")


@pytest.fixture
def served(broker_dir: Path) -> Iterator[Queue]:
    """The queue; this process has no consumer of it, and looks at nothing."""
    with shmq.open(broker_dir, memory="64MiB", patience=PATIENCE) as broker:
        broker.queue("idle")
        yield broker.queue("served", live_consumers=1, max_deaths=0)


@pytest.mark.alone
@pytest.mark.timeout(sized(200, 900))
@pytest.mark.parametrize("stopped", PROMISED)
def test_the_next_that_lives_has_the_place_within_the_promised_time(
    served: Queue, broker_dir: Path, seed: int, stopped: int
) -> None:
    """Shows G4 of a live place."""
    rng, delays = random.Random(seed), []
    for _ in range(ROUNDS):
        with family() as children:
            live = Live(broker_dir, "closed", children)
            heirs = [stands_by(children, broker_dir, 9) for _ in range(stopped)]
            following = stands_by(children, broker_dir)
            for heir in heirs:
                stop(heir)
            time.sleep(rng.random() * 0.3)  # for any phase of its sleep
            served.put("m")
            begin = time.monotonic_ns()
            live.leaves()
            delays.append((int(following.line().split()[2]) - begin) / 1e9)
    print(stopped, "stopped:", [round(delay * 1e3, 1) for delay in sorted(delays)], "ms")
    assert statistics.median(delays) < PROMISED[stopped], delays
    assert max(delays) < LONGEST, delays


@pytest.mark.parametrize("how", HOWS, ids=lambda how: how.__name__)
@pytest.mark.parametrize("end", ["closed", "killed"])
@pytest.mark.parametrize("priority", [9, 0], ids=["of_higher_priority", "older"])
@pytest.mark.parametrize("stopped", [1, 2, 5])
def test_a_place_that_stopped_ones_do_not_take_up_goes_to_one_that_lives(
    served: Queue, broker_dir: Path, how: Callable[[Any], Any], end: str, priority: int, stopped: int
) -> None:
    """Shows C13."""
    with family() as children:
        live = Live(broker_dir, end, children)
        heirs = [stands_by(children, broker_dir, priority) for _ in range(stopped)]
        following = stands_by(children, broker_dir, 0, how)
        for heir in heirs:
            stop(heir)
        leave_with_a_message(served, live)
        assert body(following) == ("m", False)
        for heir in heirs:
            go_on(heir)
            falls_asleep(heir)  # again: it has looked, and stands by
        for number in range(20):
            served.put(number)
            assert body(following) == (str(number), False)
        assert all(says_nothing(heir) for heir in heirs)
        served.join(timeout=30)  # the last one is acknowledged
        following.kill()
        served.put("first")
        said: list[tuple[str, bool]] = []
        eventually(lambda: heard(heirs, said), "one of them follows")  # the first of them, unless the machine is slow
        assert said == [("first", False)]


def test_one_of_several_queues_has_the_place_too(served: Queue, broker_dir: Path) -> None:
    with family() as children:
        live = Live(broker_dir, "closed", children)
        heir = stands_by(children, broker_dir, 9, kind=serve_several)
        following = stands_by(children, broker_dir, kind=serve_several)
        stop(heir)
        leave_with_a_message(served, live)
        assert body(following) == ("m", False)


def test_a_newcomer_has_the_place(served: Queue, broker_dir: Path) -> None:
    with family() as children:
        live = Live(broker_dir, "killed", children)
        heir = stands_by(children, broker_dir)
        stop(heir)
        leave_with_a_message(served, live)
        with served.consumer() as newcomer, newcomer.receive(timeout=30) as m:
            assert m.body == "m"


@pytest.mark.parametrize("end", ["closed", "killed"])
def test_an_heir_that_is_killed_instead_is_followed(served: Queue, broker_dir: Path, end: str) -> None:
    """Stopped, so that it takes nothing up, and killed before and after the place was offered to it."""
    with family() as children:
        live = Live(broker_dir, end, children)
        first, second = stands_by(children, broker_dir, 9), stands_by(children, broker_dir, 8)
        following = stands_by(children, broker_dir)
        stop(first)
        stop(second)
        first.kill()
        leave_with_a_message(served, live)
        second.kill()
        assert body(following) == ("m", False)


def test_an_heir_that_goes_on_in_time_has_the_place(broker_dir: Path) -> None:
    """Nobody who stands by has it before the patience, a minute here, is over."""
    with shmq.open(broker_dir, memory="64MiB", patience=60.0) as broker, family() as children:
        queue = broker.queue("served", live_consumers=1)
        live = Live(broker_dir, "closed", children)
        heir = stands_by(children, broker_dir, 9)
        following = stands_by(children, broker_dir, 0, by_looks)
        stop(heir)
        leave_with_a_message(queue, live)
        assert queue.consumer().receive_many(1, timeout=0) == []
        go_on(heir)
        assert body(heir) == ("m", False)
        assert says_nothing(following)


def test_a_place_that_was_taken_up_is_kept_by_one_that_is_stopped(broker_dir: Path) -> None:
    """Only an offer is passed: else two would be live when it goes on, one with messages in hand."""
    with shmq.open(broker_dir, memory="64MiB", patience=1.0) as broker, family() as children:
        served: Queue = broker.queue("served", live_consumers=1, max_deaths=0)
        live = Live(broker_dir, "closed", children)
        heir, other = stands_by(children, broker_dir, 9), stands_by(children, broker_dir)
        leave_with_a_message(served, live)
        assert body(heir) == ("m", False)
        falls_asleep(heir)
        stop(heir)
        served.put("kept")
        with served.consumer() as newcomer, pytest.raises(shmq.Empty):
            newcomer.receive(timeout=3.0)
        assert says_nothing(other)
        go_on(heir)
        assert body(heir) == ("kept", False)


# ---- at random -------------------------------------------------------------------------------------------------------


class Log:
    """The events of all processes, line by line in the order in which they happened."""

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)

    def note(self, *words: object) -> None:
        os.write(self.file, (" ".join(map(str, words)) + "\n").encode())

    def lines(self) -> list[list[str]]:
        return [line.split() for line in os.pread(self.file, 1 << 26, 0).decode().splitlines()]


def serve_and_note(path: Path, priority: int, log: Log, say: Say) -> None:
    consumer = shmq.open(path).queue("served").consumer(priority=priority)
    say("stands by")
    while True:
        m = consumer.receive()
        log.note("has", os.getpid(), m.body)
        log.note("done", os.getpid(), m.body)
        m.ack()


def check_log(lines: list[list[str]], count: int) -> None:
    """One at a time has a message, in the order of the queue, and each was done; again only after a death."""
    holder, last, had, dead, done = "", -1, "", set(), set()
    for what, pid, *number in lines:
        if what == "killed":
            dead.add(pid)
        elif what == "has":
            assert holder == "" or holder in dead, f"{pid} has {number} while {holder} has one"
            assert int(number[0]) == last + 1 or (int(number[0]) == last and had in dead), f"{number} after {last}"
            holder, last, had = pid, int(number[0]), pid
        else:
            assert holder == pid
            holder = ""
            done.add(int(number[0]))
    assert done == set(range(count))


@pytest.mark.timeout(sized(200, 1800))
def test_whoever_is_stopped_goes_on_and_is_killed_one_at_a_time_is_served_in_order(
    served: Queue, broker_dir: Path, tmp_path: Path, seed: int
) -> None:
    rng, log, count = random.Random(seed), Log(tmp_path / "log"), 0
    with family() as children:
        crowd: list[Offspring] = []
        for _ in range(sized(40, 600)):
            while len(crowd) < 5:
                crowd.append(Offspring(serve_and_note, broker_dir, rng.choice((0, 0, 5, 9)), log))
                children.append(crowd[-1])
                crowd[-1].expect("stands by")
            stopped = rng.sample(crowd, rng.randint(0, 3))
            for child in stopped:
                stop(child)
            victim = crowd.pop(rng.randrange(len(crowd)))
            served.put(count)
            victim.kill()
            log.note("killed", victim.pid)
            count += 1
            for child in stopped:
                if rng.random() < 0.5 and child is not victim:
                    go_on(child)
            served.put(count)
            count += 1
            if rng.random() < 0.5:
                time.sleep(rng.random() * 3 * PATIENCE)  # for any moment of who comes back
            for child in stopped:
                go_on(child)
            eventually(lambda: sum(line[0] == "done" for line in log.lines()) >= count, "all are done")  # noqa: B023
            served.join(timeout=30)
        assert sum(line[0] == "has" for line in log.lines()) >= count
        check_log(log.lines(), count)
    check_empty(shmq.open(broker_dir), served)
