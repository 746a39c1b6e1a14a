"""check, gc and doctor: damage is found, leftovers go, and nothing that is in use is touched."""

import contextlib
import fcntl
import json
import mmap
import os
import re
import secrets
import shutil
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import shmq
import shmq._native
from shmq.engine.directory.drafts import drafts
from tests.cli.shell import Shell, end


def segment_of(directory: Path) -> Path:
    return Path("/dev/shm", json.loads((directory / "segment").read_text())["name"])


def sees_only(segment: Path) -> list[str]:
    """The command in a world with one segment: --discard must not reach those of other tests and other people."""
    source = "import sys, shmq.core.segment as s; name = sys.argv[1]; s.list_segments = lambda: [name]\n"
    source += "from shmq.cli.main import main; main(sys.argv[2:])"
    return [sys.executable, "-c", source, segment.name]


@contextmanager
def kept_inodes(*directories: Path) -> Iterator[None]:
    """Deleted within, they are gone, and no new directory gets their inodes: its broker would sweep the segments."""
    opened = [os.open(path, os.O_RDONLY | os.O_DIRECTORY) for path in directories]
    segments = [segment_of(path) for path in directories]
    try:
        yield
    finally:
        for descriptor in opened:
            os.close(descriptor)
        for segment in segments:
            segment.unlink(missing_ok=True)


def test_a_sound_broker_is_called_sound_also_while_it_is_used(shell: Shell) -> None:
    shell("put", "orders", "-", "--lines", given="x\n" * 500)
    report = shell("check", "--json").json
    assert report["findings"] == []
    assert (report["queues"], report["messages"]) == (1, 500)
    using = shell.start("get", "orders", "--follow")
    try:
        assert using.stdout is not None
        assert using.stdout.readline() == "x\n"
        assert shell("check").out.endswith(": sound\n")
    finally:
        end(using)


def damage_the_slot_of(directory: Path, body: bytes) -> None:
    with segment_of(directory).open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        at = memory.find(body)
        assert at > 0
        slot = at - shmq._native.SLOT_HEADER
        word = int.from_bytes(memory[slot : slot + 8], "little")
        memory[slot : slot + 8] = (word | 0xF).to_bytes(8, "little")  # a state that there is not


def test_check_names_the_level_of_a_queue_with_priorities(shell: Shell) -> None:
    shell("declare", "orders", "priorities=3")
    shell("put", "orders", "high", "--priority", "9")
    shell("put", "orders", "low", "--priority", "0")
    shell("put", "orders", "where is this message?", "--priority", "0")
    assert shell("check").out.endswith("1 queue, 3 messages (3 verified): sound\n")
    damage_the_slot_of(shell.directory, b"where is this message?")
    outcome = shell("check", expected=1)
    assert "queue 'orders', level 2, slot 1: the slot is in a state that this version does not know" in outcome.out
    finding = shell("check", "--json", expected=1).json["findings"][0]
    assert (finding["level"], finding["slot"]) == (2, 1)


def test_check_finds_a_slot_that_makes_no_sense(shell: Shell) -> None:
    """Shows G7."""
    shell("put", "orders", "where is this message?")
    damage_the_slot_of(shell.directory, b"where is this message?")
    outcome = shell("check", expected=1)
    assert "queue 'orders', slot 0: the slot is in a state that this version does not know" in outcome.out
    report = shell("check", "--json", expected=1).json
    assert report["findings"][0]["place"] == "queue 'orders'"


def test_check_says_that_a_segment_is_lost_and_makes_no_new_one(shell: Shell) -> None:
    segment = segment_of(shell.directory)
    segment.unlink()
    record = (shell.directory / "segment").read_bytes()
    assert "its segment is lost" in shell("check", expected=1).out
    assert (shell.directory / "segment").read_bytes() == record


