"""Descriptors that a program closes beneath shmq, as daemons do, or lays other files on. Shows G2."""

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import shmq
from tests.engine.child import eventually
from tests.support.health import check_sound
from tests.support.offspring import Offspring, Say
from tests.support.size import sized

LOST = "this process has lost the broker"


def descriptors_of(broker: shmq.Broker) -> list[int]:
    """Of this process, those that lead to the broker's segment or directory."""
    segment = os.stat(f"/dev/shm/{broker._membership.member.name}")
    files = {(segment.st_dev, segment.st_ino)}
    if broker.path is not None:
        directory = os.stat(broker.path)
        files.add((directory.st_dev, directory.st_ino))
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            file = os.fstat(int(name))
        except OSError:
            continue
        if (file.st_dev, file.st_ino) in files:
            found.append(int(name))
    return sorted(found)


def lay_logs_on(descriptors: list[int], folder: Path) -> list[Path]:
    """Other files get these numbers, as those of a daemon that closes all and opens its logs."""
    logs = []
    for number in descriptors:
        log = folder / f"log{number}"
        fd = os.open(log, os.O_RDWR | os.O_CREAT)
        os.dup2(fd, number)
        if fd != number:
            os.close(fd)
        logs.append(log)
    return logs


def put_on(queue: shmq.Queue[str]) -> None:
    """Until it raises."""
    while True:
        queue.put("again", timeout=10)
        queue.get_many(1, timeout=0)


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="32MiB", patience=0.1) as broker:
        yield broker


def daemon(url: str, folder: Path, say: Say) -> None:
    """Takes one, closes everything as daemons do, and works on when it was reaped."""
    broker = shmq.open(url)
    queue = broker.queue("jobs")
    held = queue.receive(timeout=5)
    logs = lay_logs_on(descriptors_of(broker), folder)
    say("closed")
    with pytest.raises(shmq.BrokerError, match=LOST):
        put_on(queue)
    with pytest.raises(shmq.SettlementError):
        held.ack()
    with pytest.raises(shmq.BrokerError, match=LOST):
        queue.get(timeout=0)
    with pytest.raises(shmq.BrokerError, match=LOST):
        broker.statistics()
    broker.close()
    assert [log.stat().st_size for log in logs] == [0] * len(logs)
    for log in logs:
        os.fstat(int(log.name[3:]))  # still open: the numbers were not ours to close
    with shmq.open(url) as anew:
        anew.queue("jobs").put("by one that has joined again")
    say("told")


def test_a_process_whose_descriptors_were_closed_is_told_and_does_no_harm(broker: shmq.Broker, tmp_path: Path) -> None:
    """Shows G1, G2: its message goes to others once, and no stranger's file is touched."""
    queue = broker.queue("jobs")
    queue.put("held")
    with Offspring(daemon, broker.url, tmp_path) as child:
        child.expect("closed")
        child.expect("told")
        seen: Counter[str] = Counter()
        while not seen["held"]:  # others take it for dead once it has had the patience to find out
            with queue.receive(timeout=30) as m:
                seen[m.body] += 1
                assert m.redelivered == (m.body == "held")
    seen.update(queue.get_many(10**6, timeout=0))
    assert (seen["held"], seen["by one that has joined again"]) == (1, 1)
    assert set(seen) <= {"held", "by one that has joined again", "again"}
    check_sound(broker, queue)


def closer_of_one(url: str, folder: Path, which: int, say: Say) -> None:
    """One of its descriptors becomes another file: all goes on, or it is told."""
    broker = shmq.open(url)
    queue = broker.queue("jobs", maxsize=100_000)
    ours = descriptors_of(broker)
    if which >= len(ours):
        say("none")
        return
    (log,) = lay_logs_on([ours[which]], folder)
    try:
        for n in range(3000):
            queue.put(f"{n}" + "x" * (n % 3000))
        broker.statistics()
        say("went on")
    except shmq.BrokerError as error:
        say("told" if LOST in str(error) else repr(error))
    broker.close()
    assert log.stat().st_size == 0
    assert os.fstat(ours[which]).st_ino == log.stat().st_ino


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_single_descriptor_that_becomes_another_file_harms_nobody(
    broker: shmq.Broker, tmp_path: Path, which: int
) -> None:
    queue = broker.queue("jobs", maxsize=100_000)
    with Offspring(closer_of_one, broker.url, tmp_path, which) as child:
        assert child.line() in ("went on", "told", "none")
    bodies = Counter(body.rstrip("x") for body in queue.get_many(10_000, timeout=0))
    assert max(bodies.values(), default=1) == 1
    assert sorted(map(int, bodies)) == list(range(len(bodies)))
    eventually(lambda: queue.statistics() and len(broker._membership.member.processes()) == 1, "its row is given back")
    check_sound(broker, queue)


