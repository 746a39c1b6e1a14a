"""destroy: one broker goes, and nothing else."""

import os
from pathlib import Path

import shmq
from tests.cli.shell import Shell, end
from tests.cli.test_check import segment_of


def test_destroy_removes_memory_files_and_directory_of_one_broker(shell: Shell, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shell("-d", str(other), "init", "--memory", "8MiB")
    segment, others = segment_of(shell.directory), segment_of(other)
    refused = shell("destroy", expected=2)
    assert "--yes" in refused.words
    assert segment.exists()
    assert shell("destroy", "--yes").words == f"deleted {shell.directory}\n"
    assert not segment.exists()
    assert not shell.directory.exists()
    assert others.exists()
    assert shell("destroy", "--yes", expected=3).words.startswith("not found: there is no broker")
    report = shell("destroy", str(other), "--yes", "--json").json
    assert report == {"path": str(other), "segment": others.name, "left": None, "directory": True}
    assert not others.exists()


def test_destroy_leaves_nothing_in_a_directory_that_is_no_brokers(bare: Shell, tmp_path: Path) -> None:
    """Not even one that everybody may change: a path that was mistyped is no reason to lock it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "keep").touch()
    for mode in (0o700, 0o1777):
        folder.chmod(mode)
        refused = bare("destroy", str(folder), "--yes", expected=3).words
        assert refused.startswith("not found: there is no broker")
        assert [path.name for path in folder.iterdir()] == ["keep"]


def test_init_beside_other_files_says_so(bare: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(0o700)
    (folder / "keep").touch()
    for _ in range(2):
        assert f"{folder} has 1 other file" in bare("-d", str(folder), "init", "--memory", "8MiB").words
    bare("destroy", str(folder), "--yes")
    assert [path.name for path in folder.iterdir()] == ["keep"]


def test_nobody_is_asked_about_a_directory_that_is_not_there(bare: Shell, tmp_path: Path) -> None:
    refused = bare("destroy", str(tmp_path / "nowhere"), expected=3).words
    assert refused.startswith("not found: there is no broker")


def test_destroy_asks_on_a_terminal(shell: Shell) -> None:
    segment = segment_of(shell.directory)
    shown = shell.on_terminal("destroy", typed="n\n")
    assert f"Delete the broker {shell.directory} with all its messages?" in shown.out
    assert shown.code == 1
    assert segment.exists()
    assert shell.on_terminal("destroy", typed="y\n").code == 0
    assert not segment.exists()


def test_two_directories_are_one_too_many(shell: Shell, tmp_path: Path) -> None:
    for arguments in (["-d", "a", "destroy", "b"], ["destroy", "b", "-d", "a"]):
        assert "name one" in shell(*arguments, "--yes", expected=2).words
    assert segment_of(shell.directory).exists()


def test_destroy_of_a_broker_in_use_names_who_uses_it(shell: Shell) -> None:
    shell("put", "orders", "x")
    using = shell.start("get", "orders", "--follow")
    try:
        assert using.stdout is not None
        assert using.stdout.readline() == "x\n"
        refused = shell("destroy", "--yes", expected=1)
        assert f"(pid {using.pid})" in refused.words
        assert "--force" in refused.words
        assert shell("ls", "--json").json["queues"]
        assert shell("destroy", "--yes", "--force").code == 0
        assert using.wait(60) == 3
        assert using.stderr is not None
        assert "this broker was deleted" in using.stderr.read()
    finally:
        end(using)


def test_a_segment_of_another_version_in_use_is_refused_with_the_processes_that_have_it(shell: Shell) -> None:
    segment = segment_of(shell.directory)
    with shmq.open(shell.directory), segment.open("r+b") as file:
        file.seek(8)
        version = file.read(4)
        file.seek(8)
        file.write(b"\x63\0\0\0")
        file.flush()
        assert f"pid {os.getpid()}" in shell("destroy", "--yes", expected=1).words
        assert f"pid {os.getpid()}" in shell("gc", "--discard", "--yes", expected=1).words
        file.seek(8)
        file.write(version)
    assert segment.exists()
