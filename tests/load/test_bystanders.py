"""The cost of a queue beside its messages: an old one that nobody settles, the memory of a process, a full /dev/shm.

Shows G5.
"""

import os
import random
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.support.board import Board
from tests.support.health import check_empty, reap_the_dead, usage
from tests.support.offspring import Offspring, Say, family
from tests.support.size import sized

ROOT = Path(__file__).resolve().parents[2]
Queue = shmq.Queue[Any]


@pytest.fixture
def broker(broker_dir: Path) -> Any:
    with shmq.open(broker_dir, memory="64MiB") as opened:
        yield opened


def put_numbers(queue: Queue, count: int, say: Say) -> None:
    for n in range(count):
        queue.put(b"%d" % n, timeout=30)


def echo(queue: Queue, count: int, say: Say) -> None:
    for _ in range(count):
        say(queue.get(timeout=30))


def test_a_message_that_is_never_settled_costs_one_place_and_comes_first_when_it_is_released(
    broker: shmq.Broker,
) -> None:
    """2,000,000 messages pass by it through a ring of 1,024, 10,000,000 with SHMQ_FULL=1.
    Shows S2, S78, S81, E18, G1."""
    count = sized(2_000_000, 10_000_000)
    queue = broker.queue("jobs", codec="bytes", maxsize=1024)
    queue.put(b"old")
    old = queue.receive(timeout=5)
    with Offspring(put_numbers, queue, count) as producer:
        for n in range(count):
            assert queue.get(timeout=30) == b"%d" % n
        assert producer.wait() == 0
    for n in range(1023):
        queue.put(b"%d" % n, timeout=5)
    with pytest.raises(shmq.Full):
        queue.put(b"one too many", timeout=0)
    old.release()
    assert queue.get(timeout=5) == b"old"
    assert queue.get_many(2000, timeout=5) == [b"%d" % n for n in range(1023)]
    check_empty(broker, queue)


def test_several_old_messages_come_back_in_their_order(broker: shmq.Broker, seed: int) -> None:
    """Shows S2, R2, G1."""
    rng = random.Random(seed)
    queue = broker.queue("jobs", maxsize=1024)
    for _ in range(20):
        queue.put_many(range(100))
        held = [queue.receive(timeout=5) for _ in range(100)]
        for n in range(rng.randrange(1000, 3000)):
            queue.put(n)
            assert queue.get(timeout=5) == n
        queue.put_many(["late", "later"])
        rng.shuffle(held)
        for m in held:
            m.release()
        assert queue.get_many(200, timeout=5) == [*range(100), "late", "later"]
    check_empty(broker, queue)


MEASURED = """
    import sys
    import psutil
    import shmq
    role, warm, half = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    def work(queue, times):
        for _ in range(times // 2):
            if role == "put":
                queue.put(b"x" * 60)
                queue.put(b"x" * 60)
            else:
                queue.get()
                queue.receive().ack()
    with shmq.open(sys.argv[1], create=False) as broker:
        queue = broker.queue("jobs", codec="bytes")
        process = psutil.Process()
        process.memory_full_info()
        work(queue, warm)
        seen = [process.memory_full_info().uss]
        for _ in range(2):
            work(queue, half)
            seen.append(process.memory_full_info().uss)
        print(min(seen[1] - seen[0], seen[2] - seen[1]))
"""


