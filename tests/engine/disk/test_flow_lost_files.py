"""A queue whose files were deleted, changed, or put out of reach under it: nothing is silently wrong."""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.conftest import MEMORY
from tests.engine.lifecycle.test_less_trusted import place
from tests.support.health import usage
from tests.support.users import GROUP, OTHER, as_user, needs_root

__all__ = ["place"]  # a fixture
LITTLE = 20_000  # bytes in memory
COUNT = 3000


def put_numbers(queue: shmq.Queue[Any], numbers: range) -> None:
    for number in numbers:
        queue.put(b"%08d" % number + b"x" * 50, timeout=0)


def number_of(body: bytes) -> int:
    return int(body[:8])


def take(queue: shmq.Queue[Any], count: int) -> list[int]:
    return [number_of(queue.get(timeout=0)) for _ in range(count)]


def take_all(queue: shmq.Queue[Any], told: list[str] | None = None) -> list[int]:
    """Until nothing is there; a hang is ended by the time limit of the test."""
    taken: list[int] = []
    while True:
        try:
            taken.append(number_of(queue.get(timeout=0)))
        except shmq.Empty:
            return taken
        except shmq.CorruptionError as error:
            if told is None:
                raise
            told.append(str(error))


def flowing(broker: shmq.Broker) -> shmq.Queue[Any]:
    return broker.queue("backlog", max_memory=LITTLE, codec="bytes")


def files(broker_dir: Path) -> list[Path]:
    return sorted(path for path in (broker_dir / "disk").rglob("*") if path.is_file())


def goes_on(broker: shmq.Broker) -> None:
    """Another queue that flows, and one that does not."""
    for other in (broker.queue("other", codec="bytes"), broker.queue("more", max_memory=LITTLE, codec="bytes")):
        put_numbers(other, range(500))
        assert take(other, 500) == list(range(500))


