"""Files of a broker's directory that are removed while it is there, as cleaners of /tmp do: it stays one broker.

Shows G8.
"""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import shmq
from shmq.core import segment
from tests.engine.child import Child, eventually
from tests.engine.conftest import MEMORY


def named_by(broker: shmq.Broker) -> str:
    return broker._membership.member.name


def of(path: Path) -> list[str]:
    """The segments of this directory, among those of other tests, which come and go."""
    directory, found = os.stat(path), []
    for name in segment.list_segments():
        with suppress(OSError, shmq.ShmqError):
            if segment.inspect(name).lies_in(directory):
                found.append(name)
    return found


def command(*arguments: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        line = [sys.executable, "-m", "shmq", "-d", str(path), *arguments]
        done = subprocess.run(line, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    return run


def by_open(path: Path) -> None:
    with shmq.open(path) as broker:
        broker.queue("q").put("new")


def by_a_process(path: Path) -> None:
    program = "import shmq, sys; shmq.open(sys.argv[1]).queue('q').put('new')"
    subprocess.run([sys.executable, "-c", program, path], check=True, timeout=120)


NEWCOMERS = {
    "open": by_open,
    "a process": by_a_process,
    "init": command("init"),
    "ls": command("ls"),
    "put": command("put", "q", "new"),
}
FILES = {
    "segment": ["segment"],
    "lock": ["lock"],
    "both": ["segment", "lock"],
    "disk": ["disk"],
    "segment emptied": ["segment"],
    "lock emptied": ["lock"],
    "both emptied": ["segment", "lock"],
    "segment cut off": ["segment"],
}


def remove(path: Path, what: str) -> None:
    for name in FILES[what]:
        if name == "disk":
            (path / "disk").rename(path.parent / "away")
        elif what.endswith("emptied"):
            os.truncate(path / name, 0)
        elif what.endswith("cut off"):
            os.truncate(path / name, 100)
        else:
            (path / name).unlink()


@pytest.mark.parametrize("newcomer", sorted(NEWCOMERS))
@pytest.mark.parametrize("what", sorted(FILES))
def test_a_broker_in_use_stays_one_broker_whatever_file_is_removed(broker_dir: Path, what: str, newcomer: str) -> None:
    with shmq.open(broker_dir, memory=MEMORY, patience=0.2, disk="8MiB") as broker:
        queue = broker.queue("q")
        queue.put("old")
        flowing = broker.queue("flowing", codec="bytes", max_memory=1000)
        flowing.put_many([bytes(100)] * 2000)
        before = (broker_dir / "segment").read_text()
        remove(broker_dir, what)
        NEWCOMERS[newcomer](broker_dir)
        assert of(broker_dir) == [named_by(broker)]
        queue.put("last")
        got = queue.get_many(10, timeout=0)
        assert got == (["old", "last"] if newcomer in ("init", "ls") else ["old", "new", "last"])
        assert (broker_dir / "segment").read_text() == (broker_dir / "lock").read_text() == before
        flowing.put(b"on disk again")
        broker.delete()
    assert not broker_dir.exists()


@pytest.mark.parametrize("what", ["segment", "lock", "segment emptied", "lock emptied", "segment cut off"])
def test_messages_of_one_that_nobody_uses_survive_the_removal_of_one_file(
    broker_dir: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        broker.queue("q").put("old")
    remove(broker_dir, what)
    with shmq.open(memory=MEMORY):  # sweeps what nobody can find again
        pass
    with caplog.at_level(logging.WARNING, "shmq.broker"), shmq.open(broker_dir) as broker:
        assert broker.queue("q").get(timeout=0) == "old"
        assert ("was removed, replaced or cut off" in caplog.text) == what.startswith("segment")
        assert (broker_dir / "segment").read_text() == (broker_dir / "lock").read_text()
        broker.delete()


def test_one_that_nobody_uses_and_whose_two_files_were_emptied_says_what_helps(broker_dir: Path) -> None:
    shmq.open(broker_dir, memory=MEMORY).close()
    remove(broker_dir, "both emptied")
    with pytest.raises(shmq.CorruptionError, match=r"0 bytes.*remove the file: the next open"):
        shmq.open(broker_dir)
    (broker_dir / "segment").unlink()
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        broker.delete()


def test_somebodys_own_file_in_place_of_the_record_stays(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        record = (broker_dir / "segment").read_text()
        (broker_dir / "segment").write_text("mine")
        with pytest.raises(shmq.CorruptionError, match="none of shmq's"):
            shmq.open(broker_dir)
        assert (broker_dir / "segment").read_text() == "mine"
        (broker_dir / "segment").write_text(record)
        broker.delete()


def test_an_older_record_leads_to_the_segment_that_is_there(broker_dir: Path) -> None:
    """As a backup that was put back."""
    shmq.open(broker_dir, memory=MEMORY).close()
    older = (broker_dir / "segment").read_text()
    (name,) = of(broker_dir)
    segment.unlink(name)
    for used in (True, False):
        broker = shmq.open(broker_dir)
        name = named_by(broker)
        broker.queue("q").put("new")
        if not used:
            broker.close()
        (broker_dir / "segment").write_text(older)
        with shmq.open(broker_dir) as other:
            assert named_by(other) == name
            assert other.queue("q").get(timeout=0) == "new"
        broker.close()
    shmq.open(broker_dir).delete()


def test_a_broker_with_other_options_is_not_made_beside_one_in_use(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        for name in ("segment", "lock"):
            (broker_dir / name).unlink()
        with pytest.raises(shmq.OptionsMismatch, match="memory"):
            shmq.open(broker_dir, memory="32MiB")
        assert of(broker_dir) == [named_by(broker)]
        broker.delete()


def test_one_without_files_is_deleted_by_those_who_have_it_and_by_others(broker_dir: Path) -> None:
    from shmq.engine.directory.removal import destroy

    for files in (["segment"], ["lock"], ["segment", "lock"]):
        for by in ("a member", "another"):
            with shmq.open(broker_dir, memory=MEMORY) as broker:
                name = named_by(broker)
                for file in files:
                    (broker_dir / file).unlink()
                if by == "a member":
                    broker.delete()
                else:
                    with pytest.raises(shmq.BrokerError, match="in use"):
                        destroy(str(broker_dir))
                    assert destroy(str(broker_dir), force=True).segment == name
            assert not broker_dir.exists()
            assert name not in segment.list_segments()


def test_a_new_directory_with_the_inode_of_a_deleted_one_is_no_old_broker(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        broker.queue("q").put("old")
        name = named_by(broker)
    for file in ("segment", "lock"):  # nobody uses it: nothing proves that the directory is not another one
        (broker_dir / file).unlink()
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        assert broker.queues() == []
        assert name not in segment.list_segments(), "nobody could ever join it"
        broker.delete()


def age(path: Path) -> float:
    return time.time() - path.stat().st_mtime


def test_a_process_that_lives_long_keeps_the_files_young(broker_dir: Path) -> None:
    """The first time soon after it has joined, then once an hour: native/tests/upkeep/test_files_touch.c."""
    with shmq.open(broker_dir, memory=MEMORY, disk="8MiB") as broker:
        broker.queue("flowing", codec="bytes", max_memory=1000).put_many([bytes(100)] * 2000)
    rows = [path for path in (broker_dir / "disk").rglob("*") if path.is_file()]
    files = [broker_dir / "segment", broker_dir / "lock", *rows]
    mine = broker_dir / "disk" / "mine"
    mine.touch()
    assert len(files) > 2
    for path in [*files, mine]:
        os.utime(path, (0, 0))
    with Child("shmq.open(sys.argv[1]).queue('empty').get()", broker_dir):
        eventually(lambda: all(age(path) < 1000 for path in files), "all are young")
        assert age(mine) > 1e6
        with shmq.open(broker_dir) as broker:
            broker.delete(force=True)


OPENING = """
from shmq.engine.directory import broker_directory
make = broker_directory.segment.create
def create(*arguments, **options):
    if sys.argv[2] == "before":
        say("holds the lock")
        listen()
    name = make(*arguments, **options)
    if sys.argv[2] == "after":
        say("holds the lock")
        listen()
    return name
broker_directory.segment.create = create
queue = shmq.open(sys.argv[1], memory="16MiB").queue("q")
queue.put("first")
say("put")
listen()
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lock_that_is_removed_while_it_is_held_makes_no_second_broker(broker_dir: Path, when: str) -> None:
    with Child(OPENING, broker_dir, when) as child:
        assert child.line() == "holds the lock"
        (broker_dir / "lock").unlink()
        with shmq.open(broker_dir, memory=MEMORY) as broker:
            broker.queue("q").put("second")
            child.tell("go on")
            assert child.line() == "put"  # before: it makes a segment, finds its lock gone, and begins anew
            assert sorted(broker.queue("q").get_many(10, timeout=0)) == ["first", "second"]
            assert of(broker_dir) == [named_by(broker)]
            child.tell("end")
            child.end()
            broker.delete()
