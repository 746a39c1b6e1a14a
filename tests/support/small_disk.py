"""A small file system that one forked child has for itself: it ends with the child, whatever happens to that."""

import ctypes
import os
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

__all__ = ["KINDS", "on_a_small_disk"]

_NEW_MOUNTS: Final = 0x00020000  # CLONE_NEWNS
_RECURSIVE, _PRIVATE = 1 << 14, 1 << 18
_SECONDS: Final = 900  # a hang ends then, and no work on a machine with a load of twenty

# The command before the mount, and the arguments of the mount.
KINDS: Final[dict[str, tuple[list[str], list[str]]]] = {
    "tmpfs": ([], ["-t", "tmpfs", "-o", "size=4m", "tmpfs"]),
    "tmpfs with few files": ([], ["-t", "tmpfs", "-o", "size=64m,nr_inodes=48", "tmpfs"]),
    "ext4": (["mkfs.ext4", "-q", "-F", "-m", "0", "-N", "1024"], ["-o", "loop"]),
}


class _NoDiskHere(Exception):
    pass


def _run(words: list[str]) -> None:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:
        raise _NoDiskHere(str(error)) from error
    if done.returncode != 0:
        raise _NoDiskHere(done.stderr.strip())


def _mount(kind: str, place: Path) -> None:
    """In mounts of our own: others see nothing of it, and it goes with our last process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS) != 0 or libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None) != 0:
        raise _NoDiskHere(os.strerror(ctypes.get_errno()))
    before, what = KINDS[kind]
    if before:
        image = place.with_name("image")
        image.touch()
        os.truncate(image, 4 << 20)
        _run([*before, str(image)])
        what = [*what, str(image)]
    _run(["mount", *what, str(place)])


def _remove_segments(place: Path) -> None:
    for record in place.glob("*/segment"):
        for name in re.findall(rb"shmq-[0-9]+-[0-9a-f]{32}", record.read_bytes()):
            Path("/dev/shm", name.decode()).unlink(missing_ok=True)


def _report(work: Callable[[Path], object], kind: str, place: Path) -> str:
    try:
        _mount(kind, place)
    except _NoDiskHere as error:
        return f"skip:{error}"
    try:
        work(place)
        return ""
    except BaseException:
        return traceback.format_exc()
    finally:
        _remove_segments(place)


def on_a_small_disk(work: Callable[[Path], object], kind: str, folder: Path) -> None:
    """Runs `work(where it is mounted)` in a forked child; fails with its traceback if it raised.

    Skips the test where nothing can be mounted.
    """
    place = folder / "small disk"
    place.mkdir()
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(_SECONDS)
        os.close(reading)
        os.write(writing, _report(work, kind, place).encode()[:60_000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if said.startswith("skip:"):
        why = said.removeprefix("skip:")
        pytest.skip(f"no small file system here: {why}")
    assert status == 0, f"it has ended with {status}"
    assert not said, said