def test_check_reports_a_damaged_record(shell: Shell) -> None:
    segment = segment_of(shell.directory)
    try:
        (shell.directory / "segment").write_text("garbage")
        assert "damaged" in shell("check", "--json", expected=1).json["findings"][0]["fault"]
        assert shell("ls", expected=1).words.startswith("damage: ")
    finally:
        segment.unlink()


def test_gc_removes_the_segment_of_a_directory_that_is_gone_only_when_told_so(shell: Shell) -> None:
    segment = segment_of(shell.directory)
    del shell.environment["SHMQ_DIR"]
    with kept_inodes(shell.directory):
        shutil.rmtree(shell.directory)
        only = sees_only(segment)
        kept = shell("gc", "--json", program=only).json["kept"]
        assert [identity["name"] for identity in kept] == [segment.name]
        assert "--discard" in shell("gc", program=only).words
        assert segment.exists()
        removed = shell("gc", "--discard", "--yes", "--json", program=only).json["removed"]
        assert [identity["name"] for identity in removed] == [segment.name]
        assert not segment.exists()


@pytest.mark.parametrize("command", [["gc", "--discard", "--yes"], ["ls"], ["check"]])
@pytest.mark.parametrize("before", [True, False])
def test_an_empty_name_is_no_directory(shell: Shell, command: list[str], before: bool) -> None:
    """As `-d "$UNSET"`: it means that one broker, not none."""
    named = ["-d", ""]
    refused = shell(*named, *command, expected=2) if before else shell(*command, *named, expected=2)
    assert "-d '': the directory is empty" in refused.words


def test_gc_of_a_directory_touches_nothing_else(shell: Shell, tmp_path: Path) -> None:
    """No world of its own: whatever else is in /dev/shm must stay by itself. Shows G8."""
    deleted, other, moved, away = (tmp_path / name for name in ("deleted", "other", "moved", "away"))
    for path in (deleted, other, moved):
        shell("-d", str(path), "init", "--memory", "8MiB")
        shell("-d", str(path), "put", "orders", "x")
    theirs, others = segment_of(deleted), segment_of(other)
    with kept_inodes(deleted, other, moved):
        shutil.rmtree(deleted)
        shutil.rmtree(other)
        moved.rename(away)
        outcome = shell("-d", str(deleted), "gc", "--discard", expected=2)
        listed = outcome.words.splitlines()
        assert listed[0] == f"to be discarded: 1 segment that {deleted} has lost"
        assert listed[2].split()[:2] == [theirs.name, str(deleted)]
        assert theirs.exists()
        for path in (away, shell.directory, deleted):
            removed = shell("-d", str(path), "gc", "--discard", "--yes", "--json").json["removed"]
            assert [one["name"] for one in removed] == ([theirs.name] if path == deleted else [])
        assert not theirs.exists()
        assert others.exists()
        assert shell("-d", str(away), "get", "orders", "--timeout", "0").out == "x\n"


def test_gc_leaves_a_broker_alone_and_reaps_its_dead(shell: Shell) -> None:
    shell("put", "orders", "x")
    with shmq.open(shell.directory) as broker:
        member = broker._live().live()
        holding = shell.start("get", "orders", "-n", "2")
        try:
            assert holding.stdout is not None
            assert holding.stdout.readline() == "x\n"
            assert holding.pid in [row[3] for row in member.processes()]
        finally:
            end(holding)  # killed
        shell("gc")
        assert [row[3] for row in member.processes()] == [os.getpid()]
        assert broker.queue("orders").statistics().unsettled == 0


def test_gc_discards_a_segment_of_another_version_that_nobody_uses(shell: Shell) -> None:
    shell("put", "orders", "x")
    segment = segment_of(shell.directory)
    with segment.open("r+b") as file:
        file.write(b"\0" * 8)  # neither this version's magic nor anybody else's
    assert shell("ls", expected=1).words != ""
    assert segment.exists()
    assert shell("gc", "--discard", "--yes", "--json", program=sees_only(segment)).json["discarded"] == segment.name
    assert not segment.exists()
    assert shell("ls", "--json").json == {"queues": {}}


