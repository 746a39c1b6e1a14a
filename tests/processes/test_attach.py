"""Joining and leaving a segment with real processes: hostile segments, deaths, forks, storms."""

import errno
import gc
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from shmq import _native
from shmq.core import segment
from shmq.engine.directory.broker_directory import BrokerDirectory, open_anonymous
from shmq.engine.directory.orphans import sweep_orphans
from shmq.errors import BrokerError, BrokerNotFound, Closed, CorruptionError, VersionMismatch
from shmq.options import BrokerSettings

MEMORY = 8 << 20
ROW, STATE, PID, DEAD = 0, 2, 3, 11


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[BrokerDirectory]:
    """A directory with a broker in which nobody is."""
    directory = BrokerDirectory(str(broker_dir))
    member = directory.open(BrokerSettings(memory=MEMORY))
    name = member.name
    member.close()
    yield directory
    segment.unlink(name)


def segment_of(broker: BrokerDirectory) -> Path:
    member = broker.open()
    path = Path("/dev/shm", member.name)
    member.close()
    return path


def in_child(work: Callable[[], object]) -> int:
    """Runs the work in a forked child; its pid."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    return pid


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def check_clean(broker: BrokerDirectory) -> None:
    """The map fits its roots, and nobody but us is in the table."""
    member = broker.open(create=False)
    try:
        assert member.valid() is None
        assert [row[PID] for row in member.processes()] == [os.getpid()]
        assert member.usage()["damage"] == 0
    finally:
        member.close()


# ---- segments that are not what they should be ----------------------------------------------------------------------


def overwrite(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def test_garbage_in_place_of_the_segment_is_corruption_and_stays_untouched(broker: BrokerDirectory) -> None:
    path = segment_of(broker)
    overwrite(path, 0, b"garbage!" * 1024)
    content = path.read_bytes()
    with pytest.raises(CorruptionError, match="magic"):
        broker.open()
    assert path.read_bytes() == content


@pytest.mark.parametrize("size", [0, 100, 8191, 8192, 1 << 20, MEMORY - 1])
def test_a_truncated_segment_is_corruption(broker: BrokerDirectory, size: int) -> None:
    path = segment_of(broker)
    os.truncate(path, size)
    with pytest.raises(CorruptionError, match="size"):
        broker.open()


@pytest.mark.parametrize(("offset", "field"), [(8, "version"), (12, "byte_order"), (16, "fingerprint")])
def test_a_segment_of_another_version_names_the_field_that_differs(
    broker: BrokerDirectory, offset: int, field: str
) -> None:
    path = segment_of(broker)
    overwrite(path, offset, struct.pack("<I", 77))
    content = path.read_bytes()
    with pytest.raises(VersionMismatch, match=field):
        broker.open()
    assert path.read_bytes() == content


def test_no_content_of_the_header_crashes_an_attach(broker: BrokerDirectory, seed: int) -> None:
    """Shows G7."""
    rng = random.Random(seed)
    path = segment_of(broker)
    good = path.read_bytes()[:2048]
    for _ in range(300):
        overwrite(path, 0, good)
        for _ in range(rng.randint(1, 4)):
            overwrite(path, rng.randrange(0, 1280), rng.randbytes(rng.choice((1, 2, 4, 8))))
        try:
            member = segment.attach(path.name, None)
        except (CorruptionError, VersionMismatch, OSError):
            continue
        member.close()  # the same bytes by chance
    overwrite(path, 0, good)
    check_clean(broker)


def test_no_content_of_the_tables_crashes_a_member(broker: BrokerDirectory, seed: int) -> None:
    """In a child, which must end by its own exit, not by a signal. Shows G7."""
    rng = random.Random(seed)
    path = segment_of(broker)
    tables = 8192 + 640 * 1024 + 64 * 4096 + 8 * 100  # header, rows, queue directory, granule map

    def work() -> None:
        for _ in range(20):
            for _ in range(200):
                overwrite(path, rng.randrange(1280, tables), rng.randbytes(rng.choice((1, 2, 8))))
            try:
                member = segment.attach(path.name, None)
                member.processes()
                member.usage()
                member.valid()
                member.close()
            except (OSError, ValueError):
                pass

    assert exit_code(in_child(work)) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a segment away")
def test_another_users_segment_is_refused_with_its_owner(broker: BrokerDirectory) -> None:
    path = segment_of(broker)
    os.chown(path, 12345, 12345)
    with pytest.raises(PermissionError, match=r"12345.*mode=0o770"):
        broker.open()
    os.chown(path, 0, 0)
    path.chmod(0o666)
    with pytest.raises(PermissionError, match="everybody"):
        broker.open()


def test_a_full_shared_memory_is_an_error_with_figures_and_never_a_signal(tmp_path: Path) -> None:
    """With a /dev/shm of this test alone, too small for the tables of a segment. Shows G5."""
    program = textwrap.dedent(
        """
        import sys
        from shmq.engine.directory.broker_directory import BrokerDirectory
        from shmq.errors import OutOfSpace
        from shmq.options import BrokerSettings
        try:
            BrokerDirectory(sys.argv[1]).open(BrokerSettings(memory=64 << 20))
        except OutOfSpace as error:
            print(error.errno, error)
        """
    )
    command = 'mount -t tmpfs -o size=512k tmpfs /dev/shm && exec "$0" -c "$1" "$2"'
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("a mount namespace of its own is not to be had here")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        ["unshare", "-m", "sh", "-c", command, sys.executable, program, str(tmp_path / "broker")],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("28 /dev/shm is full: ")
    assert "524288" in result.stdout
    assert "--shm-size" in result.stdout


# ---- fork, close, deletion ------------------------------------------------------------------------------------------


def test_a_forked_child_is_a_member_of_its_own_after_the_first_look(broker: BrokerDirectory) -> None:
    member = broker.open()
    row, serial = member.row, member.serial

    def work() -> None:
        before = member.forked
        member.after_fork()
        member.after_fork()
        assert (before, member.forked) == (True, False)
        assert (member.serial, member.closed) == (serial + 1, False)
        assert {entry[PID] for entry in member.processes()} == {os.getpid(), os.getppid()}
        assert not any(entry[DEAD] for entry in member.processes())
        member.close()

    assert exit_code(in_child(work)) == 0
    assert not member.forked
    assert [(entry[ROW], entry[DEAD]) for entry in member.processes()] == [(row, False)]
    member.close()


def test_a_child_that_never_looks_leaves_its_parent_alone(broker: BrokerDirectory) -> None:
    member = broker.open()
    assert exit_code(in_child(lambda: None)) == 0
    watcher = broker.open()
    assert [entry[DEAD] for entry in watcher.processes()] == [False, False]
    watcher.close()
    member.close()


def test_a_closed_membership_stays_closed_in_a_child(broker: BrokerDirectory) -> None:
    member = broker.open()
    member.close()

    def work() -> None:
        member.after_fork()
        with pytest.raises(Closed):
            member.processes()

    assert exit_code(in_child(work)) == 0
    with pytest.raises(Closed):
        member.usage()
    member.close()


def test_a_killed_member_is_dead_for_others_once_it_is_gone(broker: BrokerDirectory) -> None:
    watcher = broker.open()
    ready, attached = os.pipe()

    def work() -> None:
        member = broker.open()
        os.write(attached, b"x")
        signal.pause()
        member.close()

    pid = in_child(work)
    assert os.read(ready, 1) == b"x"
    assert {entry[PID]: entry[DEAD] for entry in watcher.processes()} == {os.getpid(): False, pid: False}
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert {entry[PID]: entry[DEAD] for entry in watcher.processes()} == {os.getpid(): False, pid: True}
    os.close(ready)
    os.close(attached)
    watcher.close()


def test_a_stopped_member_is_alive(broker: BrokerDirectory) -> None:
    watcher = broker.open()

    def work() -> None:
        member = broker.open()
        os.kill(os.getpid(), signal.SIGSTOP)
        member.close()

    pid = in_child(work)
    assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
    assert not any(entry[DEAD] for entry in watcher.processes())
    os.kill(pid, signal.SIGCONT)
    assert exit_code(pid) == 0
    watcher.close()


def test_the_directory_deleted_by_another_process_is_noticed(broker: BrokerDirectory) -> None:
    member = broker.open()
    assert exit_code(in_child(lambda: shutil.rmtree(broker.path))) == 0
    assert member.gone()
    with pytest.raises(BrokerNotFound):
        broker.open(create=False)
    member.close()
    assert member.name not in segment.list_segments()


def test_an_anonymous_segment_of_a_killed_process_is_swept() -> None:
    ready, told = os.pipe()

    def work() -> None:
        member = open_anonymous(BrokerSettings(memory=MEMORY))
        os.write(told, member.name.encode())
        signal.pause()

    pid = in_child(work)
    name = os.read(ready, 100).decode()
    sweep_orphans()
    assert name in segment.list_segments()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    sweep_orphans()
    assert name not in segment.list_segments()
    os.close(ready)
    os.close(told)


# ---- storms ---------------------------------------------------------------------------------------------------------


def come_and_go(broker: BrokerDirectory, told: int, rounds: int) -> None:
    """Attaches and leaves so often (for ever with 0), telling of each round."""
    done = 0
    while rounds == 0 or done < rounds:
        member = broker.open(create=False)
        assert member.processes()
        member.close()
        os.write(told, b"x")
        done += 1


def test_a_storm_of_members_of_which_a_third_is_killed_leaves_a_clean_table(broker: BrokerDirectory, seed: int) -> None:
    """Shows G4."""
    rng = random.Random(seed)
    count, rounds = 60, 4
    victims = set(rng.sample(range(count), count // 3))
    keeper = broker.open()  # so that there is somebody to settle the affairs of the dead
    heard, told = os.pipe()
    pids = {}
    for index in range(count):
        pids[index] = in_child(partial(come_and_go, broker, told, 0 if index in victims else rounds))
    for index in sorted(victims, key=lambda _: rng.random()):
        os.read(heard, rng.randint(1, 3))  # somewhere in the middle of what they all do
        os.kill(pids[index], signal.SIGKILL)
    codes = {index: drained(pids[index], heard) for index in pids}
    assert {index for index, code in codes.items() if code != 0} == victims
    assert {codes[index] for index in victims} == {-signal.SIGKILL}
    # Needs the reaper: what the dead left behind goes, the living stay.
    _native.reap(keeper)
    assert [entry[PID] for entry in keeper.processes()] == [os.getpid()]
    keeper.close()
    os.close(heard)
    os.close(told)
    check_clean(broker)


def drained(pid: int, heard: int) -> int:
    """Exit code of the child, reading what the children tell meanwhile: a full pipe would stop them."""
    os.set_blocking(heard, False)
    while True:
        try:
            os.read(heard, 65536)
        except BlockingIOError:
            pass
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        os.sched_yield()


def test_processes_that_open_a_new_directory_at_once_meet_in_one_broker(broker_dir: Path) -> None:
    directory = BrokerDirectory(str(broker_dir))
    heard, told = os.pipe()
    gate, opened = os.pipe()

    def work() -> None:
        os.close(opened)
        os.read(gate, 1)  # until the test opens the gate for all of them
        member = directory.open(BrokerSettings(memory=MEMORY))
        os.write(told, member.name.encode().ljust(64))
        member.close()

    pids = [in_child(work) for _ in range(20)]
    os.close(opened)
    assert [exit_code(pid) for pid in pids] == [0] * len(pids)
    names = {os.read(heard, 64) for _ in pids}
    for descriptor in (heard, told, gate):
        os.close(descriptor)
    assert len(names) == 1
    check_clean(directory)
    segment.unlink(names.pop().decode().strip())


@pytest.fixture
def many_files() -> Iterator[None]:
    """Descriptors enough for a full table in one process."""
    needed, (soft, hard) = 3 * _native.PROCESS_ROWS + 200, resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"{needed} descriptors are needed, {hard} allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def roomy_broker(broker_dir: Path, many_files: None) -> Iterator[BrokerDirectory]:
    """Each row's page takes 8 KiB of the budget, so a full table needs more than the smallest one."""
    directory = BrokerDirectory(str(broker_dir))
    member = directory.open(BrokerSettings(memory=4 * MEMORY))
    member.close()
    yield directory
    segment.unlink(member.name)


