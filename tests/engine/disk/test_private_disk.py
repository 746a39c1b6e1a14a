"""Where a broker without a directory has what does not fit into memory."""

from pathlib import Path

import pytest

import shmq
from shmq.engine.directory.disk import private_disk
from tests.engine.child import Child
from tests.engine.numbered import number_of, put_numbers

LITTLE = 20_000  # bytes in memory, so that a few hundred messages flow


def test_a_broker_without_a_directory_flows_to_a_private_folder_that_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with shmq.open(memory="16MiB", disk="1GiB") as broker:
        queue = broker.queue("backlog", max_memory=LITTLE, codec="bytes")
        put_numbers(queue, range(1000))
        assert queue.statistics().flowed
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert [number_of(queue.get(timeout=5.0)) for _ in range(1000)] == list(range(1000))
        put_numbers(queue, range(1000))
    assert not list(tmp_path.iterdir())


def test_a_private_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with shmq.open(memory="16MiB", disk="1GiB") as broker:
        folder = Path(private_disk())
        folder.mkdir()
        folder.chmod(0o755)
        queue = broker.queue("backlog", max_memory=LITTLE, codec="bytes")
        with pytest.raises(PermissionError, match="not a directory of this user alone"):
            put_numbers(queue, range(1000))
        had = queue.qsize()
        folder.chmod(0o700)
        put_numbers(queue, range(had, 1000))
        assert [number_of(queue.get(timeout=5.0)) for _ in range(1000)] == list(range(1000))


def test_what_a_killed_anonymous_broker_has_left_goes_with_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    program = """
import tempfile
tempfile.tempdir = sys.argv[1]
broker = shmq.open(memory="16MiB", disk="1GiB")
queue = broker.queue("backlog", max_memory="64KiB", codec="bytes")
queue.put_many([bytes(100)] * 2000, timeout=5.0)
say("flows")
listen()
"""
    with Child(program, tmp_path) as child:
        assert child.line() == "flows"
        assert len([path for path in tmp_path.rglob("*") if path.is_file()]) > 0
        child.kill()
    with shmq.open(memory="16MiB", disk="1GiB"):
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]
