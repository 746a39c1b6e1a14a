"""The bytes of a broker's segment, for the independent judge in tools/checker."""

import contextlib
import mmap
import os
import re
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from checker import Image, judge, judge_quiet

SHARED_MEMORY = Path("/dev/shm")


def segment_file(broker_dir: Path) -> Path:
    """The segment that a broker's directory names."""
    match = re.search(rb"shmq-[0-9]+-[0-9a-f]{32}", (broker_dir / "segment").read_bytes())
    assert match is not None, "the directory names no segment"
    return SHARED_MEMORY / match.group().decode()


def image_of(broker_dir: Path) -> Image:
    """A copy. Not of one moment, unless nobody is at work meanwhile."""
    return Image.of_file(segment_file(broker_dir))


def write_file(path: Path, image: Image, data: mmap.mmap | None = None) -> None:
    """A file like the segment's, as sparse; with other bytes in the same places, if they are given."""
    with path.open("wb") as file:
        file.truncate(image.size)
        for begin, end in image.parts:
            file.seek(begin)
            file.write(image.raw(begin, end - begin) if data is None else data[begin:end])


def check_image(broker_dir: Path, live_rows: Iterable[int]) -> Image:
    """At rest: nobody at work, all dead reaped."""
    image = image_of(broker_dir)
    assert judge(image, set()) == []
    assert judge_quiet(image, set(live_rows)) == []
    return image


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "TZX"


@contextlib.contextmanager
def standing_still(pids: Iterable[int], limit: float = 40.0) -> Iterator[None]:
    """All of them stopped, wherever they are, so that a copy is of one moment."""
    pids = list(pids)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        deadline = time.monotonic() + limit
        while not all(is_stopped(pid) for pid in pids):
            assert time.monotonic() < deadline, "a process does not stop"
            time.sleep(0.001)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