def test_doctor_sees_a_killed_child_and_needs_no_directory(bare: Shell) -> None:
    del bare.environment["SHMQ_DIR"]
    report = bare("doctor", "--json").json
    verdicts = {check["check"]: check for check in report["checks"]}
    assert report["ok"]
    assert {"/dev/shm", "kernel", "open files", "locks", "liveness", "waking", "leftovers"} <= set(verdicts)
    assert re.search(r"its message was back after [\d.]+ ms", verdicts["liveness"]["detail"])
    assert verdicts["locks"]["state"] == verdicts["waking"]["state"] == "ok"


def test_doctor_looks_at_the_directory(shell: Shell) -> None:
    shown = shell("doctor").out
    assert f"{shell.directory}, mode 0700, on " in shown
    assert segment_of(shell.directory).name in shown


@pytest.mark.parametrize("disk", ["8MiB", 0, None])
def test_doctor_says_how_much_room_there_is_on_disk(bare: Shell, tmp_path: Path, disk: str | int | None) -> None:
    def says(broker: shmq.Broker) -> tuple[str, str]:
        checks = bare("doctor", "-d", str(broker.path), "--json").json["checks"]
        return next((check["state"], check["detail"]) for check in checks if check["check"] == "disk")

    with shmq.open(tmp_path / "broker", memory="8MiB", disk=disk) as broker:
        first = says(broker)
        queue = broker.queue("lines", codec="bytes")
        with contextlib.suppress(shmq.Full):
            queue.put_many([bytes(1000)] * 20_000, timeout=0)
        last = says(broker)
        broker.delete(force=True)
    if disk is None:
        assert all("bytes free, a tenth stays free" in detail for _, detail in (first, last))
    elif disk == 0:
        assert first == last == ("ok", "nothing goes to disk (disk=0)")
    else:
        assert first == ("ok", "0 of 8,388,608 bytes that messages may have there")
        assert last[0] == "note"
        assert re.match(r"8,[\d,]+ of 8,388,608 bytes that messages may have there: take messages out, or", last[1])


def test_doctor_fails_for_a_directory_that_everybody_may_change(shell: Shell) -> None:
    os.chmod(shell.directory, 0o777)
    try:
        outcome = shell("doctor", expected=1)
        assert re.search("^bad +directory +.*everybody may change", outcome.out, re.MULTILINE)
    finally:
        os.chmod(shell.directory, 0o700)


@pytest.mark.alone  # any other test's gc would take it away
def test_what_a_death_left_unfinished_goes_once_nobody_can_be_at_work_on_it(shell: Shell) -> None:
    draft = Path(f"/dev/shm/shmq-{os.geteuid()}-{secrets.token_hex(16)}.new-77")
    record = shell.directory / "segment.new"
    bare = Shell(shell.directory, shell.folder)
    del bare.environment["SHMQ_DIR"]
    try:
        with draft.open("wb") as file:
            file.write(b"half a segment")
            file.flush()
            assert bare("gc", "--json").json["drafts"] == []  # it may just be on its way
            os.utime(draft, (time.time() - 3600, time.time() - 3600))
            lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, (1 << 40) + 1, 1, 0)
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
            assert bare("gc", "--json").json["drafts"] == []  # old, but its maker lives
        assert f"{draft} is unfinished, and its maker is gone" in shell("doctor").out
        record.write_text("half a record")
        with (shell.directory / "lock").open("rb") as lock_file:
            fcntl.flock(lock_file, fcntl.LOCK_EX)
            assert drafts(str(shell.directory)) == []  # somebody opens the broker
        assert f"{record} was left by a process that died" in shell("doctor").out
        assert shell("gc", "--json").json["drafts"] == [str(record)]  # told a directory, it leaves the rest alone
        assert draft.exists()
        assert bare("gc", "--json").json["drafts"] == [str(draft)]
        assert not draft.exists()
        assert not record.exists()
        assert shell("check").out.endswith(": sound\n")
    finally:
        draft.unlink(missing_ok=True)
