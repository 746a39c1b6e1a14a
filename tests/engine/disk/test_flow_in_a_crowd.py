"""A queue that flows to disk, open in many threads, and in children of every kind: in order, none lost, none twice."""

import fcntl
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import shmq
from checker.queue import queues_of
from shmq.core.handles import browse_columns
from shmq.engine.claims.claim import Claimer, queue_of_claims
from tests.support.health import check_sound
from tests.support.offspring import Offspring, Say, eventually
from tests.support.segment_image import image_of

LITTLE = 20_000  # bytes in memory
COUNT = 2000
PATIENCE = 120.0
END = b"end"
BIG = 100_000  # bytes that are copied without the interpreter's lock


@pytest.fixture
def flowing(broker: shmq.Broker) -> shmq.Queue[Any]:
    return broker.queue("backlog", max_memory=LITTLE, codec="bytes")


def put_numbers(queue: shmq.Queue[Any], producer: int, numbers: range = range(COUNT)) -> None:
    for number in numbers:
        queue.put(b"%d %d " % (producer, number) + b"x" * 60, timeout=PATIENCE)


def parsed(body: bytes) -> tuple[int, int]:
    producer, number = body.split(b" ")[:2]
    return int(producer), int(number)


def take_until_the_end(queue: shmq.Queue[Any]) -> list[tuple[int, int]]:
    taken = []
    while (body := queue.get(timeout=PATIENCE)) != END:
        taken.append(parsed(body))
    return taken


def check_each_in_order(taken: list[list[tuple[int, int]]], producers: int) -> None:
    """By each consumer; and all of it, once, by all."""
    for one in taken:
        for producer in range(producers):
            own = [number for who, number in one if who == producer]
            assert own == sorted(own), f"producer {producer} out of order"
    everything = sorted(pair for one in taken for pair in one)
    assert everything == [(producer, number) for producer in range(producers) for number in range(COUNT)]


@pytest.mark.parametrize("consumers", [1, 3])
def test_threads_that_put_and_take_at_the_same_time(
    broker: shmq.Broker, flowing: shmq.Queue[Any], consumers: int
) -> None:
    """Shows S106."""
    put_numbers(flowing, 0, range(500))  # so that it flows from the begin on
    taken: list[list[tuple[int, int]]] = []
    makers = [
        threading.Thread(target=put_numbers, args=(flowing, n, range(500 if n == 0 else 0, COUNT))) for n in range(3)
    ]
    takers = [threading.Thread(target=lambda: taken.append(take_until_the_end(flowing))) for _ in range(consumers)]
    for thread in (*makers, *takers):
        thread.start()
    for thread in makers:
        thread.join(PATIENCE)
    for _ in takers:
        flowing.put(END, timeout=PATIENCE)
    for thread in takers:
        thread.join(PATIENCE)
    assert len(taken) == consumers
    check_each_in_order(taken, 3)
    check_sound(broker, flowing)


@pytest.mark.parametrize("limit", [1, LITTLE])
def test_who_follows_sees_each_once_while_it_goes_to_disk(broker: shmq.Broker, limit: int) -> None:
    queue = broker.queue("backlog", max_memory=limit, codec="bytes")
    seen: list[list[tuple[int, int]]] = []

    def follow() -> None:
        seen.append([parsed(m.body) for m in queue.browse(follow=True)])

    followers = [threading.Thread(target=follow) for _ in range(2)]
    for thread in followers:
        thread.start()
    put_numbers(queue, 0)
    queue.shutdown()
    for thread in followers:
        thread.join(PATIENCE)
    assert seen == [[(0, number) for number in range(COUNT)]] * 2


@contextmanager
def another_moves(broker_dir: Path) -> Iterator[None]:
    """Somebody has the mover's lock of the broker's first queue: docs/protocol-flow.md."""
    (segment,) = (path.name for path in (broker_dir / "disk").iterdir())
    with Path("/dev/shm", segment).open("r+b") as file:
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 1 << 41, 1, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
        yield


@pytest.mark.parametrize("read", ["browse", "columns"])
def test_a_browser_waits_for_a_mover_and_passes_nothing(broker_dir: Path, flowing: shmq.Queue[Any], read: str) -> None:
    put_numbers(flowing, 0)
    seen: list[int] = []

    def look() -> None:
        if read == "browse":
            seen.extend(parsed(m.body)[1] for m in flowing.browse())
        else:
            begin, ended = 0, False
            while not ended:
                begin, ended, rows, _ = browse_columns(flowing, begin, flowing._ends()[0], 10_000, 1 << 30)
                seen.append(rows)

    with another_moves(broker_dir):
        reader = threading.Thread(target=look)
        reader.start()
        reader.join(0.5)  # longer than the patience: it gives up what it waits for, and begins anew
        assert reader.is_alive()
    reader.join(PATIENCE)
    assert seen == list(range(COUNT)) if read == "browse" else sum(seen) == COUNT


def test_a_claim_says_that_something_is_left_where_a_mover_is_in_its_way(
    broker: shmq.Broker, broker_dir: Path, flowing: shmq.Queue[Any]
) -> None:
    """A process that empties a queue by claims deletes it then."""
    put_numbers(flowing, 0)
    claimer = Claimer(flowing, queue_of_claims(broker, "claims"))
    with another_moves(broker_dir):
        first = claimer.claim(COUNT, 1 << 30)
    assert first.full
    assert first.entries < COUNT
    second = claimer.claim(COUNT, 1 << 30)
    assert (first.entries + second.entries, second.full, flowing.qsize()) == (COUNT, False, 0)


