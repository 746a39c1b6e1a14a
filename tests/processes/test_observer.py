"""`shmq check` only looks: not a byte changes, and no lock, right or process keeps it from an answer. Shows G7."""

import contextlib
import ctypes
import fcntl
import hashlib
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import shmq
from shmq.cli.check import Report, examine
from shmq.core import segment
from shmq.core.layout import STRUCTS
from tests.support.offspring import Offspring, Say
from tests.support.segment_image import is_stopped, segment_file

DIRTY = next(offset for name, _, _, offset in STRUCTS["segment"][1] if name == "dirty")


@pytest.fixture
def filled(broker_dir: Path) -> Path:
    """A broker that nobody uses, with messages of all kinds; a child has made it: nothing of it is in this process."""
    in_child(lambda: fill(broker_dir))
    return broker_dir


def fill(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="32MiB") as broker:
        queue = broker.queue("orders", codec="bytes")
        queue.put_many(bytes([n]) * n * 100 for n in range(100))
        broker.queue("unsigned", checksum=False).put([1, 2], headers={"kind": "x"})
        queue.receive().retry()
        broker.queue("gone").delete()


def pages_of(file: Path) -> dict[int, bytes]:
    """The pages that are not all zeros, by their offset: the file has room for far more."""
    pages: dict[int, bytes] = {}
    with file.open("rb", buffering=0) as segment_bytes:
        descriptor, end = segment_bytes.fileno(), 0
        with contextlib.suppress(OSError):  # ENXIO: nothing but a hole is left
            while True:
                begin = os.lseek(descriptor, end, os.SEEK_DATA)
                end = os.lseek(descriptor, begin, os.SEEK_HOLE)
                pages |= {at: os.pread(descriptor, 4096, at) for at in range(begin, end, 4096)}
    return {at: content for at, content in pages.items() if any(content)}


def state_of(path: Path) -> tuple[bytes, int, int, int]:
    file = segment_file(path)
    found, total = file.stat(), hashlib.sha256()
    for at, content in pages_of(file).items():
        total.update(b"%d " % at + content)
    return total.digest(), found.st_blocks, found.st_mtime_ns, found.st_mode


def test_a_check_changes_not_one_byte(filled: Path) -> None:
    before = state_of(filled)
    report = examine(str(filled))
    assert (report.findings, report.undecided) == ([], [])
    assert (report.queues, report.messages, report.verified, report.unsigned) == (2, 101, 100, 1)
    assert state_of(filled) == before