def check_says_damage(broker_dir: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "shmq", "-d", broker_dir, "check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "damage" in done.stdout) == (1, True), done


def directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def link(file: Path) -> None:
    """To a file that would do."""
    shutil.move(file, file.with_name("aside"))
    file.symlink_to(file.with_name("aside"))


def dangling_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/nonexistent/file")


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def of_another_file(file: Path) -> None:
    """As sound as it was; places are in each row."""
    file.write_bytes(file.parent.joinpath(sorted(os.listdir(file.parent))[0]).read_bytes())


FILES: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "empty": lambda file: os.truncate(file, 0),
    "truncated": lambda file: os.truncate(file, file.stat().st_size // 2),
    "longer": lambda file: os.truncate(file, file.stat().st_size + 1),
    "garbage": lambda file: file.write_bytes(b"garbage " * 1000),
    "directory": directory,
    "link": link,
    "dangling link": dangling_link,
    "pipe": pipe,
    "of another file": of_another_file,
}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("known", [False, True], ids=["unread", "known"])
@pytest.mark.parametrize("what", FILES)
def test_a_file_that_is_spoilt_costs_its_messages_and_it_is_told(
    broker: shmq.Broker, broker_dir: Path, what: str, known: bool
) -> None:
    """Shows G5."""
    queue = flowing(broker)
    put_numbers(queue, range(COUNT))
    first = 700 if known else 5  # by then all files have been listed
    assert take(queue, first) == list(range(first))
    all_of_them = files(broker_dir)
    place_of = [int(file.name, 16) for file in all_of_them]
    spoilt = len(all_of_them) // 2
    FILES[what](all_of_them[spoilt])
    lost = range(place_of[spoilt], place_of[spoilt + 1])
    told: list[str] = []
    assert take_all(queue, told) == [number for number in range(first, COUNT) if number not in lost]
    figures = f"{len(lost)}, of {58 * len(lost)} bytes in all, before position {lost.stop}"
    assert [figures in text for text in told] == [True], told
    assert usage(broker)["damage"] == 1
    check_says_damage(broker_dir)
    assert (queue.qsize(), queue.statistics().disk_bytes, queue.statistics().flowed) == (0, 0, False)
    put_numbers(queue, range(COUNT))
    assert take_all(queue) == list(range(COUNT))
    goes_on(broker)


@pytest.mark.parametrize("known", [False, True], ids=["unread", "known"])
@pytest.mark.parametrize("what", ["disk", "disk/*", "disk/*/*"])
def test_a_directory_that_is_deleted_costs_what_lay_there_and_it_is_told(
    broker: shmq.Broker, broker_dir: Path, what: str, known: bool
) -> None:
    """Shows G5."""
    queue = flowing(broker)
    put_numbers(queue, range(COUNT))
    first = 700 if known else 5
    assert take(queue, first) == list(range(first))
    for path in broker_dir.glob(what):
        shutil.rmtree(path)
    put_numbers(queue, range(COUNT, 2 * COUNT))
    told: list[str] = []
    taken = take_all(queue, told)
    assert [f"{2 * COUNT - first - len(taken)}, of " in text for text in told] == [True], told
    assert taken == sorted(set(taken))
    assert taken[-COUNT:] == list(range(COUNT, 2 * COUNT))
    assert len(taken) < 2 * COUNT - first
    assert usage(broker)["damage"] == 1
    check_says_damage(broker_dir)
    assert (queue.qsize(), queue.statistics().disk_bytes) == (0, 0)
    goes_on(broker)


def test_a_directory_that_is_put_elsewhere_and_linked_does(broker: shmq.Broker, broker_dir: Path) -> None:
    queue = flowing(broker)
    put_numbers(queue, range(COUNT))
    elsewhere = broker_dir.with_name("elsewhere")
    shutil.move(broker_dir / "disk", elsewhere)
    (broker_dir / "disk").symlink_to(elsewhere)
    put_numbers(queue, range(COUNT, COUNT + 500))
    assert take_all(queue) == list(range(COUNT + 500))
    assert usage(broker)["damage"] == 0


def refused(call: Callable[[], object], broker_dir: Path) -> str:
    with pytest.raises(shmq.ShmqError) as caught:
        call()
    said = str(caught.value)
    for part in (str(broker_dir / "disk"), "remove the cause", "purge()"):
        assert part in said, said
    return said


def put_until_refused(queue: shmq.Queue[Any], first: int) -> int:
    """The number that was refused, for whatever reason."""
    while True:
        try:
            put_numbers(queue, range(first, first + 1))
        except shmq.ShmqError:
            return first
        first += 1


def take_until_refused(queue: shmq.Queue[Any], first: int) -> int:
    """The number that would have come next; nothing is Empty meanwhile."""
    while True:
        try:
            assert number_of(queue.get(timeout=0)) == first
        except shmq.BrokerError:
            return first
        first += 1


@pytest.mark.memory
def test_files_out_of_reach_are_told_until_they_are_back_and_then_all_goes_on(
    broker: shmq.Broker, broker_dir: Path
) -> None:
    """Shows S131, S192, G5."""
    queue = flowing(broker)
    put_numbers(queue, range(COUNT))
    aside = broker_dir / "aside"
    shutil.move(broker_dir / "disk", aside)
    (broker_dir / "disk").write_text("in the way")
    end = put_until_refused(queue, COUNT)
    assert "directory" in refused(lambda: put_numbers(queue, range(end, end + 1)), broker_dir)
    taken = take_until_refused(queue, 0)
    assert "directory" in refused(lambda: queue.get(timeout=60.0), broker_dir)
    assert queue.qsize() == end - taken
    goes_on_in_memory = broker.queue("other", codec="bytes")
    put_numbers(goes_on_in_memory, range(500))
    assert take(goes_on_in_memory, 500) == list(range(500))
    (broker_dir / "disk").unlink()
    shutil.move(aside, broker_dir / "disk")
    put_numbers(queue, range(end, end + 500))
    assert take_all(queue) == list(range(taken, end + 500))
    assert usage(broker)["damage"] == 0


def test_a_purge_gives_up_what_is_out_of_reach(broker: shmq.Broker, broker_dir: Path) -> None:
    queue = flowing(broker)
    put_numbers(queue, range(COUNT))
    shutil.rmtree(broker_dir / "disk")
    (broker_dir / "disk").write_text("in the way")
    assert queue.purge() == COUNT
    assert queue.qsize() == 0
    with pytest.raises(shmq.ShmqError):
        put_numbers(queue, range(COUNT))
    (broker_dir / "disk").unlink()
    queue.purge()
    put_numbers(queue, range(COUNT))
    assert take_all(queue) == list(range(COUNT))


@needs_root
@pytest.mark.parametrize("what", ["directory", "file"])
def test_what_may_not_be_read_is_told_and_comes_when_it_may(place: Path, what: str) -> None:
    home = place / "home"
    home.mkdir()
    os.chown(home, OTHER, OTHER)
    home.chmod(0o700)

    def work() -> None:
        with shmq.open(home / "broker", memory=MEMORY) as broker:
            queue = flowing(broker)
            put_numbers(queue, range(COUNT))
            file = files(home / "broker")[3]
            hidden = file if what == "file" else file.parent
            mode = hidden.stat().st_mode
            hidden.chmod(0)
            taken = take_until_refused(queue, 0)
            assert "Permission denied" in refused(lambda: queue.get(timeout=60.0), home / "broker")
            hidden.chmod(mode)
            assert take_all(queue) == list(range(taken, COUNT))
            assert usage(broker)["damage"] == 0
            broker.delete()

    as_user(work, OTHER)


@needs_root
def test_a_directory_of_another_user_is_told_and_all_comes_when_it_is_given_back(place: Path) -> None:
    path = place / "jobs"
    path.mkdir()
    os.chown(path, OTHER, GROUP)
    path.chmod(0o2770)

    def begin() -> None:
        with shmq.open(path, memory=MEMORY) as broker:
            put_numbers(flowing(broker), range(COUNT))

    def try_both() -> tuple[int, int]:
        with shmq.open(path) as broker:
            queue = flowing(broker)
            end = put_until_refused(queue, COUNT)
            assert "Permission denied" in refused(lambda: put_numbers(queue, range(end, end + 1)), path)
            taken = take_until_refused(queue, 0)
            assert "Permission denied" in refused(lambda: queue.get(timeout=60.0), path)
            return taken, end

    as_user(begin, GROUP)
    (disk,) = path.glob("disk/*")
    (rows,) = disk.iterdir()
    rows.chmod(0o700)
    os.chown(rows, 0, 0)
    taken, end = as_user(try_both, GROUP)
    os.chown(rows, OTHER, GROUP)

    def finish() -> list[int]:
        with shmq.open(path) as broker:
            return take_all(flowing(broker))

    assert as_user(finish, GROUP) == list(range(taken, end))


def test_a_gap_before_a_file_of_other_rows_is_passed(broker: shmq.Broker, broker_dir: Path) -> None:
    """The file that follows the gap has no row of its name: the search goes on behind it."""
    queue = flowing(broker)
    put_numbers(queue, range(COUNT))
    all_of_them = files(broker_dir)
    place_of = [int(file.name, 16) for file in all_of_them]
    spoilt = len(all_of_them) // 2
    all_of_them[spoilt].unlink()
    of_another_file(all_of_them[spoilt + 1])
    told: list[str] = []
    lost = range(place_of[spoilt], place_of[spoilt + 2])
    assert take_all(queue, told) == [number for number in range(COUNT) if number not in lost]
    assert [f"{len(lost)}, of " in text for text in told] == [True], told
    goes_on(broker)


@pytest.mark.parametrize("size", [4 << 30, 1 << 40], ids=["4 GiB", "1 TiB"])
def test_a_file_that_has_grown_costs_its_own_messages_and_is_not_read(
    size: int, broker: shmq.Broker, broker_dir: Path
) -> None:
    queue = flowing(broker)
    put_numbers(queue, range(COUNT))
    grown = files(broker_dir)[1]
    os.truncate(grown, size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seen = [number_of(message.body) for message in queue.browse()]
    told: list[str] = []
    assert take_all(queue, told) == seen
    assert seen == sorted(seen)
    assert len(told) == 1
    assert 0 < COUNT - len(seen) <= 1024
    assert f"\n{COUNT - len(seen)}, of " in told[0] or f"{COUNT - len(seen):,}" in told[0]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10, "KiB: no file of any length is read"
    goes_on(broker)


def test_files_of_another_level_are_not_believed(broker: shmq.Broker, broker_dir: Path) -> None:
    queue = broker.queue("levels", max_memory=1, priorities=2, codec="bytes")
    for priority in (9, 0):  # the more important ones alone, so that they flow, too
        for number in range(100):
            queue.put(b"%08d" % (100 * (priority == 9) + number), priority=priority, timeout=0)
    first, second = sorted({file.parent for file in files(broker_dir)})
    aside = first.with_name("aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)
    seen = [number_of(message.body) for message in queue.browse()]
    told: list[str] = []
    taken = take_all(queue, told)
    assert taken == seen
    assert taken == sorted(taken, key=lambda number: (number < 100, number)), "the important ones come first"
    assert told
    assert len(taken) < 200
    goes_on(broker)