def closer_amid_calls(url: str, folder: Path, say: Say) -> None:
    """One thread puts and takes while another closes everything."""
    broker = shmq.open(url)
    queue, other = broker.queue("jobs"), broker.queue("own")
    told: list[BaseException] = []
    begun = threading.Event()

    def work(by: shmq.Queue[str], number: int) -> None:
        try:
            for n in range(10**9):
                by.put(f"{number}.{n}" + "x" * (n % 5000))
                by.get(timeout=0)
                begun.set()
        except shmq.Empty:
            pass  # another thread has taken it
        except BaseException as error:
            told.append(error)

    threads = [threading.Thread(target=work, args=(by, number)) for number, by in enumerate((queue, other))]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    logs = lay_logs_on(descriptors_of(broker), folder)
    say("closed")
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert all(isinstance(error, shmq.BrokerError) and LOST in str(error) for error in told), told
    assert [log.stat().st_size for log in logs] == [0] * len(logs)
    say("told")


def test_calls_under_way_while_descriptors_are_closed_break_nothing(broker: shmq.Broker, tmp_path: Path) -> None:
    """The row of a process that runs without its lock is reaped when its calls have had the time to end."""
    queues = [broker.queue("jobs"), broker.queue("own")]
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        with Offspring(closer_amid_calls, broker.url, folder) as child:
            child.expect("closed")
            child.expect("told")
        for queue in queues:
            bodies = Counter(queue.get_many(10_000, timeout=0))
            assert max(bodies.values(), default=1) == 1
    check_sound(broker, *queues)


def rejoins(broker: shmq.Broker, say: Say) -> None:
    """A child that closes what it has inherited before its first call, as a daemon that was opened too early does."""
    for number in descriptors_of(broker):
        os.close(number)
    broker.queue("jobs").put("by the child")
    say("put")


def test_a_forked_child_that_has_closed_all_descriptors_joins_by_the_name_of_the_segment(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs")
    with Offspring(rejoins, broker) as child:
        child.expect("put")
    assert queue.get(timeout=0) == "by the child"
    check_sound(broker, queue)


def test_a_number_that_a_deleted_file_has_now_does_not_make_the_broker_gone(
    broker: shmq.Broker, tmp_path: Path
) -> None:
    queue = broker.queue("jobs")
    with Offspring(lays_deleted_files, broker.url, tmp_path) as child:
        child.expect("done")
    queue.put("a")
    assert queue.get(timeout=0) == "a"


def lays_deleted_files(url: str, folder: Path, say: Say) -> None:
    broker = shmq.open(url)
    queue = broker.queue("jobs")
    for log in lay_logs_on(descriptors_of(broker), folder):
        log.unlink()
    with pytest.raises(shmq.BrokerError, match=LOST):
        put_on(queue)
    say("done")


def test_a_broker_that_is_opened_again_over_closed_numbers_is_not_closed_with_the_lost_one(
    broker: shmq.Broker, tmp_path: Path
) -> None:
    with Offspring(opens_over, broker.url) as child:
        child.expect("works")
    check_sound(broker)


def opens_over(url: str, say: Say) -> None:
    first = shmq.open(url)
    queue = first.queue("jobs")
    for number in descriptors_of(first):
        os.close(number)
    with pytest.raises(shmq.BrokerError, match=LOST):
        put_on(queue)
    second = shmq.open(url)  # its descriptors have the numbers of those that were closed
    first.close()
    again = second.queue("jobs")
    again.put("a")
    assert again.get(timeout=0) == "a"
    second.close()
    say("works")


LOSSES = sized(120, 2000)


def test_a_process_that_loses_its_descriptors_amid_changes_of_the_structure_damages_nothing(
    broker: shmq.Broker, seed: int
) -> None:
    """The lock of the structure goes with the descriptor, while a thread is at work behind it."""
    with Offspring(makes_and_deletes, broker.url, seed) as other:
        for number in range(LOSSES):
            with Offspring(loses_amid_declares, broker.url, seed + number) as child:
                child.expect("told")
        os.kill(other.pid, signal.SIGTERM)
    check_sound(broker)


def makes_and_deletes(url: str, seed: int, say: Say) -> None:
    make_and_delete(shmq.open(url, create=False), seed)


def make_and_delete(broker: shmq.Broker, seed: int) -> None:
    """Until the process ends, or has lost the broker."""
    numbers = random.Random(seed)
    while True:
        try:
            queue = broker.queue(f"brief-{numbers.randrange(4)}", codec="bytes", maxsize=20)
            queue.put(bytes(numbers.choice((1, 3000))), timeout=0)
            if numbers.random() < 0.5:
                queue.delete()
        except shmq.BrokerError:
            return
        except shmq.ShmqError:
            pass  # another one has deleted the queue, or it is full


def loses_amid_declares(url: str, seed: int, say: Say) -> None:
    broker = shmq.open(url, create=False)
    threads = [threading.Thread(target=make_and_delete, args=(broker, seed + n), daemon=True) for n in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(seed % 5):
        broker.queues()  # a while, in which the threads are amid calls
    other = os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o600)
    for number in descriptors_of(broker):
        os.dup2(other, number)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    say("told")
