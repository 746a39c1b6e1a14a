"""Broker.delete(): what is left, what others meet, and who is asked before."""

import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import shmq
from shmq.engine.directory.orphans import orphans
from shmq.engine.directory.removal import destroy
from tests.engine.child import Child
from tests.engine.conftest import MEMORY

SHM = Path("/dev/shm")


def name_of(broker: shmq.Broker) -> str:
    return broker._membership.member.name


def test_nothing_is_left_and_every_handle_is_closed(broker_dir: Path) -> None:
    broker = shmq.open(broker_dir, memory=MEMORY)
    again = shmq.open(broker_dir)
    queue, name = broker.queue("jobs"), name_of(broker)
    queue.put("a message")
    consumer = queue.consumer()
    held = consumer.receive(timeout=0)
    broker.delete()
    assert not broker_dir.exists()
    assert not (SHM / name).exists()
    for call in (broker.delete, again.queues, lambda: queue.put("x"), consumer.receive):
        with pytest.raises(shmq.Closed):
            call()
    with pytest.raises(shmq.ShmqError):
        held.ack()
    with shmq.open(broker_dir, memory=MEMORY) as anew:
        assert anew.queues() == []
        anew.delete()


USER = """
broker = shmq.open(sys.argv[1])
queue = broker.queue("jobs")
say("in")
listen()
"""


def test_while_others_use_it_it_is_refused_and_they_are_named(broker_dir: Path) -> None:
    """Shows G8."""
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        broker.queue("jobs").put("a message")
        with Child(USER, broker_dir) as child:
            assert child.line() == "in"
            with pytest.raises(shmq.BrokerError, match=rf"in use.*\(pid {child.pid}\).*force=True"):
                broker.delete()
            assert broker.queue("jobs").qsize() == 1
            child.tell("end")
            child.end()
        broker.delete()
    assert not broker_dir.exists()


