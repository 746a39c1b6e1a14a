"""A member of a group can harm the files of the broker that its owner shares with it, and nothing else. Shows G8."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import shmq
from shmq.core import segment
from tests.engine.conftest import MEMORY
from tests.support.users import GROUP, OTHER, OWN_GROUP, as_user, needs_root

pytestmark = needs_root
SHM = Path("/dev/shm")
HEADER_BYTES = 4096


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that other users may enter, which those of pytest are not."""
    path = Path(tempfile.mkdtemp(prefix="shmq-users-", dir="/tmp"))
    path.chmod(0o711)
    yield path
    for name in segment.list_segments():  # a record that a test rewrote does not say what its directory has made
        with suppress(OSError), (SHM / name).open("rb") as file:  # as bytes: root may not look at another user's
            if f"{path}/".encode() in file.read(HEADER_BYTES):
                (SHM / name).unlink()
    shutil.rmtree(path)


@pytest.fixture
def private(place: Path) -> Path:
    """The owner's own broker, with a message in it; nobody is in it."""
    path = place / "private"
    with shmq.open(path, memory=MEMORY) as broker:
        broker.queue("secrets").put("the owner's")
    return path


@pytest.fixture
def shared(place: Path) -> Path:
    """A directory that the owner shares with a group, without a broker yet."""
    path = place / "shared"
    path.mkdir(0o700)
    os.chown(path, -1, GROUP)
    path.chmod(0o770)
    return path


@pytest.fixture
def broker_of_all(shared: Path) -> Path:
    with shmq.open(shared, memory=MEMORY) as broker:
        broker.queue("secrets").put("everybody's")
    return shared


