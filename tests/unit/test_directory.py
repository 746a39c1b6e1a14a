"""A process that opens a directory finds a broker there, or makes one."""

import json
import logging
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from shmq._native import crc32c
from shmq.core import segment
from shmq.engine.directory import ownership
from shmq.engine.directory.broker_directory import BrokerDirectory, open_anonymous
from shmq.engine.directory.orphans import orphans, sweep_orphans
from shmq.errors import (
    BrokerError,
    BrokerNotFound,
    CorruptionError,
    OptionsMismatch,
    VersionMismatch,
)
from shmq.options import BrokerSettings
from shmq.options.value import size_as_text
from tests.support.offspring import eventually
from tests.support.segment_bytes import place_of

MEMORY = 8 << 20
Member = segment.Member


@pytest.fixture
def directory(broker_dir: Path) -> Iterator[BrokerDirectory]:
    yield BrokerDirectory(str(broker_dir))
    name = named(broker_dir)
    if name:
        segment.unlink(name)


def named(path: Path) -> str:
    try:
        content = json.loads((path / "segment").read_bytes())
    except (OSError, ValueError, RecursionError):
        return ""
    return str(content["name"]) if isinstance(content, dict) and "name" in content else ""


def exists(name: str) -> bool:
    return name in segment.list_segments()


