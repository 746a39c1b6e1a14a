"""A broker whose path leads elsewhere while it is in use: processes go on, also with what lies on disk. Shows G8."""

import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child
from tests.engine.conftest import MEMORY
from tests.engine.numbered import number_of, put_numbers

LITTLE = 20_000  # bytes in memory, so that a few hundred messages flow


def moved(broker_dir: Path) -> None:
    broker_dir.rename(broker_dir.with_name("moved"))


def moved_and_made_anew(broker_dir: Path) -> None:
    """Where it was lies another broker, which has rows of its own."""
    moved(broker_dir)
    with shmq.open(broker_dir, memory=MEMORY, disk="8MiB") as other:
        put_numbers(other.queue("q", codec="bytes", max_memory=LITTLE), range(1000, 2000))


def replaced_by_a_file(broker_dir: Path) -> None:
    moved(broker_dir)
    broker_dir.write_text("mine")


@pytest.mark.parametrize("move", [moved, moved_and_made_anew, replaced_by_a_file])
@pytest.mark.parametrize("flowed_before", [True, False])
def test_a_directory_that_is_moved_in_use_flows_on(
    broker_dir: Path, move: Callable[[Path], None], flowed_before: bool
) -> None:
    with shmq.open(broker_dir, memory=MEMORY, disk="8MiB") as broker:
        queue = broker.queue("q", codec="bytes", max_memory=LITTLE)
        put_numbers(queue, range(1000 if flowed_before else 1))
        move(broker_dir)
        put_numbers(queue, range(1000 if flowed_before else 1, 3000))
        assert queue.statistics().flowed
        there = broker_dir.with_name("moved")
        assert broker.path == str(there)
        assert str(there) in broker.url
        assert broker.statistics().disk_used > 100_000
        assert [number_of(queue.get(timeout=5.0)) for _ in range(3000)] == list(range(3000))
        with shmq.open(there) as same:
            same.queue("q").put(b"by another handle")
        assert queue.get(timeout=0) == b"by another handle"
        broker.delete()
    assert not there.exists()
    if move is moved_and_made_anew:
        with shmq.open(broker_dir) as other:
            assert [number_of(b) for b in other.queue("q", codec="bytes").get_many(2000, timeout=0)][:9] == [
                *range(1000, 1009)
            ]
            other.delete()


def _child(queue: "shmq.Queue[bytes]") -> None:
    queue.put(b"from a child")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_find_a_directory_that_was_moved(broker_dir: Path, method: str) -> None:
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        queue = broker.queue("q", codec="bytes")
        moved(broker_dir)
        context: Any = multiprocessing.get_context(method)
        process = context.Process(target=_child, args=(queue,))
        process.start()
        process.join()
        assert queue.get(timeout=0) == b"from a child"
        broker.delete()


PUTS = """
{before}
os.chdir(sys.argv[1])
broker = shmq.open("broker", memory="16MiB", disk="8MiB")
queue = broker.queue("q", codec="bytes", max_memory=20000)
queue.put(bytes(100))
{move}
for _ in range(2999):
    queue.put(bytes(100), timeout=5)
assert queue.statistics().flowed
assert len(list(queue.browse())) == 3000
got = 0
for _ in range(1500):
    got += len(queue.get(timeout=5)) == 100
say(got)
listen()
"""
MOVES = {
    "chdir": "os.chdir('/')",
    "the current directory is removed": "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
    "chroot": "os.chroot(sys.argv[2])",
    "chroot and chdir": "os.chroot(sys.argv[2]); os.chdir('/')",
}


@pytest.mark.parametrize("how", sorted(MOVES))
def test_a_process_whose_root_or_current_directory_changes_flows_to_the_same_place(tmp_path: Path, how: str) -> None:
    if "chroot" in how and os.geteuid() != 0:
        pytest.skip("only root can change its root")
    empty = tmp_path / "empty"
    empty.mkdir()
    before = "import shmq.engine.directory.disk, shmq.statistics, shmq.engine.dead_lettering.alert, tempfile, psutil"
    program = PUTS.replace("{before}", before).replace("{move}", MOVES[how])
    with Child(program, tmp_path, empty) as child:
        assert child.line() == "1500"
        with shmq.open(tmp_path / "broker") as broker:
            assert len(broker.queue("q", codec="bytes").get_many(3000, timeout=1.0)) > 0
            while broker.queue("q").qsize():
                broker.queue("q", codec="bytes").get_many(3000, timeout=1.0)
            child.tell("end")
            child.end()
            broker.delete()
    assert not list(empty.iterdir())


def test_a_temporary_directory_that_is_removed_is_named_and_may_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    with shmq.open(memory="8MiB", disk="64MiB") as broker:
        queue = broker.queue("q", codec="bytes")
        shutil.rmtree(place)
        with pytest.raises(shmq.BrokerError, match=rf"cannot make the directory {place}.*errno 2") as caught:
            queue.put_many([bytes(50_000)] * 300, timeout=0.1)
        assert caught.value.errno == 2
        had = queue.qsize()
        place.mkdir()
        for _ in range(300):
            queue.put(bytes(50_000), timeout=5.0)
        assert len([queue.get(timeout=5.0) for _ in range(had + 300)]) == had + 300
    assert not list(place.iterdir())


def test_no_failure_of_the_core_is_without_a_text() -> None:
    from shmq.core.status import exception_of

    assert "did not say why (status OS)" in str(exception_of("OS", "", 0))
    assert str(exception_of("OS", "text", 0)) == "text"


def test_a_descriptor_that_something_else_has_now_gets_no_rows(broker_dir: Path, tmp_path: Path) -> None:
    program = """
broker = shmq.open(sys.argv[1], memory="16MiB", disk="8MiB")
queue = broker.queue("q", codec="bytes", max_memory=20000)
os.dup2(os.open(sys.argv[2], os.O_RDONLY | os.O_DIRECTORY), broker._membership.member.dir_fd)
try:
    for _ in range(3000):
        queue.put(bytes(100), timeout=1)
except shmq.ShmqError as error:
    say(type(error).__name__, error)
"""
    other = tmp_path / "other"
    other.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", "import os, sys, shmq\nsay = print\n" + program, broker_dir, other],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Error" in done.stdout, done.stderr
    assert not list(other.iterdir())
    with shmq.open(broker_dir) as broker:
        broker.delete()