def test_an_observer_has_no_right_to_write_and_is_no_member(filled: Path) -> None:
    name = segment_file(filled).name
    observer = segment.observe(name, None)
    mappings = [line.split()[1] for line in Path("/proc/self/maps").read_text().splitlines() if name in line]
    assert mappings == ["r--s"]
    links = [fd for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    opened = [fd.name for fd in links if os.path.exists(fd) and name in os.readlink(fd)]
    flags = [Path("/proc/self/fdinfo", fd).read_text().split("flags:")[1].split()[0] for fd in opened]
    assert [int(each, 8) & os.O_ACCMODE for each in flags] == [os.O_RDONLY]
    assert not segment.inspect(name).has_members
    observer.close()
    observer.close()
    with pytest.raises(shmq.Closed):
        observer.usage()
    assert name not in Path("/proc/self/maps").read_text()


def in_child(work: Callable[[], None]) -> None:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def give_up_all_capabilities() -> None:
    """So that rights of files hold for root, too."""
    header, nothing = struct.pack("Ii", 0x20080522, 0), bytes(24)
    assert ctypes.CDLL(None, use_errno=True).capset(header, nothing) == 0


def test_the_right_to_read_is_enough(filled: Path) -> None:
    file = segment_file(filled)

    def work() -> None:
        give_up_all_capabilities()
        with pytest.raises(PermissionError, match="reading and writing"):
            shmq.open(filled)
        report = examine(str(filled))
        assert (report.findings, report.undecided, report.verified) == ([], [], 100)

    before = state_of(filled)
    file.chmod(0o400)
    filled.chmod(0o500)
    try:
        in_child(work)
    finally:
        file.chmod(0o600)
        filled.chmod(0o700)
    assert state_of(filled)[:3] == before[:3]


def test_without_the_right_to_read_it_is_an_error(filled: Path) -> None:
    def work() -> None:
        give_up_all_capabilities()
        with pytest.raises(PermissionError, match="may not be opened for reading"):
            examine(str(filled))

    file = segment_file(filled)
    file.chmod(0o000)
    in_child(work)
    file.chmod(0o600)


def test_a_directory_without_a_broker_is_told(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(shmq.BrokerNotFound, match="shmq init"):
            examine(str(place))


# A ring of 11 MB, zeroed under the structure lock each time: it is inside most of its time.
CHANGER = """
import sys, shmq
broker = shmq.open(sys.argv[1], create=False)
while True:
    broker.queue("passing", maxsize=60_000).delete()
"""


def ended_inside(path: Path, end: Callable[[subprocess.Popen[bytes]], None]) -> subprocess.Popen[bytes]:
    """A process that makes and deletes queues, stopped or killed (`end`) where it holds the structure lock."""
    with segment_file(path).open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
        for _ in range(100):
            process = subprocess.Popen([sys.executable, "-c", CHANGER, path])
            holder = 0
            while holder != process.pid:
                assert process.poll() is None
                holder = int.from_bytes(memory[DIRTY : DIRTY + 4], "little")
            end(process)
            if int.from_bytes(memory[DIRTY : DIRTY + 4], "little") == process.pid:
                return process
            kill(process)
    raise AssertionError("it was never inside when it ended")


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGSTOP)
    while not is_stopped(process.pid):
        pass


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def timed(path: Path) -> tuple[Report, float]:
    begin = time.monotonic()
    return examine(str(path)), time.monotonic() - begin


def test_a_check_beside_one_who_is_stopped_inside_the_structure_lock_has_an_answer(filled: Path) -> None:
    process = ended_inside(filled, stop)
    try:
        report, seconds = timed(filled)
        assert report.findings == []
        assert report.verified == 100
        assert [text.split(":")[0] for text in report.undecided] == ["map of the memory"]
        assert f"process {process.pid} is changing the structure, or was stopped while it did" in report.undecided[0]
        assert seconds < 20  # half a second, on a machine that has others to do
    finally:
        kill(process)
    assert examine(str(filled)).findings == []


def test_a_check_behind_one_who_died_inside_the_structure_lock_blames_nobody(filled: Path) -> None:
    ended_inside(filled, kill)
    before = state_of(filled)
    report = examine(str(filled))
    assert report.findings == []
    assert report.undecided == [
        "map of the memory: a process died while it changed the structure; the next reaper repairs that"
    ]
    assert state_of(filled) == before
    with shmq.open(filled) as broker:  # to join is a change
        report = examine(str(filled))
        assert (report.findings, report.undecided) == ([], [])
        assert broker.queue("orders").statistics().ready == 100


def test_a_check_needs_no_lock_that_others_can_hold(filled: Path) -> None:
    with segment_file(filled).open("r+b") as file:
        everything = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, everything)
        report = examine(str(filled))
    assert (report.findings, report.undecided, report.verified) == ([], [], 100)


def test_no_content_of_the_segment_crashes_a_check(filled: Path, seed: int) -> None:
    """In a child, which must end by its own exit, not by a signal."""
    numbers = random.Random(seed)
    file = segment_file(filled)
    sound = pages_of(file)
    used = [*sound]

    def work() -> None:
        for _ in range(60):
            damaged = {at: bytearray(content) for at, content in sound.items()}
            for _ in range(numbers.choice((1, 5, 100))):
                at = max(1280, numbers.choice(used) + numbers.randrange(4096 // 8) * 8)  # the header's checksum holds
                word = numbers.choice((numbers.randbytes(8), bytes(8), b"\xff" * 8))
                damaged[at // 4096 * 4096][at % 4096 : at % 4096 + 8] = word
            with file.open("r+b") as changed, mmap.mmap(changed.fileno(), 0) as memory:
                for at, content in damaged.items():
                    memory[at : at + 4096] = bytes(content)
            examine(str(filled))

    in_child(work)


def test_a_check_of_an_anonymous_broker_goes_by_its_segment() -> None:
    with shmq.open() as broker:
        broker.queue("orders").put(1)
        report = examine(f"/dev/shm/{broker._membership.member.name}")
        assert (report.findings, report.queues, report.verified) == ([], 1, 1)


def test_a_check_in_a_forked_child_is_no_member_either(filled: Path) -> None:
    def work(say: Say) -> None:
        say(len(examine(str(filled)).findings))
        signal.pause()

    with shmq.open(filled) as broker, Offspring(work) as child:
        child.expect("0")
        assert [row[3] for row in broker._membership.live().processes()] == [os.getpid()]