def mode_of(path: Path | str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def alter(path: Path, **changes: object) -> None:
    record = path / "segment"
    record.write_text(json.dumps({**json.loads(record.read_bytes()), **changes}))


def write_header(path: Path, field: str, content: bytes) -> None:
    """Changes a constant of a segment's header, and makes its checksum right."""
    with path.open("r+b") as file:
        header = bytearray(file.read(1280))
        at = place_of("segment", field)
        header[at : at + len(content)] = content
        crc, begin = place_of("segment", "header_crc"), place_of("segment", "processes")
        header[crc : crc + 4] = crc32c(header[begin:], crc32c(header[:crc])).to_bytes(4, "little")
        file.seek(0)
        file.write(header)


def test_open_makes_a_private_directory_with_a_segment(directory: BrokerDirectory, broker_dir: Path) -> None:
    """Shows G8."""
    before = os.umask(0o077)
    try:
        member = directory.open(BrokerSettings(memory=MEMORY))
    finally:
        os.umask(before)
    assert mode_of(broker_dir) == 0o700
    assert member.name == named(broker_dir)
    assert member.name.startswith(f"shmq-{os.geteuid()}-")
    assert mode_of(f"/dev/shm/{member.name}") == 0o600
    assert mode_of(broker_dir / "lock") == mode_of(broker_dir / "segment") == 0o600
    header = member.header()
    assert header["path"] == str(broker_dir)
    assert header["memory"] == MEMORY
    assert header["patience_ns"] == 100_000_000
    member.close()
    assert member.closed


def test_a_group_shares_all_files_of_its_broker(directory: BrokerDirectory, broker_dir: Path) -> None:
    before = os.umask(0o077)
    try:
        member = directory.open(BrokerSettings(memory=MEMORY, mode=0o770))
    finally:
        os.umask(before)
    assert mode_of(broker_dir) == 0o770
    for path in (broker_dir / "lock", broker_dir / "segment", Path("/dev/shm", member.name)):
        assert mode_of(path) == 0o660, path
        assert path.stat().st_gid == broker_dir.stat().st_gid
    member.close()


def test_a_second_open_joins_the_same_segment(directory: BrokerDirectory) -> None:
    first = directory.open(BrokerSettings(memory=MEMORY))
    second = directory.open(create=False)
    assert second.name == first.name
    assert second.row != first.row
    assert [row[0] for row in first.processes()] == [first.row, second.row]
    second.close()
    assert [row[0] for row in first.processes()] == [first.row]
    first.close()
    again = directory.open()
    assert again.name == first.name
    again.close()


def test_an_existing_directory_keeps_its_mode(directory: BrokerDirectory, broker_dir: Path) -> None:
    broker_dir.mkdir()
    broker_dir.chmod(0o755)
    member = directory.open(BrokerSettings(memory=MEMORY))
    assert mode_of(broker_dir) == 0o755
    assert mode_of(f"/dev/shm/{member.name}") == 0o600
    member.close()


def test_a_mode_that_is_given_changes_an_existing_directory_without_broker(
    directory: BrokerDirectory, broker_dir: Path
) -> None:
    broker_dir.mkdir(0o700)
    member = directory.open(BrokerSettings(memory=MEMORY, mode=0o770))
    assert mode_of(broker_dir) == 0o770
    assert mode_of(broker_dir / "lock") == 0o660
    member.close()


def test_modes_that_a_broker_cannot_have_are_refused(directory: BrokerDirectory, broker_dir: Path) -> None:
    for mode in (0o777, 0o600, 0o750, 0):
        with pytest.raises(ValueError, match=r"0o770"):
            directory.open(BrokerSettings(memory=MEMORY, mode=mode))
    assert not broker_dir.exists()


def test_nothing_is_made_without_create(directory: BrokerDirectory, broker_dir: Path) -> None:
    with pytest.raises(BrokerNotFound, match="create=True"):
        directory.open(create=False)
    assert not broker_dir.exists()
    broker_dir.mkdir(0o700)
    with pytest.raises(BrokerNotFound, match="'segment'"):
        directory.open(create=False)
    assert not (broker_dir / "segment").exists()


def test_options_that_differ_are_refused_with_both_values(directory: BrokerDirectory) -> None:
    member = directory.open(BrokerSettings(memory=MEMORY + 100, patience=0.25))
    given: list[dict[str, float]] = [{"memory": 2 * MEMORY}, {"patience": 0.5}, {"mode": 0o770}]
    for options, has in zip(given, (size_as_text(MEMORY), "0.25", "0o700"), strict=True):
        with pytest.raises(OptionsMismatch, match=has) as caught:
            directory.open(BrokerSettings(**options))  # type: ignore[arg-type]
        (option,) = options
        assert f"without {option}" in caught.value.remedy
    same = directory.open(BrokerSettings(memory=MEMORY + 200, patience=0.25, mode=0o700))
    same.close()
    member.close()


def test_a_size_that_no_segment_can_have_makes_none(directory: BrokerDirectory, broker_dir: Path) -> None:
    with pytest.raises(BrokerError, match="allowed are"):
        directory.open(BrokerSettings(memory=4096))
    assert not (broker_dir / "segment").exists()


def test_a_lost_segment_is_made_anew_and_logged(
    directory: BrokerDirectory, broker_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lost = directory.open(BrokerSettings(memory=MEMORY, patience=0.3))
    lost.close()
    segment.unlink(lost.name)
    with caplog.at_level(logging.WARNING, "shmq.broker"):
        member = directory.open(create=False)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "its messages are gone" in caplog.text
    assert member.name not in ("", lost.name)
    assert member.name == named(broker_dir)
    header = member.header()
    assert (header["memory"], header["patience_ns"]) == (MEMORY, 300_000_000)
    member.close()


@pytest.mark.parametrize("used", [True, False])
def test_a_segment_that_is_there_is_of_this_boot_whatever_id_its_maker_saw(
    directory: BrokerDirectory, used: bool
) -> None:
    """A tmpfs outlives no boot, and a container may have an id of its own. Shows G8."""
    first = directory.open(BrokerSettings(memory=MEMORY))
    write_header(Path("/dev/shm", first.name), "boot_id", uuid4().bytes)
    if not used:
        first.close()
    second = directory.open()
    assert second.name == first.name
    second.close()
    first.close()


def test_where_shared_memory_is_on_a_disk_no_broker_is_made(
    directory: BrokerDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "filesystem_type", lambda descriptor: 0xEF53)
    with pytest.raises(BrokerError, match=r"/dev/shm is not shared memory.*0xef53.*mount a tmpfs"):
        directory.open(BrokerSettings(memory=MEMORY))


def test_of_the_boot_the_segment_is_believed_and_not_the_record(directory: BrokerDirectory, broker_dir: Path) -> None:
    first = directory.open(BrokerSettings(memory=MEMORY))
    alter(broker_dir, boot_id=str(uuid4()))
    second = directory.open()
    assert second.name == first.name
    second.close()
    first.close()


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\0" * 100, b"{", b"[]", b"[" * 4000, b"x" * 5000, b'{"format": 2}', b'{"format": 2, "name": 7}'],
    ids=["empty", "zeros", "torn", "list", "deep", "long", "bare", "types"],
)
def test_garbage_in_place_of_the_record_is_corruption(
    directory: BrokerDirectory, broker_dir: Path, garbage: bytes
) -> None:
    broker_dir.mkdir(0o700)
    (broker_dir / "segment").write_bytes(garbage)
    with pytest.raises(CorruptionError) as caught:
        directory.open(BrokerSettings(memory=MEMORY))
    assert caught.value.filename == str(broker_dir / "segment")
    assert caught.value.remedy
    assert (broker_dir / "segment").read_bytes() == garbage


def test_a_record_that_names_another_file_is_corruption(directory: BrokerDirectory, broker_dir: Path) -> None:
    member = directory.open(BrokerSettings(memory=MEMORY))
    member.close()
    for name in ("../../etc/passwd", "sem.other", f"shmq-0-{uuid4().hex}"):
        alter(broker_dir, name=name)
        with pytest.raises(CorruptionError):
            directory.open()
    alter(broker_dir, name=member.name)
    directory.open().close()


def test_a_record_of_another_format_is_left_alone(directory: BrokerDirectory, broker_dir: Path) -> None:
    member = directory.open(BrokerSettings(memory=MEMORY))
    member.close()
    alter(broker_dir, format=99)
    content = (broker_dir / "segment").read_bytes()
    with pytest.raises(VersionMismatch, match="format"):
        directory.open()
    assert (broker_dir / "segment").read_bytes() == content
    assert exists(member.name)


def test_a_directory_that_everybody_may_change_is_refused(directory: BrokerDirectory, broker_dir: Path) -> None:
    """Shows G8."""
    broker_dir.mkdir()
    broker_dir.chmod(0o777)
    with pytest.raises(PermissionError, match="0o777"):
        directory.open(BrokerSettings(memory=MEMORY))
    assert list(broker_dir.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_another_users_directory_is_refused_before_anything_is_opened(
    directory: BrokerDirectory, broker_dir: Path
) -> None:
    broker_dir.mkdir(0o700)
    os.chown(broker_dir, 12345, 12345)
    with pytest.raises(PermissionError, match=r"12345.*0o700.*mode=0o770"):
        directory.open(BrokerSettings(memory=MEMORY))
    assert list(broker_dir.iterdir()) == []
    # A group of ours makes the difference.
    broker_dir.chmod(0o770)
    os.chown(broker_dir, 12345, os.getegid())
    directory.open(BrokerSettings(memory=MEMORY)).close()


def test_a_remote_file_system_is_refused(
    directory: BrokerDirectory, broker_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "filesystem_type", lambda fd: 0x6969)
    with pytest.raises(BrokerError, match="NFS"):
        directory.open(BrokerSettings(memory=MEMORY))
    assert list(broker_dir.iterdir()) == []


def test_a_link_in_place_of_the_record_is_not_followed(
    directory: BrokerDirectory, broker_dir: Path, tmp_path: Path
) -> None:
    directory.open(BrokerSettings(memory=MEMORY)).close()
    (broker_dir / "segment").rename(tmp_path / "elsewhere")
    (broker_dir / "segment").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorruptionError, match="not a regular file"):
        directory.open()


def test_a_deleted_directory_ends_its_broker(directory: BrokerDirectory, broker_dir: Path) -> None:
    member = directory.open(BrokerSettings(memory=MEMORY))
    assert not member.gone()
    shutil.rmtree(broker_dir)
    assert member.gone()
    other = directory.open(BrokerSettings(memory=MEMORY))
    assert other.name != member.name
    assert not other.gone()
    member.close()
    assert not exists(member.name)
    other.close()


def test_an_anonymous_segment_goes_with_its_last_member() -> None:
    first = open_anonymous(BrokerSettings(memory=MEMORY))
    second = segment.attach(first.name)  # anonymous
    first.close()
    assert exists(second.name)
    second.close()
    assert not exists(second.name)
    with pytest.raises(BrokerNotFound):
        segment.attach(first.name)


def make_unnamed(broker_dir: Path) -> str:
    """A segment as a death leaves it between the two steps of creation."""
    found = broker_dir.stat()
    return segment.create(
        uuid4(),
        memory=MEMORY,
        patience=0.1,
        mode=0o600,
        path=str(broker_dir),
        directory=(found.st_dev, found.st_ino, bytes(16)),
    )


def test_sweeping_takes_what_no_directory_names_and_nothing_else(directory: BrokerDirectory, broker_dir: Path) -> None:
    rests = directory.open(BrokerSettings(memory=MEMORY))
    rests.close()
    used = open_anonymous(BrokerSettings(memory=MEMORY))
    unnamed = make_unnamed(broker_dir)
    anonymous = segment.create(uuid4(), memory=MEMORY, patience=0.1, mode=0o600)
    listed: set[str] = set()

    def are_listed() -> bool:
        """Others that open brokers at the same time sweep, too: listed, gone already, or just being looked at."""
        listed.update(identity.name for identity in orphans())
        return {unnamed, anonymous} <= listed | ({unnamed, anonymous} - set(segment.list_segments()))

    eventually(are_listed, "both are listed or gone")
    assert not {rests.name, used.name} & listed
    sweep_orphans()
    # At once, or by another sweeper that has one in hand at this moment.
    eventually(lambda: not exists(unnamed) and not exists(anonymous), "both gone")
    assert exists(rests.name)
    assert exists(used.name)
    used.close()


def test_a_directory_that_is_not_there_proves_nothing(directory: BrokerDirectory, broker_dir: Path) -> None:
    member = directory.open(BrokerSettings(memory=MEMORY))
    member.close()
    away = broker_dir.with_name("away")
    broker_dir.rename(away)
    assert member.name not in {identity.name for identity in orphans()}
    broker_dir.mkdir(0o700)  # another one under the same path
    assert member.name not in {identity.name for identity in orphans()}
    sweep_orphans()
    assert exists(member.name)
    broker_dir.rmdir()
    away.rename(broker_dir)
    again = directory.open()
    assert again.name == member.name
    again.close()


def test_a_failed_record_leaves_no_segment(
    directory: BrokerDirectory, broker_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    created: list[str] = []
    create = segment.create

    def remember(*arguments: object, **options: object) -> str:
        created.append(create(*arguments, **options))  # type: ignore[arg-type]
        return created[-1]

    monkeypatch.setattr(segment, "create", remember)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        directory.open(BrokerSettings(memory=MEMORY))
    assert len(created) == 1
    assert not exists(created[0])
    monkeypatch.undo()
    directory.open(BrokerSettings(memory=MEMORY)).close()
