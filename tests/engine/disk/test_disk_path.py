"""Where a broker's messages lie that flow to disk."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import shmq
from shmq.engine.directory.disk import private_disk
from shmq.engine.directory.removal import destroy
from tests.engine.numbered import number_of, put_numbers
from tests.support.offspring import Offspring, Say
from tests.support.users import OTHER, needs_root

LITTLE = 20_000  # bytes in memory, so that a few hundred messages flow
MANY = range(2000)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "elsewhere"
    place.mkdir()
    yield place
    shutil.rmtree(place)


def segment_of(broker_dir: Path) -> str:
    name = json.loads((broker_dir / "segment").read_text())["name"]
    assert isinstance(name, str)
    return name


def files(place: Path) -> list[Path]:
    return [path for path in place.rglob("*") if path.is_file()]


def backlog(broker: shmq.Broker) -> shmq.Queue[bytes]:
    queue = broker.queue("backlog", codec="bytes", max_memory=LITTLE)
    put_numbers(queue, MANY)
    assert queue.statistics().flowed
    return queue


def take_all(queue: shmq.Queue[bytes]) -> None:
    assert [number_of(queue.get(timeout=5.0)) for _ in MANY] == list(MANY)


def test_a_broker_has_its_messages_on_disk_in_a_folder_of_its_own_where_disk_path_says(
    broker_dir: Path, elsewhere: Path
) -> None:
    """Shows S194."""
    (elsewhere / "notes.txt").write_text("another's")
    with shmq.open(broker_dir, memory="16MiB", disk_path=elsewhere) as broker:
        queue = backlog(broker)
        (folder,) = elsewhere.glob("shmq-*")
        assert len(files(folder)) == len(files(elsewhere)) - 1 > 0
        assert os.readlink(broker_dir / "disk") == str(folder)
        assert broker.statistics().disk_used >= sum(path.stat().st_size for path in files(folder)) > 0
        assert folder.stat().st_mode & 0o777 == 0o700
        with shmq.open(broker_dir) as again, shmq.open(str(broker_dir), disk_path=str(elsewhere)):
            take_all(again.queue("backlog"))
        assert queue.statistics().ready == 0
        assert files(folder) == []
    destroy(str(broker_dir))
    assert files(elsewhere) == [elsewhere / "notes.txt"]
    assert list(elsewhere.iterdir()) == [elsewhere / "notes.txt"]
    assert not broker_dir.exists()


def test_messages_that_a_lost_segment_has_left_there_are_swept(broker_dir: Path, elsewhere: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB", disk_path=elsewhere) as broker:
        backlog(broker)
        name = segment_of(broker_dir)
    assert files(elsewhere) != []
    os.unlink(f"/dev/shm/{name}")
    with shmq.open(broker_dir) as broker:
        assert files(elsewhere) == []
        take_all(backlog(broker))
    destroy(str(broker_dir))


def test_a_broker_has_the_disk_path_with_which_it_was_made(broker_dir: Path, elsewhere: Path, tmp_path: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB"):
        pass
    with pytest.raises(shmq.OptionsMismatch, match="has another disk_path"):
        shmq.open(broker_dir, disk_path=elsewhere)
    with shmq.open(broker_dir, disk_path=broker_dir):
        pass
    with pytest.raises(ValueError, match="is no directory; make it, or mount its file system"):
        shmq.open(tmp_path / "other.shmq", disk_path=tmp_path / "missing")
    with pytest.raises(ValueError, match="beside disk=0"):
        shmq.open(tmp_path / "other.shmq", disk_path=elsewhere, disk=0)
    with pytest.raises(TypeError, match="is of the type int; give a path"):
        shmq.open(tmp_path / "other.shmq", disk_path=3)  # type: ignore[arg-type]
    assert not (tmp_path / "other.shmq").exists()
    destroy(str(broker_dir))


def test_a_path_where_no_folder_can_be_made_is_named_and_leaves_no_broker(broker_dir: Path) -> None:
    with pytest.raises(shmq.BrokerError, match="messages on disk cannot lie where disk_path= says"):
        shmq.open(broker_dir, memory="16MiB", disk_path="/proc/self")
    assert not os.path.lexists(broker_dir / "disk")
    with shmq.open(broker_dir, memory="16MiB") as broker:
        take_all(backlog(broker))
    destroy(str(broker_dir))


def test_a_folder_that_has_gone_is_made_again_when_the_broker_is(broker_dir: Path, elsewhere: Path) -> None:
    """As after a reboot, on a disk that it empties."""
    with shmq.open(broker_dir, memory="16MiB", disk_path=elsewhere) as broker:
        name = segment_of(broker_dir)
    (folder,) = elsewhere.glob("shmq-*")
    shutil.rmtree(folder)
    os.unlink(f"/dev/shm/{name}")
    with shmq.open(broker_dir) as broker:
        take_all(backlog(broker))
    destroy(str(broker_dir))


@needs_root
def test_a_folder_that_another_user_has_put_in_its_place_is_refused(broker_dir: Path, elsewhere: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB", disk_path=elsewhere):
        name = segment_of(broker_dir)
    (folder,) = elsewhere.glob("shmq-*")
    os.chown(folder, OTHER, -1)
    os.unlink(f"/dev/shm/{name}")
    with pytest.raises(shmq.BrokerError, match=r"not of this broker's users: user 65534, .*; remove it"):
        shmq.open(broker_dir)
    folder.rmdir()
    with shmq.open(broker_dir) as broker:
        take_all(backlog(broker))
    destroy(str(broker_dir))


def test_a_link_that_a_death_has_left_before_the_broker_was_made_counts_for_nothing(
    broker_dir: Path, elsewhere: Path
) -> None:
    broker_dir.mkdir(mode=0o700)
    (elsewhere / "shmq-left").mkdir()
    (broker_dir / "disk").symlink_to(elsewhere / "shmq-left")
    with shmq.open(broker_dir, memory="16MiB") as broker:
        take_all(backlog(broker))
        assert not (broker_dir / "disk").is_symlink()
    assert list(elsewhere.iterdir()) == []
    destroy(str(broker_dir))


def test_the_disk_path_of_a_broker_whose_record_is_lost_is_compared_too(
    broker_dir: Path, elsewhere: Path, tmp_path: Path
) -> None:
    with shmq.open(broker_dir, memory="16MiB", disk_path=elsewhere):
        name = segment_of(broker_dir)
        os.unlink(broker_dir / "segment")
        with pytest.raises(shmq.OptionsMismatch, match="has another disk_path"):
            shmq.open(broker_dir, disk_path=tmp_path)
        with shmq.open(broker_dir, disk_path=elsewhere):
            assert segment_of(broker_dir) == name
    destroy(str(broker_dir))


def _fill_anonymous(place: str, say: Say) -> None:
    with shmq.open(memory="16MiB", disk_path=place) as broker:
        backlog(broker)
        say(len(files(Path(place))))
        signal.pause()


def test_an_anonymous_broker_uses_it_too_and_what_a_killed_one_left_goes_with_the_next(elsewhere: Path) -> None:
    with Offspring(_fill_anonymous, str(elsewhere)) as child:
        assert int(child.line()) > 0
        child.kill()
    assert files(elsewhere) != []
    with shmq.open(memory="16MiB", disk_path=elsewhere) as broker:
        assert files(elsewhere) == []
        take_all(backlog(broker))
        assert Path(private_disk(str(elsewhere))).is_dir()
    assert list(elsewhere.iterdir()) == []
