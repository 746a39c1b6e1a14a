"""Four producers and four consumers: nothing lost, nothing doubled, each producer's order kept.

In the suite 2,000,000 small messages a way of starting and 8 GB of bodies; with SHMQ_FULL=1 ten times as much.
"""

import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.support.health import check_empty, usage
from tests.support.size import sized
from tests.support.traffic import HEADER, Audit, consume, produce, size_of

ROOT = Path(__file__).resolve().parents[2]
# A rescue is a message that is older than half of this when the sleeper looks of itself. A busy machine may stop a
# producer between its put and its wake for longer than half of the default, a tenth of a second.
PATIENCE = 1.0
PRODUCERS = CONSUMERS = 4
SECONDS = sized(100, 1500)
Wait = Callable[[], int | None]


class Fleet:
    """Processes of a test, whichever way they were started; all of them must end well, and in time."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.popen: list[subprocess.Popen[bytes]] = []
        self.forked: list[Any] = []

    def start(self, work: Callable[..., None], queue: shmq.Queue[Any], *arguments: object) -> None:
        if self.how == "unrelated":
            words = [work.__name__, str(queue.broker.path), queue.name, *map(str, arguments)]
            command = [sys.executable, "-m", "tests.support.traffic", *words]
            self.popen.append(subprocess.Popen(command, cwd=ROOT))
            return
        context = multiprocessing.get_context(self.how)
        process = context.Process(target=work, args=(queue, *arguments))  # type: ignore[attr-defined]
        process.start()
        self.forked.append(process)

    def wait(self, first: int, last: int) -> None:
        for process in self.popen[first:last]:
            assert process.wait(SECONDS) == 0
        for process in self.forked[first:last]:
            process.join(SECONDS)
            assert process.exitcode == 0

    def close(self) -> None:
        for process in [*self.popen, *self.forked]:
            process.kill()
            if isinstance(process, subprocess.Popen):
                process.wait()
            else:
                process.join()


def run(queue: shmq.Queue[Any], how: str, count: int, batch: bool, seed: int, large: bool, tmp_path: Path) -> Audit:
    fleet = Fleet(how)
    books = [tmp_path / f"book-{number}" for number in range(CONSUMERS)]
    extra = (large,) if large else ()
    try:
        for number in range(PRODUCERS):
            fleet.start(produce, queue, number, count, batch, seed, *extra)
        for book in books:
            fleet.start(consume, queue, book, batch, seed, *extra)
        fleet.wait(0, PRODUCERS)
        queue.shutdown()
        fleet.wait(PRODUCERS, PRODUCERS + CONSUMERS)
    finally:
        fleet.close()
    audit = Audit()
    for book in books:
        audit.read(book)
    return audit


# A ring of 1,024 slots wraps often; without a maxsize it is as large as the memory makes it.
@pytest.mark.timeout(sized(900, 3600))
@pytest.mark.parametrize(
    ("how", "batch", "maxsize"),
    [
        ("fork", False, 1024),
        ("fork", True, 1000),
        ("spawn", False, 0),
        ("forkserver", True, 0),
        ("unrelated", False, 0),
        ("unrelated", True, 30),
    ],
)
def test_small_messages_arrive_once_and_in_order(
    how: str, batch: bool, maxsize: int, broker_dir: Path, tmp_path: Path, seed: int, figure: Callable[..., None]
) -> None:
    """Shows S3, S49, S85, S92, R4, G1, G3."""
    count = sized(2_000_000, 20_000_000) // PRODUCERS
    with shmq.open(broker_dir, memory="64MiB", patience=PATIENCE) as broker:
        queue = broker.queue("load", codec="bytes", maxsize=maxsize)
        audit = run(queue, how, count, batch, seed, False, tmp_path)
        audit.check(PRODUCERS, count)
        found = usage(broker)
        figure("rescues", messages=PRODUCERS * count, rescues=found["rescues"])
        assert found["rescues"] == 0, "a sleep ended by its time limit beside a message: somebody was not woken"
        assert found["deaths"] == 0
        check_empty(broker, queue)
        statistics = queue.statistics()
        assert (statistics.put, statistics.delivered) == (PRODUCERS * count, PRODUCERS * count)


@pytest.mark.timeout(sized(900, 3600))
@pytest.mark.parametrize("batch", [False, True])
def test_bodies_from_nothing_to_8_mib_arrive_whole(batch: bool, broker_dir: Path, tmp_path: Path, seed: int) -> None:
    wanted = sized(4_000, 40_000) * 1_000_000
    count = 0
    volume = 0
    while volume < wanted:
        volume += sum(size_of(producer, count, seed) for producer in range(PRODUCERS))
        count += 1
    nameless = [sum(size_of(p, n, seed) < HEADER.size for n in range(count)) for p in range(PRODUCERS)]
    with shmq.open(broker_dir, memory="256MiB", patience=PATIENCE) as broker:
        queue = broker.queue("bodies", codec="bytes")
        audit = run(queue, "fork", count, batch, seed, True, tmp_path)
        audit.check(PRODUCERS, count, nameless)
        assert audit.volume == volume
        assert usage(broker)["rescues"] == 0
        check_empty(broker, queue)