def test_private_memory_of_producer_and_consumer_stays_flat(broker: shmq.Broker) -> None:
    """Twice 500,000 messages after a warm-up of 20,000; twice 5,000,000 with SHMQ_FULL=1. Margin: 64 KiB.

    A leak grows in both halves. Memory that a process first needs when a busy machine makes it wait grows in one.
    In interpreters of their own: a forked one would make pages its own that it shared with its parent.
    """
    broker.queue("jobs", codec="bytes", maxsize=1024)
    sizes = [str(20_000), str(sized(500_000, 5_000_000))]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(MEASURED), str(broker.path), role, *sizes],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for role in ("put", "get")
    ]
    try:
        grown = [int(process.communicate(timeout=240)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    print(f"private memory grew by {grown[0]} bytes (producer), {grown[1]} bytes (consumer)")
    assert max(grown) < 64 * 1024


def fill(queue: Queue, put: Board, slot: int, say: Say) -> None:
    say("here")
    while True:
        queue.put(slot)
        put.add(slot)


def drain(queue: Queue, begun: Board, slot: int, say: Say) -> None:
    say("here")
    while True:
        begun.add(slot)
        queue.get()


@pytest.mark.parametrize("maxsize", [1, 7, 1024])
def test_maxsize_is_exact_under_load_and_after_kills(broker: shmq.Broker, seed: int, maxsize: int) -> None:
    """At every moment: puts that returned less gets that began are at most maxsize. All of it is there at the end.

    Shows R13, R20.
    """
    rng = random.Random(seed)
    queue = broker.queue("jobs", maxsize=maxsize)
    kills = sized(40, 400)
    put, begun = Board(kills + 4), Board(kills + 3)
    looked = 0
    with family() as children:
        producers: list[Offspring] = []
        consumers: list[Offspring] = []
        made = [0, 0]
        for kill in range(kills):
            while len(producers) < 4:
                slot = made[0]
                producers.append(Offspring(fill, queue, put, slot))
                children.append(producers[-1])
                made[0] += 1
            while len(consumers) < 3 and made[1] < begun.slots:
                slot = made[1]
                consumers.append(Offspring(drain, queue, begun, slot))
                children.append(consumers[-1])
                made[1] += 1
            for _ in range(rng.randrange(5, 60)):
                returned = put.total()  # first, so that what is found to be too many was too many
                assert returned - begun.total() <= maxsize
                looked += 1
            group = producers if kill % 2 or not consumers else consumers
            group.pop(rng.randrange(len(group))).kill()
        for child in children:
            child.kill()
    reap_the_dead(broker)
    print(f"{looked} looks, {put.total()} puts")
    while True:
        try:
            queue.get(timeout=0)
        except shmq.Empty:
            break
    for number in range(maxsize):
        queue.put(number, timeout=1)
    with pytest.raises(shmq.Full) as full:
        queue.put("one too many", timeout=0)
    assert (full.value.limit, full.value.used) == (maxsize, maxsize)
    assert queue.get_many(2 * maxsize, timeout=1) == list(range(maxsize))
    check_empty(broker, queue)


def test_a_maxsize_that_is_given_late_counts_what_is_there(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs")
    queue.put_many(range(6))
    limited = broker.queue("jobs", maxsize=8)
    limited.put(6, timeout=1)
    limited.put(7, timeout=1)
    with pytest.raises(shmq.Full):
        queue.put(8, timeout=0)
    assert queue.get(timeout=1) == 0
    queue.put(8, timeout=1)
    assert queue.get_many(20, timeout=1) == list(range(1, 9))
    check_empty(broker, queue)


def test_a_place_that_is_free_far_ahead_is_found(broker: shmq.Broker) -> None:
    """Settled out of order in a full ring: the one free slot may be anywhere. Shows S86, E18."""
    queue = broker.queue("jobs", maxsize=1024)
    queue.put_many(range(1024))
    held = queue.receive_many(1024, timeout=5)
    for place in (1000, 700, 513, 512, 1):
        held[place].ack()
        queue.put("newcomer", timeout=0)
        with pytest.raises(shmq.Full):
            queue.put("one too many", timeout=0)
        assert queue.get(timeout=1) == "newcomer"
        queue.put("newcomer", timeout=0)
        held[place] = queue.receive(timeout=1)
    for m in held:
        m.ack()
    check_empty(broker, queue)


SMALL_SHM = """
    import os, signal, sys
    import shmq
    broker = shmq.open(sys.argv[1], memory="64MiB", disk=0)
    queue = broker.queue("jobs", codec="bytes")
    read, write = os.pipe()
    accepted = 0
    try:
        while True:
            queue.put(bytes([accepted % 256]) * 200_000, timeout=0)
            accepted += 1
    except shmq.OutOfSpace as error:
        text = str(error)
    assert accepted > 10, accepted
    assert "/dev/shm" in text and "--shm-size" in text, text
    assert any(part.replace(",", "").isdigit() for part in text.split()), text
    assert text.count("take messages out") == 1 and "take messages out of 'jobs'" in text, text
    small = 0
    try:
        while True:
            queue.put(b"small", timeout=0)
            small += 1
    except (shmq.Full, shmq.OutOfSpace):
        pass
    pid = os.fork()  # a reader that joins now must not meet memory that is not there either
    if pid == 0:
        with shmq.open(sys.argv[1], create=False) as mine:
            again = mine.queue("jobs", codec="bytes")
            for n in range(accepted):
                assert again.get(timeout=5) == bytes([n % 256]) * 200_000
            for n in range(small):
                assert again.get(timeout=5) == b"small"
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    for n in range(accepted):
        queue.put(bytes([n % 256]) * 200_000, timeout=0)
        queue.get(timeout=5)
    try:
        for n in range(1000):
            broker.queue(f"empty-{n}")
        raise SystemExit("1000 queues found memory where there is none")
    except shmq.OutOfSpace as error:
        text = str(error)
    assert "no memory for queue 'empty-" in text and "--shm-size" in text, text
    assert "slots of queue 'empty-" in text and "delete queues that are not needed" in text, text
    broker.close()
    print("survived", accepted, small)
"""


def test_a_full_dev_shm_is_an_error_with_figures_and_never_a_signal(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0:
        pytest.skip("a small /dev/shm of its own needs root and unshare")
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", "/dev/shm"]
    probe = subprocess.run([unshare, "-m", *mount], capture_output=True, text=True, timeout=30, check=False)
    if probe.returncode != 0:
        pytest.skip(f"mounting a tmpfs is not permitted here: {probe.stderr.strip()}")
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(SMALL_SHM))
    shell = f'{" ".join(mount)} && exec "$0" "$1" "$2"'
    result = subprocess.run(
        [unshare, "-m", "sh", "-c", shell, sys.executable, str(program), str(tmp_path / "broker")],
        cwd=ROOT,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    print(result.stdout)


def test_usage_tells_of_no_rescue_in_a_quiet_queue(broker_dir: Path) -> None:
    """Shows G4."""
    with shmq.open(broker_dir, memory="64MiB", patience=1.0) as broker:  # a busy machine stops a producer for a tenth
        queue = broker.queue("jobs")
        with Offspring(echo, queue, 50) as consumer:
            for n in range(50):
                queue.put(n)
                assert consumer.line() == str(n)
            assert consumer.wait() == 0
        assert usage(broker)["rescues"] == 0
