"""Mounts that are read-only: all who use a broker write there, and the error says so, with what still works."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

MAKES = "import sys, shmq; shmq.open(sys.argv[1], memory='16MiB').queue('q').put('a')"
OPENS = "import sys, shmq; shmq.open(sys.argv[1])"
SHELL = """
mount --make-rprivate / && mount -t tmpfs tmpfs /dev/shm && "$1" -c "$2" "$3/broker" || exit 9
{mount} || exit 9
"$1" -c "$4" "$3/broker"
for command in ls "peek q" "get q" "destroy --yes"; do "$1" -m shmq -d "$3/broker" $command; done
"$1" -m shmq -d "$3/broker" doctor
"$1" -m shmq -d "$3/broker" check
"""
MOUNTS = {
    "the directory": ('mount --bind "$3" "$3" && mount -o remount,bind,ro "$3"', "is on a read-only file system"),
    "/dev/shm": ("mount -o remount,ro /dev/shm", r"cannot open /dev/shm/shmq-"),
}


@pytest.mark.parametrize("what", sorted(MOUNTS))
def test_a_read_only_mount_is_told_with_what_helps(what: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    tool("unshare")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("not allowed to mount: run the tests as root, or in a user namespace")
    mount, words = MOUNTS[what]
    line = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        SHELL.replace("{mount}", mount),
        "sh",
        sys.executable,
        MAKES,
        str(tmp_path),
        OPENS,
    ]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr  # of check
    assert done.stdout.strip().endswith("sound")
    assert any(line.startswith("bad") and "read-only" in line for line in done.stdout.splitlines()), done.stdout
    told = [line for line in done.stderr.splitlines() if words in line]
    assert len(told) == 5
    assert told[0].startswith("shmq.errors.BrokerError: ")
    for text in told:
        assert "writable" in text
        assert "shmq check needs the right to read only" in text