def put_and_take(queue: shmq.Queue[Any], results: shmq.Queue[Any], producer: int) -> None:
    """At the same time, by threads, with a handle that was inherited or sent."""
    maker = threading.Thread(target=put_numbers, args=(queue, producer))
    maker.start()
    results.put([list(pair) for pair in take_until_the_end(queue)], timeout=PATIENCE)
    maker.join()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_with_a_handle_of_their_parent_work_beside_it(
    broker: shmq.Broker, flowing: shmq.Queue[Any], method: str
) -> None:
    results: shmq.Queue[Any] = broker.queue("results")
    put_numbers(flowing, 0, range(500))
    flowing.get(timeout=PATIENCE)  # this process has files open, or read
    context: Any = get_context(method)
    children = [context.Process(target=put_and_take, args=(flowing, results, n)) for n in (1, 2)]
    for child in children:
        child.start()
    taken = [[(0, 0)]]
    taker = threading.Thread(target=lambda: taken.append(take_until_the_end(flowing)))
    taker.start()
    put_numbers(flowing, 0, range(500, COUNT))
    eventually(lambda: flowing.statistics().put == 3 * COUNT, "all was put")
    for _ in range(3):
        flowing.put(END, timeout=PATIENCE)
    taker.join(PATIENCE)
    taken += [[(one, number) for one, number in results.get(timeout=PATIENCE)] for _ in children]
    for child in children:
        child.join(PATIENCE)
        assert child.exitcode == 0
    check_each_in_order(taken, 3)
    check_sound(broker, flowing, results)


def rows_of(broker_dir: Path) -> Path:
    (rows,) = (broker_dir / "disk").glob("*/*")
    return rows


def mover_of(broker_dir: Path) -> int:
    return queues_of(image_of(broker_dir))[0].flow.unfinished


@contextmanager
def a_disk_that_takes_its_time(broker_dir: Path) -> Iterator[int]:
    """A mover writes into a full pipe, and waits amid its turn. Once the pipe is closed, its disk has failed."""
    pipe = rows_of(broker_dir) / "unfinished"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
    os.write(end, b"x" * 4096)
    try:
        yield end
    finally:
        os.close(end)


def child_moves(queue: shmq.Queue[Any], pipe: int, say: Say) -> None:
    """Puts beside its parent's mover; then, when that has ended, it is a mover."""
    os.close(pipe)
    queue.put(b"1 0 ", timeout=PATIENCE)
    say("here")
    assert os.read(0, 1) == b"g"
    put_numbers(queue, 1, range(1, COUNT))
    say(queue.statistics().disk_bytes)
    say("done")
    for _ in range(COUNT):
        queue.get(timeout=PATIENCE)
    say("taken")


def test_a_child_that_is_forked_while_a_thread_moves_messages_moves_some_later(
    broker: shmq.Broker, flowing: shmq.Queue[Any], broker_dir: Path
) -> None:
    put_numbers(flowing, 0, range(1000))
    told: list[int | None] = []

    def move() -> None:
        number = 1000
        try:
            while True:
                flowing.put(b"0 %d " % number + b"x" * BIG, timeout=PATIENCE)
                number += 1
        except shmq.BrokerError as error:  # its pipe was closed: as a disk that fails
            told.extend([number, error.errno])

    reading, writing = os.pipe()
    thread = threading.Thread(target=move)
    with a_disk_that_takes_its_time(broker_dir) as pipe:
        thread.start()
        eventually(lambda: mover_of(broker_dir) == os.getpid() and is_blocked(thread), "a thread is in its turn")
        flowing.alter(max_memory=LITTLE + 1000)  # room for what the child puts first
        child = Offspring(with_stdin(child_moves, reading), flowing, pipe)
        child.expect("here")
        assert mover_of(broker_dir) == os.getpid()
    with child:
        thread.join(PATIENCE)
        assert told
        flowing.alter(max_memory=LITTLE)
        os.write(writing, b"g")
        os.close(writing)
        os.close(reading)
        assert int(child.line()) > 100_000
        child.expect("done")
        child.expect("taken")
        assert child.wait() == 0
    rest = [parsed(flowing.get(timeout=0)) for _ in range(flowing.qsize())]
    assert len(rest) == (told[0] or 0)
    for producer in (0, 1):
        own = [number for who, number in rest if who == producer]
        assert own == sorted(set(own))
    check_sound(broker, flowing)


def is_blocked(thread: threading.Thread) -> bool:
    """In the kernel, where it writes into a pipe."""
    return Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def with_stdin(work: Any, reading: int) -> Any:
    def run(*arguments: Any) -> None:
        os.dup2(reading, 0)
        work(*arguments)

    return run


def look_at_all(queue: shmq.Queue[Any], stop: threading.Event) -> None:
    while not stop.is_set():
        for _ in queue.browse():
            pass


def test_children_that_are_forked_while_a_thread_reads_files_begin_anew(
    broker: shmq.Broker, flowing: shmq.Queue[Any]
) -> None:
    """A child has no such thread, and nothing of what the thread had half done with its files."""
    put_numbers(flowing, 0, range(6000))
    stop = threading.Event()
    thread = threading.Thread(target=look_at_all, args=(flowing, stop))
    thread.start()

    def work(say: Say) -> None:
        say(",".join(str(parsed(flowing.get(timeout=PATIENCE))[1]) for _ in range(150)))

    try:
        for first in range(0, 6000, 150):
            with Offspring(work) as child:
                assert child.line() == ",".join(map(str, range(first, first + 150)))
                assert child.wait() == 0
    finally:
        stop.set()
        thread.join()
    check_sound(broker, flowing)
