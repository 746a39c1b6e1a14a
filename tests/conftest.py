"""Each test has its own broker directory, a printed seed, and a watch over files that it leaves in /dev/shm."""

import faulthandler
import gc
import json
import os
import re
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import settings

from tests.support.skips import is_excused

if TYPE_CHECKING:
    from shmq.spark.jvm import Jvm

SHARED_MEMORY = Path("/dev/shm")
SEGMENT_PREFIX = "shmq-"
# Children of the last test may still be on their way out when the session ends.
GRACE_SECONDS = 3.0
UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
# A broker's directory names its segment in a small file; the big ones hold messages and need not be searched.
SMALL_FILE_BYTES = 64 * 1024
STACKS_AT = 0.9  # of a test's time limit, as faulthandler_timeout is of the common one

# The begins of names of tests that search at length for what crashes, races and load break: tools/test --instruments.
INSTRUMENTS = (
    "tests/checker/",
    "tests/crash/",
    "tests/load/",
    "tests/model/test_found_mistakes.py",
    "tests/protocols/",
    "tests/native/test_branch_coverage.py",
    "tests/native/test_c_variants.py",
    "tests/native/test_races.py",
    "tests/native/test_sanitized_extension.py",
    "tests/native/test_weak_memory.py",
)

before_key = pytest.StashKey[set[str]]()
leaks_key = pytest.StashKey[list[str]]()

# No deadline per example: on a busy machine it would measure the machine.
settings.register_profile("shmq", deadline=None, print_blob=True)
settings.load_profile("shmq")


# A shell starts what runs in its background with SIGINT ignored; processes of the tests would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def is_strict() -> bool:
    return os.environ.get("SHMQ_TEST_STRICT") == "1"


@pytest.fixture
def broker_dir(tmp_path: Path) -> Path:
    """A directory of this test alone in which it may make a broker; it does not exist yet."""
    return tmp_path / "broker"


@pytest.fixture(autouse=True)
def _brokers_end_with_their_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """The segment of a broker with a directory outlives its processes on purpose; here its directory goes, too."""
    uses_files = "tmp_path" in request.fixturenames
    files: Path | None = request.getfixturevalue("tmp_path") if uses_files else None
    yield
    if files is None:
        return
    for record in files.rglob("segment"):
        for name in re.findall(rb"shmq-[0-9]+-[0-9a-f]{32}", record.read_bytes()) if record.is_file() else ():
            (SHARED_MEMORY / name.decode()).unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def _one_byte_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `tools/test --flow` every queue that a test makes may have one byte in memory, but for those that say
    otherwise: what holds of a queue holds of one whose messages lie on disk.
    """
    if os.environ.get("SHMQ_TEST_FLOW", "0") != "1":
        return
    import shmq
    from shmq.engine.broker.broker import declared_for

    declared, test = shmq.Broker.queue, os.getpid()

    def queue(self: shmq.Broker, name: str | None = None, **options: Any) -> shmq.Queue[Any]:
        if os.getpid() == test and options.get("create", True):
            options.setdefault("max_memory", 1)
        return declared(self, name, **options)

    def object_queue_of(broker: Any, name: str, codec: Any, settings: Any, *, create: bool) -> Any:
        limited = replace(settings, max_memory=1) if create and os.getpid() == test else settings
        return declared_for(broker, name, codec, limited, create=create)

    monkeypatch.setattr(shmq.Broker, "queue", queue)
    monkeypatch.setattr("shmq.mp.object_queue.declared_for", object_queue_of)


@pytest.fixture
def own_process_broker() -> Iterator[None]:
    """For tests of `shmq.mp`: the broker of this process's queues is gone when they end."""
    from shmq.mp import process_broker

    yield
    gc.collect()
    own, process_broker._own, process_broker._key = process_broker._own, None, None
    if own is not None:
        own[1].close()


@pytest.fixture
def seed() -> int:
    """The seed for anything random in this test; a failure shows it, SHMQ_TEST_SEED sets it for a repeat."""
    value = int(os.environ.get("SHMQ_TEST_SEED") or secrets.randbits(32))
    print(f"seed {value}; to repeat: SHMQ_TEST_SEED={value}")
    return value


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Hands a measured figure over to the report: figure("deaths", deaths=20, p99_ms=31.0). See tools/reliability."""

    def report(name: str, **values: float) -> None:
        print(f"figure {name}: {values}")
        record_property(f"figure:{name}", json.dumps(values))

    return report


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """Returns the path of an external program, or skips the test, which tools/test --strict takes as a failure."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            text = f"missing tool: {name} (Debian, Ubuntu: apt-get install {name})"
            pytest.skip(text)
        return path

    return find


