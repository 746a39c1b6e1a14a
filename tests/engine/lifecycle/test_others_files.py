"""Files of others in a broker's directory: shmq removes none of them, writes over none and locks none. Shows G8."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import shmq
from shmq.engine.directory.removal import destroy, discard_unusable
from tests.engine.conftest import MEMORY

MINE = "my own data"


def write(path: Path, text: str = MINE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def found(directory: Path) -> dict[str, str]:
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}


NO_BROKERS: dict[str, Callable[[Path], object]] = {
    "segment is a folder": lambda folder: write(folder / "segment" / "f"),
    "segment is an empty folder": lambda folder: (folder / "segment").mkdir(),
    "segment is a text": lambda folder: write(folder / "segment"),
    "segment is empty": lambda folder: write(folder / "segment", ""),
    "segment is of JSON": lambda folder: write(folder / "segment", '{"name": "x"}'),
    "segment has a format": lambda folder: write(folder / "segment", '{"format": 3, "name": "x"}'),
    "segment is a link": lambda folder: (folder / "segment").symlink_to(folder / "disk" / "precious"),
    "segment.new is a text": lambda folder: write(folder / "segment.new"),
    "there is no segment": lambda folder: None,
}


@pytest.mark.parametrize("kind", sorted(NO_BROKERS))
def test_a_directory_whose_record_is_none_is_not_destroyed(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "folder"
    for name in ("lock", "disk/precious", "disk/shmq-0-" + 32 * "0" + "/precious", "lock.new"):
        write(folder / name)
    NO_BROKERS[kind](folder)
    folder.chmod(0o700)
    before, names = found(folder), sorted(os.listdir(folder))
    for call in (destroy, discard_unusable, lambda path: shmq.open(path, create=False).close()):
        try:
            call(str(folder))
        except shmq.ShmqError as error:
            print(error)
        assert found(folder) == before
        assert sorted(os.listdir(folder)) == names
    with pytest.raises(shmq.ShmqError):
        destroy(str(folder))


def test_open_writes_into_no_lock_and_no_draft_of_somebody_else(broker_dir: Path) -> None:
    for name in ("lock", "segment.new"):
        write(broker_dir / name)
        broker_dir.chmod(0o700)
        with pytest.raises(shmq.BrokerError, match=rf"{name}.*move it elsewhere"):
            shmq.open(broker_dir, memory=MEMORY)
        assert (broker_dir / name).read_text() == MINE
        (broker_dir / name).unlink()
    shmq.open(broker_dir, memory=MEMORY).delete()


@pytest.mark.parametrize("how", ["delete", "destroy", "destroy by force"])
def test_of_a_broker_only_what_it_has_made_is_deleted(broker_dir: Path, how: str) -> None:
    with shmq.open(broker_dir, memory=MEMORY, disk="8MiB") as broker:
        queue = broker.queue("jobs", codec="bytes", max_memory=1000)
        queue.put_many([bytes(100)] * 3000)
        assert queue.statistics().flowed
        (rows,) = (broker_dir / "disk").glob("*/*")
        names = ("disk/precious", "disk/shmq-0-mine/f", "lock.new", f"{rows.parent}/notes", f"{rows}/0000.bak", "more")
        for name in names:
            write(broker_dir / name)
        (broker_dir / "disk" / "link").symlink_to(broker_dir / "more")
        if how == "delete":
            broker.delete()
    if how != "delete":
        destroy(str(broker_dir), force="force" in how)
    left = found(broker_dir)
    assert set(left.values()) == {MINE}
    assert len(left) == len(names) + 1  # and what the link leads to


def test_a_queue_that_is_deleted_leaves_other_files_beside_its_rows(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory=MEMORY, disk="8MiB") as broker:
        queue = broker.queue("jobs", codec="bytes", max_memory=1000)
        queue.put_many([bytes(100)] * 3000)
        (rows,) = (broker_dir / "disk").glob("*/*")
        write(rows / "notes")
        write(rows.parent / f"{rows.name.partition('.')[0]}.99old" / ("0" * 16))
        queue.delete()
        del queue
        broker.queue("jobs", codec="bytes", max_memory=1000).put_many([bytes(100)] * 3000)
        kept = [
            path.name
            for path in (broker_dir / "disk").rglob("*")
            if path.is_file() and path.read_bytes() == MINE.encode()
        ]
        assert sorted(kept) == ["0" * 16, "notes"]
        broker.delete()