def record_of(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((path / "segment").read_text())
    return content


def rewrite(path: Path, **changes: object) -> None:
    """As a member of the group: the file is replaced, so that it is his."""
    content = {**record_of(path), **changes}

    def work() -> None:
        (path / "new").write_text(json.dumps(content))
        (path / "new").chmod(0o660)
        (path / "new").rename(path / "segment")

    as_user(work, GROUP)


def is_untouched(private: Path) -> bool:
    with shmq.open(private, create=False) as broker:
        queue = broker.queue("secrets", create=False)
        return [m.body for m in queue.browse()] == ["the owner's"]


def calls(path: Path) -> dict[str, Callable[[], Any]]:
    def command(*arguments: str) -> None:
        command = [sys.executable, "-m", "shmq", "-d", str(path), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        print(arguments, done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        assert "secrets" not in done.stdout + done.stderr, "it has looked into the private broker"

    return {
        "open": lambda: shmq.open(path).close(),
        "open without create": lambda: shmq.open(path, create=False).close(),
        "gc": lambda: command("gc"),
        "gc --discard": lambda: command("gc", "--discard", "--yes"),
        "check": lambda: command("check"),
        "doctor": lambda: command("doctor"),
        "destroy": lambda: command("destroy", "--yes"),
        "destroy by force": lambda: command("destroy", "--yes", "--force"),
    }


CALLS = sorted(calls(Path()))


@pytest.mark.parametrize("what", CALLS)
@pytest.mark.parametrize("boot", ["this", "another"])
@pytest.mark.parametrize("uuid", ["of the shared one", "guessed"])
def test_a_record_that_names_a_private_segment_joins_nothing_and_removes_nothing(
    private: Path, broker_of_all: Path, what: str, boot: str, uuid: str
) -> None:
    """The names of all segments are there for everybody to list."""
    name = record_of(private)["name"]
    changes = {"name": name, "uuid": name.rpartition("-")[2]}
    if boot == "another":
        changes["boot_id"] = str(uuid4())
    if uuid == "guessed":
        changes["directory"] = str(uuid4())
    rewrite(broker_of_all, **changes)
    if what.startswith("open"):
        with pytest.raises(shmq.BrokerError, match=r"another broker.*shmq destroy"):
            calls(broker_of_all)[what]()
    else:
        calls(broker_of_all)[what]()
    assert is_untouched(private)


@pytest.mark.parametrize("damage", ["version", "crc", "magic"])
def test_a_private_segment_that_cannot_be_opened_is_not_removed_for_another_directory(
    private: Path, broker_of_all: Path, damage: str
) -> None:
    name = record_of(private)["name"]
    rewrite(broker_of_all, name=name, uuid=name.rpartition("-")[2])
    at = {"magic": 0, "version": 8, "crc": 120}[damage]
    with (SHM / name).open("r+b") as file:
        file.seek(at)
        good = file.read(4)
        file.seek(at)
        file.write(b"\xee" * 4)
    calls(broker_of_all)["gc --discard"]()
    with (SHM / name).open("r+b") as file:
        file.seek(at)
        file.write(good)
    assert is_untouched(private)


def test_a_record_of_a_forged_mode_opens_nothing_to_everybody(broker_of_all: Path) -> None:
    (SHM / record_of(broker_of_all)["name"]).unlink()
    rewrite(broker_of_all, mode="0777")
    with pytest.raises(shmq.CorruptionError, match="mode 0o777"):
        shmq.open(broker_of_all)


@pytest.mark.parametrize("name", ["segment", "lock"])
@pytest.mark.parametrize("kind", ["symlink", "hardlink", "fifo", "socket", "directory", "huge"])
@pytest.mark.parametrize("mode", [None, 0o770])
def test_nothing_in_place_of_a_file_is_followed_waited_for_or_given_other_rights(
    place: Path, shared: Path, name: str, kind: str, mode: int | None
) -> None:
    secret = place / "secret"
    secret.touch(0o600)
    if kind == "hardlink":
        secret.chmod(0o666)  # where the kernel protects links, he needs this right to make one
        os.chown(secret, -1, GROUP)

    def work() -> None:
        import socket

        path = shared / name
        match kind:
            case "symlink":
                path.symlink_to(secret)
            case "hardlink":
                os.link(secret, path)
            case "fifo":
                os.mkfifo(path)
            case "socket":
                with socket.socket(socket.AF_UNIX) as made:
                    made.bind(str(path))
            case "directory":
                path.mkdir()
            case "huge":
                with path.open("wb") as file:
                    file.truncate(1 << 40)
        if kind != "symlink":
            path.chmod(0o666) if os.stat(path).st_uid == os.geteuid() else None

    place.chmod(0o733)  # only for a link to be made from it
    as_user(work, GROUP)
    place.chmod(0o711)
    secret.chmod(0o600)
    os.chown(secret, -1, 0)

    def open_and_close() -> str:
        try:
            shmq.open(shared, memory=MEMORY, mode=mode).close()
        except shmq.ShmqError as error:
            return f"{type(error).__name__}: {error}"
        return ""

    said = as_user(open_and_close, 0, uid=0)  # in a child with a time limit
    found = secret.stat()
    assert (stat.S_IMODE(found.st_mode), found.st_gid, found.st_size) == (0o600, 0, 0)
    if name == "segment":
        assert "CorruptionError" in said
    elif kind == "hardlink":
        assert said == ""
    elif kind == "huge":
        assert "the file 'lock' of the broker is not shmq's" in said
    else:
        assert "'lock'" in said
        assert "remove it" in said


def test_a_moved_directory_keeps_its_broker_and_a_copy_is_refused(place: Path, private: Path) -> None:
    copy, moved = place / "copy", place / "moved"
    subprocess.run(["cp", "-a", private, copy], check=True)
    for create in (True, False):
        with pytest.raises(shmq.BrokerError, match=r"belongs to another broker.*copy"):
            shmq.open(copy, create=create)
    assert is_untouched(private)
    private.rename(moved)
    assert is_untouched(moved)
    moved.rename(private)
    assert is_untouched(private)


def test_a_directory_that_is_mounted_elsewhere_is_the_same(
    place: Path, private: Path, tool: Callable[[str], str]
) -> None:
    tool("unshare")
    mounted = place / "mounted"
    mounted.mkdir()
    script = f"""
import shmq
with shmq.open({str(mounted)!r}, create=False) as broker:
    print(broker.queue("secrets", create=False).get(timeout=0))
"""
    shell = f'mount --bind {private} {mounted} && exec "$@"'
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("this user may not make mounts")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", shell, "sh", sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "the owner's\n", done.stderr


def test_a_directory_and_a_segment_that_are_not_shared_alike_are_refused(private: Path, broker_of_all: Path) -> None:
    private.chmod(0o770)
    with pytest.raises(PermissionError, match=r"not shared as its directory is.*chgrp"):
        shmq.open(private)
    private.chmod(0o700)
    assert is_untouched(private)
    broker_of_all.chmod(0o700)
    with pytest.raises(PermissionError, match=r"not shared as its directory is.*chmod 0600"):
        shmq.open(broker_of_all)


def test_a_segment_of_a_directory_is_not_opened_by_its_name(private: Path) -> None:
    with pytest.raises(shmq.BrokerError, match="open the directory of its broker"):
        shmq.open(f"shmq://{SHM}/{record_of(private)['name']}")
    assert is_untouched(private)


def test_a_file_of_another_user_under_our_name_is_not_looked_at_by_a_sweep(place: Path, private: Path) -> None:
    """The other user would have written what its header says of its directory."""
    from shmq.engine.directory.orphans import orphans, sweep_orphans

    name = f"shmq-0-{uuid4().hex}"
    bait = SHM / name
    copy = SHM / f"copy-{name}"
    try:
        with shmq.open(memory=MEMORY) as anonymous:
            shutil.copyfile(anonymous.url.removeprefix("shmq://"), copy)
        os.chown(copy, 65534, os.getegid())
        copy.chmod(0o660)  # by its group it would be ours to open
        copy.rename(bait)
        assert segment.inspect(name).anonymous, "it looks like an orphan"
        assert name not in {identity.name for identity in orphans()}
        sweep_orphans()
        bait.unlink()
    finally:
        copy.unlink(missing_ok=True)
        bait.unlink(missing_ok=True)


def test_others_are_told_whose_a_broker_is_whatever_they_ask(private: Path, shared: Path) -> None:
    from shmq.cli.check import examine
    from shmq.engine.directory.removal import destroy

    shmq.open(shared, memory=MEMORY).close()
    for path in (private, shared):
        for call in (examine, destroy, shmq.open):

            def told(path: Path = path, call: Callable[[str], Any] = call) -> str:
                try:
                    call(str(path))
                except OSError as error:
                    return f"{type(error).__name__} {error}"
                return ""

            said = as_user(told, GROUP + 1)
            assert said.startswith("PermissionError")
            assert "another user's: owner root" in said
            assert "newgrp" in said
    assert is_untouched(private)


def test_root_may_check_a_broker_of_another_user_and_is_told_how_to_do_the_rest(place: Path) -> None:
    from shmq.cli.check import examine
    from shmq.engine.directory.removal import destroy

    path = place / "service"
    path.mkdir(0o700)
    os.chown(path, 65534, GROUP)
    place.chmod(0o711)

    def make() -> None:
        with shmq.open(path, memory=MEMORY) as broker:
            broker.queue("jobs").put("theirs")

    as_user(make, GROUP)
    report = examine(str(path))
    assert (report.findings, report.messages) == ([], 1)
    for call in (shmq.open, destroy):
        with pytest.raises(PermissionError, match=r"we are root.*runuser -u .*; shmq check needs the right to read"):
            call(str(path))


def test_a_directory_that_keeps_us_out_is_named_and_not_taken_for_an_empty_place(place: Path) -> None:
    from shmq.cli.check import examine
    from shmq.engine.directory.orphans import orphans
    from shmq.engine.directory.removal import destroy

    door = place / "door"
    path = door / "broker"
    path.mkdir(parents=True)
    os.chown(path, OTHER, OWN_GROUP)
    door.chmod(0o711)
    as_user(lambda: shmq.open(path, memory=MEMORY).close())
    door.chmod(0o700)

    def looked() -> list[str]:
        told = []
        for call in (shmq.open, partial(shmq.open, create=False), examine, destroy):
            with pytest.raises(PermissionError) as refused:
                call(str(path))
            told.append(str(refused.value))
        return told

    for said in as_user(looked):
        assert "we may not look whether a broker is there" in said
        assert f"{door} is closed to us: owner root" in said
        assert f"chmod o+x {door}" in said
    gone = as_user(lambda: [identity.path for identity in orphans(deleted=True)])
    assert str(path) not in gone, "nobody can say that it is gone"
    door.chmod(0o711)
    as_user(lambda: destroy(str(path)))
    assert not list(path.iterdir()), "its owner may not remove the directory from the one above"