def test_a_dead_process_is_in_nobodys_way(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        with Child(USER, broker_dir) as child:
            assert child.line() == "in"
            os.kill(child.pid, signal.SIGKILL)
            child.process.wait()
        broker.delete()
    assert not broker_dir.exists()


AT_WORK = {
    "waits": "queue.get()",
    "puts": "[queue.put('x') for _ in iter(int, 1)]",
    "looks": "[queue.qsize() for _ in iter(int, 1)]",
    "reads in place": "[bytes(view)[-1] for _ in iter(int, 1) if broker.queue('jobs')]",
    "opens queues": "[broker.queue(str(n)) for n in iter(int, 1)]",
    "statistics": "[broker.statistics() for _ in iter(int, 1)]",
}


@pytest.mark.parametrize("work", sorted(AT_WORK))
def test_by_force_the_others_hear_of_it_and_none_crashes(broker_dir: Path, work: str) -> None:
    """Shows G8."""
    program = """
broker = shmq.open(sys.argv[1])
queue = broker.queue("others" if "{work}" == "waits" else "jobs", overflow="drop_oldest", maxsize=100)
large = broker.queue("large")
large.put(bytes(4 << 20))
message = large.receive(timeout=0)
view = message.view()
say("in")
try:
    {call}
except shmq.BrokerNotFound as error:
    assert "deleted" in str(error), error
    assert bytes(view) == bytes(4 << 20)  # what is mapped stays
    say("not found")
listen()
try:
    queue.put("x")
except shmq.BrokerNotFound:
    say("not found again")
broker.close()
say("closed")
"""
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        name = name_of(broker)
        with Child(program.replace("{call}", AT_WORK[work]).replace("{work}", work), broker_dir) as child:
            assert child.line() == "in"
            broker.delete(force=True)
            assert child.line() == "not found"
            assert not (SHM / name).exists()
            with shmq.open(broker_dir, memory=MEMORY) as anew:
                assert anew.queues() == []
                child.tell("go on")
                assert child.line() == "not found again"
                assert child.line() == "closed"
                child.end()
                assert anew.queues() == []
                anew.delete()


def test_a_thread_that_waits_hears_that_its_broker_is_closed(broker_dir: Path) -> None:
    broker = shmq.open(broker_dir, memory=MEMORY)
    queue, heard = broker.queue("jobs"), []

    def wait() -> None:
        try:
            queue.get()
        except shmq.ShmqError as error:
            heard.append(type(error))

    thread = threading.Thread(target=wait)
    thread.start()
    broker.delete()
    thread.join()
    assert heard in ([shmq.Closed], [shmq.BrokerNotFound])
    assert not broker_dir.exists()


def test_what_else_lies_in_the_directory_stays(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        (broker_dir / "notes").write_text("mine")
        broker.delete()
    assert [path.name for path in broker_dir.iterdir()] == ["notes"]


def test_a_broker_whose_directory_was_moved_is_deleted_where_it_lies(broker_dir: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        broker_dir.rename(moved)
        with shmq.open(broker_dir, memory=MEMORY) as anew:  # another one, where it was
            assert (broker.path, anew.path) == (str(moved), str(broker_dir))
            broker.delete()
            assert not moved.exists()
            assert anew.queues() == []
            anew.delete()
    assert not broker_dir.exists()


def test_one_whose_directory_was_deleted_is_deleted_too(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        name = name_of(broker)
        for path in broker_dir.iterdir():
            path.unlink()
        broker_dir.rmdir()
        broker.delete()
    assert not (SHM / name).exists()


def test_an_anonymous_one_goes_unless_others_have_it() -> None:
    broker = shmq.open(memory=MEMORY)
    name = name_of(broker)
    with Child(USER, broker.url) as child:
        assert child.line() == "in"
        with pytest.raises(shmq.BrokerError, match=f"pid {child.pid}"):
            broker.delete()
        broker.delete(force=True)
        assert not (SHM / name).exists()
        child.tell("end")
        child.end()


STATES: dict[str, Callable[[Path, Path], object]] = {
    "the record is garbage": lambda directory, memory: (directory / "segment").write_text("garbage"),
    "the record is missing": lambda directory, memory: (directory / "segment").unlink(),
    "the record is of another version": lambda directory, memory: of_another_version(directory / "segment"),
    "the segment is lost": lambda directory, memory: memory.unlink(),
    "the segment is of another version": lambda directory, memory: overwrite(memory, 8, b"\x63"),
    "the segment is damaged": lambda directory, memory: overwrite(memory, 0, bytes(32)),
    "the directory has another mode": lambda directory, memory: directory.chmod(0o770),
}


def of_another_version(record: Path) -> None:
    record.write_text(record.read_text().replace('"format": 2', '"format": 99'))


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


@pytest.mark.parametrize("state", sorted(STATES))
def test_a_broker_is_destroyed_in_whatever_state_it_is(broker_dir: Path, state: str) -> None:
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        memory = SHM / name_of(broker)
    STATES[state](broker_dir, memory)
    try:
        if state == "the record is garbage":
            with pytest.raises(shmq.CorruptionError, match=r"none of shmq's.*--force"):
                destroy(str(broker_dir))
            assert memory.exists()
        removal = destroy(str(broker_dir), force=state == "the record is garbage")
        assert removal.directory
        assert not broker_dir.exists()
        if state == "the record is of another version":
            # Which segment it was nobody can say any more.
            assert [identity.name for identity in orphans(str(broker_dir), deleted=True)] == [memory.name]
        else:
            assert not memory.exists()
            assert removal.segment == (None if "lost" in state else memory.name)
    finally:
        memory.unlink(missing_ok=True)


def test_a_copy_is_destroyed_and_the_original_stays(broker_dir: Path, tmp_path: Path) -> None:
    """Shows G8."""
    copy = tmp_path / "copy"
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        broker.queue("jobs").put("a message")
        shutil.copytree(broker_dir, copy)
        removal = destroy(str(copy), force=True)
        assert (removal.segment, removal.left, removal.directory) == (None, name_of(broker), True)
        assert broker.queue("jobs").get(timeout=0) == "a message"
    assert not copy.exists()