def test_the_table_is_full_at_its_limit_and_says_so(roomy_broker: BrokerDirectory) -> None:
    """Memberships of one process count like those of many."""
    name = segment_of(roomy_broker).name
    members = [segment.attach(name, None) for _ in range(_native.PROCESS_ROWS)]
    assert len({member.row for member in members}) == _native.PROCESS_ROWS
    with pytest.raises(BrokerError, match="1024 members of at most 1024"):
        segment.attach(name, None)
    left = members.pop()
    left.close()
    members.append(segment.attach(name, None))
    assert members[-1].row == left.row
    for member in members:
        member.close()
    check_clean(roomy_broker)


def test_a_table_full_of_the_dead_takes_new_members(roomy_broker: BrokerDirectory) -> None:
    """Needs the reaper, which works here for somebody who has no row yet."""
    name = segment_of(roomy_broker).name
    ready, told = os.pipe()

    def work() -> None:
        members = [segment.attach(name, None) for _ in range(_native.PROCESS_ROWS)]
        os.write(told, b"x")
        signal.pause()
        del members

    pid = in_child(work)
    assert os.read(ready, 1) == b"x"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(ready)
    os.close(told)
    check_clean(roomy_broker)


def test_who_may_not_map_a_segment_is_told_the_limit_and_the_remedy(broker: BrokerDirectory) -> None:
    def join_with_little() -> None:
        gc.collect()  # segments that earlier tests left to the collector would make room later
        mapped = psutil.Process().memory_info().vms
        limit = mapped + 2 * MEMORY  # room for Python itself, but not for the addresses of the segment
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        told = rf"cannot map .*may map {limit:,} bytes.*pyspark\.memory"
        with pytest.raises(BrokerError, match=told) as raised:
            broker.open()
        assert raised.value.errno == errno.ENOMEM

    assert exit_code(in_child(join_with_little)) == 0
    broker.open().close()  # and nothing of it is left there
