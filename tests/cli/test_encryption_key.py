"""The commands beside a broker that encrypts what it has on disk."""

from pathlib import Path

import pytest

import shmq
from tests.cli.shell import Shell

COUNT = 2000


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text("7f" * 32)
    return path


@pytest.fixture
def encrypting(bare: Shell, broker_dir: Path, key_file: Path) -> Shell:
    """A broker whose queue "jobs" has most of its messages on disk."""
    bare("init", "--memory", "16MiB", "--disk", "1GiB", "--encryption-key-file", str(key_file))
    with shmq.open(broker_dir, encryption_key=key_file) as broker:
        jobs = broker.queue("jobs", max_memory=20_000)
        for number in range(COUNT):
            jobs.put(f"secret {number}")
    assert b"secret" not in b"".join(path.read_bytes() for path in (broker_dir / "disk").rglob("*") if path.is_file())
    return bare


def test_who_only_looks_needs_no_key(encrypting: Shell) -> None:
    assert encrypting("stat", "jobs", "--json").json["ready"] == COUNT
    assert "jobs" in encrypting("ls").out
    for command in ("ps",), ("check",), ("gc",), ("shutdown", "jobs"), ("reopen", "jobs"):
        encrypting(*command)
    checks = encrypting("doctor", "--json", expected=None).json["checks"]
    assert {"memory", "alerts", "movers"} <= {check["check"] for check in checks if check["state"] == "ok"}


@pytest.mark.parametrize("command", [("get", "jobs"), ("peek", "jobs"), ("put", "jobs", "a"), ("move", "jobs", "jobs")])
def test_who_needs_messages_is_told_where_the_key_goes(encrypting: Shell, command: tuple[str, ...]) -> None:
    failed = encrypting(*command, expected=2)
    assert "--encryption-key-file" in failed.words
    assert "secret" not in failed.out


def test_with_the_key_all_commands_work(encrypting: Shell, key_file: Path) -> None:
    key = "--encryption-key-file", str(key_file)
    assert encrypting(*key, "get", "jobs", "-n", "3").lines == ["secret 0", "secret 1", "secret 2"]
    assert encrypting("peek", "jobs", "-n", "1", *key).lines == ["secret 3"]
    encrypting("put", "jobs", "the last", *key)
    taken = encrypting("get", "jobs", *key, "--timeout", "0", "-n", str(COUNT - 2)).lines
    assert taken == [f"secret {number}" for number in range(3, COUNT)] + ["the last"]


def test_all_can_be_purged_without_the_key(encrypting: Shell) -> None:
    assert encrypting("purge", "jobs", "--yes").out.strip() == str(COUNT)


def test_a_wrong_key_is_refused(encrypting: Shell, key_file: Path) -> None:
    key_file.write_text("7e" * 32)
    failed = encrypting("--encryption-key-file", str(key_file), "get", "jobs", expected=2)
    assert "another encryption_key" in failed.words