@pytest.fixture(scope="session")
def with_spark(tmp_path_factory: pytest.TempPathFactory) -> "Jvm":
    """For tests that run a Spark of any kind: the Java for it. tools/test --spark fails where one is missing."""
    from shmq.spark.jvm import JvmNotFound, find_jvm
    from tests.spark.class_archive import share_classes

    asked = os.environ.get("SHMQ_TEST_SPARK")  # "1": tools/test with --spark, "0": without; None: pytest alone
    if asked == "0" or (asked is None and find_spec("pyspark") is None):
        pytest.skip("no pyspark: tools/test --spark")
    try:
        jvm = find_jvm()
    except JvmNotFound as error:
        if asked is None:
            pytest.skip(str(error))
        raise
    share_classes(jvm, tmp_path_factory.mktemp("class-archive"), os.environ)
    return jvm


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """With tools/test --strict a skip is a failure, unless its reason stands in tests/support/skips.py."""
    report = yield
    if report.skipped and is_strict() and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        if not is_excused(reason):
            report.outcome = "failed"
            report.longrepr = f"skipped under --strict: {reason}"
    return report


@pytest.hookimpl(tryfirst=True)  # before those that are not asked for are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(INSTRUMENTS):
            item.add_marker("instrument")
        if "with_spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    if not is_controller(config):
        # Side by side the longest ones begin first, so that no worker is left with one of them at the end.
        items.sort(key=time_limit, reverse=True)


def time_limit(item: pytest.Item) -> float:
    """Seconds; 0: the common limit."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker is not None and marker.args else 0.0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Stacks are shown shortly before a test's own limit, not before the common one."""
    seconds, stderr = time_limit(item), item.config.stash.get(fault_handler_stderr_fd_key, None)
    if seconds > 0 and stderr is not None:
        faulthandler.dump_traceback_later(seconds * STACKS_AT, file=stderr)


def segments() -> set[str]:
    """Returns the names of all segments of all brokers on this machine."""
    try:
        return {name for name in os.listdir(SHARED_MEMORY) if name.startswith(SEGMENT_PREFIX)}
    except FileNotFoundError:
        return set()


def is_controller(config: pytest.Config) -> bool:
    """True in the process that sees the session as a whole, and not in a worker of pytest-xdist."""
    return not hasattr(config, "workerinput")


def pytest_sessionstart(session: pytest.Session) -> None:
    if is_controller(session.config):
        session.config.stash[before_key] = segments()


@pytest.hookimpl(trylast=True)  # after pytest-xdist has ended its workers
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails the suite if it has left a segment in /dev/shm, and removes what is surely its own."""
    config = session.config
    before = config.stash.get(before_key, None)
    if before is None or not is_controller(config):
        return
    left = remaining(before)
    # Other runs on this machine make segments too. Ours are those that a directory of this session names.
    sessions_files = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    ours = {name for name in left if named_below(sessions_files, name)}
    lines = [f"left in {SHARED_MEMORY}, now removed: {name}" for name in sorted(ours)]
    # An anonymous broker has no directory, others have one elsewhere, or are another user's. Where nothing else runs
    # (--strict), any new segment is ours.
    if is_strict():
        lines += [f"left in {SHARED_MEMORY}, by a broker elsewhere: {name}" for name in sorted(left - ours)]
    for name in ours:
        (SHARED_MEMORY / name).unlink(missing_ok=True)
    config.stash[leaks_key] = lines
    if lines and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def remaining(before: set[str]) -> set[str]:
    """Returns the segments that are new since `before` and neither vanish soon nor belong to a living stranger."""
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        left = segments() - before
        left -= held_by_living(left)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def held_by_living(names: set[str]) -> set[str]:
    """Returns the names that a process outside this session has mapped: they belong to another run."""
    held: set[str] = set()
    if not names:
        return held
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            text = maps.read_text(errors="replace")
        except OSError:
            continue
        if f"{SHARED_MEMORY}/{SEGMENT_PREFIX}" not in text or is_of_this_session(int(maps.parent.name)):
            continue
        held |= {name for name in names if f"{SHARED_MEMORY}/{name}" in text}
    return held


def is_of_this_session(pid: int) -> bool:
    """Walks up from a process; those that this session started, or that it is, are its own."""
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        pid = int(status.rpartition(")")[2].split()[1])
    return False


def named_below(directory: Path, segment: str) -> bool:
    """True if a small file below the directory holds the UUID of the segment, as text or as 16 bytes."""
    match = UUID.search(segment)
    if match is None:
        return False
    plain = match.group().replace("-", "").lower()
    needles = [match.group().encode(), plain.encode(), bytes.fromhex(plain), segment.encode()]
    return any(needle in content for content in small_files(directory) for needle in needles)


def small_files(directory: Path) -> Iterator[bytes]:
    for folder, _, names in os.walk(directory):
        for name in names:
            path = Path(folder, name)
            try:
                if not path.is_symlink() and path.is_file() and path.stat().st_size <= SMALL_FILE_BYTES:
                    yield path.read_bytes()
            except OSError:
                continue


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash.get(leaks_key, [])
    if lines:
        terminalreporter.section("shared memory")
        for line in lines:
            terminalreporter.write_line(line)
