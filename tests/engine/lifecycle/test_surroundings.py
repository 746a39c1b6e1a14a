"""Things around a broker: directories of others, garbage, other versions, remote file systems, deletion in use."""

import gc
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.engine.directory import ownership
from tests.engine.child import Child
from tests.engine.conftest import MEMORY

SHM = Path("/dev/shm")


def segment_of(broker_dir: Path) -> Path:
    name: str = json.loads((broker_dir / "segment").read_text())["name"]
    return SHM / name


def test_another_users_broker_is_refused_naming_owner_mode_and_remedy(
    broker_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows G8."""
    shmq.open(broker_dir, memory=MEMORY).close()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(os, "getgroups", list)
    with pytest.raises(PermissionError) as caught:
        shmq.open(broker_dir)
    text = str(caught.value)
    assert f"uid {os.stat(broker_dir).st_uid}" in text
    assert "0o700" in text
    assert "mode=0o770" in text


def test_a_directory_that_everybody_may_change_is_refused(broker_dir: Path) -> None:
    broker_dir.mkdir()
    broker_dir.chmod(0o777)
    with pytest.raises(PermissionError, match="chmod"):
        shmq.open(broker_dir)
    assert list(broker_dir.iterdir()) == []


@pytest.mark.parametrize("number", [0x6969, 0xFF534D42, 0x01021997])
def test_a_remote_file_system_is_refused(broker_dir: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Shows S133."""
    monkeypatch.setattr(ownership, "filesystem_type", lambda descriptor: number)
    with pytest.raises(shmq.BrokerError, match="remote file system") as caught:
        shmq.open(broker_dir)
    assert "/dev/shm" in caught.value.remedy
    assert not (broker_dir / "segment").exists()


def test_without_create_a_missing_broker_is_not_found(broker_dir: Path) -> None:
    with pytest.raises(shmq.BrokerNotFound, match="create=True") as caught:
        shmq.open(broker_dir, create=False)
    assert isinstance(caught.value, FileNotFoundError)
    assert not broker_dir.exists()


def test_where_nothing_can_be_made_the_place_is_named() -> None:
    with pytest.raises(shmq.BrokerNotFound, match=r"none can be made: /proc/.*No such file.*name a directory"):
        shmq.open("/proc/broker")


def test_the_directory_above_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(
        shmq.BrokerNotFound, match=rf"none can be made: {tmp_path}/a/typo does not exist; check the path"
    ):
        shmq.open(tmp_path / "a" / "typo" / "b")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("below", ["", "broker", "some/broker"])
@pytest.mark.parametrize("create", [True, False])
def test_a_file_in_place_of_the_directory_is_named_and_stays(tmp_path: Path, below: str, create: bool) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(shmq.BrokerNotFound, match=f"{file} is not a directory; name a directory"):
        shmq.open(file / below, create=create)
    assert file.read_text() == "mine"


@pytest.mark.parametrize("text", ["", "garbage", "{}", '{"format": 2}', "[1]", "\0" * 100, "x" * 10_000])
def test_garbage_in_place_of_the_record_is_corruption(broker_dir: Path, text: str) -> None:
    """Shows G7."""
    broker_dir.mkdir(mode=0o700)
    (broker_dir / "segment").write_text(text)
    with pytest.raises(shmq.CorruptionError, match="segment"):
        shmq.open(broker_dir)
    assert (broker_dir / "segment").read_text() == text


def test_a_segment_without_its_magic_is_corruption_and_stays(broker_dir: Path) -> None:
    shmq.open(broker_dir, memory=MEMORY).close()
    path = segment_of(broker_dir)
    with path.open("r+b") as file:
        file.write(b"\0" * 64)
    with pytest.raises(shmq.CorruptionError):
        shmq.open(broker_dir)
    assert path.exists()


def test_another_version_is_named_and_nothing_is_touched(broker_dir: Path) -> None:
    shmq.open(broker_dir, memory=MEMORY).close()
    path = segment_of(broker_dir)
    with path.open("r+b") as file:
        file.seek(8)
        file.write((0xFFFF).to_bytes(4, "little"))
    before = path.read_bytes()[:8192]
    with pytest.raises(shmq.VersionMismatch, match="version"):
        shmq.open(broker_dir)
    assert path.read_bytes()[:8192] == before


def test_a_record_of_another_format_is_a_version_mismatch(broker_dir: Path) -> None:
    shmq.open(broker_dir, memory=MEMORY).close()
    record = broker_dir / "segment"
    content = json.loads(record.read_text())
    record.write_text(json.dumps({**content, "format": 99}))
    with pytest.raises(shmq.VersionMismatch, match="format is 99"):
        shmq.open(broker_dir)
    record.write_text(json.dumps(content))
    shmq.open(broker_dir).close()


def test_a_broker_whose_segment_was_lost_is_made_anew_and_says_so(
    broker_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        first = broker.queue("jobs").put("a")
    segment_of(broker_dir).unlink()
    with caplog.at_level(logging.WARNING, "shmq.broker"), shmq.open(broker_dir) as broker:
        assert "lost" in caplog.text
        assert broker.queues() == []
        assert broker.statistics().memory == 16 << 20
        ids = [broker.queue("jobs").put("b") for _ in range(3)]
    assert first == 1
    assert ids == [(1 << 40) + n for n in range(3)]
    segment_of(broker_dir).unlink()
    with shmq.open(broker_dir) as broker:
        assert broker.queue("jobs").put("c") == 2 << 40


# Every now and then a call that moves or counts messages looks whether the directory is still there.
LOOKING = [
    "put",
    "put_slow",
    "put_many",
    "get",
    "get_many",
    "receive",
    "receive_many",
    "browse",
    "qsize",
    "join",
    "purge",
]


@pytest.mark.parametrize("name", LOOKING)
def test_calls_on_a_broker_whose_directory_was_deleted_are_refused(broker_dir: Path, name: str) -> None:
    program = """
broker = shmq.open(sys.argv[1])
q = broker.queue("jobs")
say("open")
listen()
from tests.engine.lifecycle.test_closing import CALLS
from shmq.engine.membership import membership
ended = 0
for _ in range(3000):
    try:
        if "{name}" in ("get", "get_many", "receive", "receive_many", "join"):
            q.put("x")
        CALLS["{name}"](broker, q)
    except shmq.BrokerNotFound as error:
        say("not found", error.errno)
        break
    except shmq.NotFound:
        q = broker.queue("jobs")
    except shmq.Full:
        q.purge()
    except shmq.SettlementError:
        pass
"""
    shmq.open(broker_dir, memory=MEMORY).close()
    segment = segment_of(broker_dir)
    with Child(program.replace("{name}", name), broker_dir) as child:
        assert child.line() == "open"
        shutil.rmtree(broker_dir)
        child.tell("go")
        assert child.line() == "not found 2"
        child.end()
    assert not segment.exists()


WAITS = {
    "get": "q.get()",
    "receive": "q.receive()",
    "loop": "list(q.consumer())",
    "put": "[q.put('x') for _ in range(3)]",
    "join": "q.put('x'); q.join()",
    "browse": "list(q.browse(start='next', follow=True))",
}


@pytest.mark.parametrize("name", sorted(WAITS))
def test_waits_end_when_the_directory_is_deleted(broker_dir: Path, name: str) -> None:
    program = """
q = shmq.open(sys.argv[1], memory="16MiB").queue("jobs", maxsize=1)
say("waits")
try:
    {wait}
except shmq.BrokerNotFound as error:
    say("not found")
"""
    with Child(program.replace("{wait}", WAITS[name]), broker_dir) as child:
        assert child.line() == "waits"
        child.sleeps()
        segment = segment_of(broker_dir)
        shutil.rmtree(broker_dir)
        assert child.line() == "not found"
        child.end()
    assert not segment.exists()


def test_a_directory_made_again_is_another_broker(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory=MEMORY) as first:
        first.queue("jobs").put("a")
        shutil.rmtree(broker_dir)
        with shmq.open(broker_dir, memory=MEMORY) as second:
            assert second.queues() == []


UNTYPED: Any = shmq.open  # who has no type checker
WRONG: dict[str, Callable[[Path], Any]] = {
    "memory of nothing": lambda path: shmq.open(path, memory=0),
    "too little memory": lambda path: shmq.open(path, memory="1MiB"),
    "memory without a unit": lambda path: shmq.open(path, memory="64M"),
    "memory as float": lambda path: shmq.open(path, memory=1e9),  # type: ignore[arg-type]
    "mode for all": lambda path: shmq.open(path, mode=0o777),
    "mode for reading": lambda path: shmq.open(path, mode=0o750),
    "patience": lambda path: shmq.open(path, patience=-1),
    "disk": lambda path: shmq.open(path, disk=-1),
    "durability": lambda path: UNTYPED(path, durability="sync"),
    "a short key": lambda path: shmq.open(path, encryption_key=b"0" * 31),
    "a key as a number": lambda path: shmq.open(path, encryption_key=7),  # type: ignore[arg-type]
    "a function without a key": lambda path: shmq.open(path, encryption_key=lambda: None),  # type: ignore[arg-type, return-value]
    "a host": lambda path: shmq.open("shmq://host/dir"),
    "a query": lambda path: shmq.open(f"shmq://{path}?a=1"),
    "another scheme": lambda path: shmq.open("redis://localhost"),
    "a path given to the class": lambda path: shmq.Broker(path),  # type: ignore[arg-type]
    "a number": lambda path: shmq.open(7),  # type: ignore[arg-type]
    "create as a number": lambda path: shmq.open(path, create=1),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_wrong_argument_of_open_makes_nothing(broker_dir: Path, name: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        WRONG[name](broker_dir)
    assert not broker_dir.exists()


@pytest.mark.parametrize(("option", "value"), [("memory", "32MiB"), ("patience", 0.5), ("mode", 0o770)])
def test_options_of_the_broker_that_differ_are_a_mismatch(
    broker_dir: Path, broker: shmq.Broker, option: str, value: Any
) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(shmq.OptionsMismatch, match=option):
        shmq.open(broker_dir, **options)


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, 10**400, 5, 5.0])
def test_long_timeouts_are_taken(queue: shmq.Queue[Any], timeout: Any) -> None:
    for body in (b"a", [1]):
        queue.put(body, timeout=timeout)
        assert queue.get(timeout=timeout) == body
    queue.put("b")
    with queue.receive(timeout=timeout) as m:
        assert m.body == "b"
    queue.join(timeout=timeout)


WRONG_CALLS: dict[str, Callable[[shmq.Queue[Any]], Any]] = {
    "timeout below 0": lambda q: q.put("a", timeout=-1),
    "timeout is true": lambda q: q.put("a", timeout=True),
    "timeout is far below 0": lambda q: q.put("a", timeout=-(10**400)),
    "timeout is text": lambda q: q.put("a", timeout="5"),  # type: ignore[arg-type]
    "timeout is no number": lambda q: q.put("a", timeout=float("nan")),
    "slow: timeout below 0": lambda q: q.put([1], timeout=-1),
    "slow: timeout is true": lambda q: q.put([1], timeout=True),
    "put_many: timeout below 0": lambda q: q.put_many(["a", "b"], timeout=-1),
    "two bodies": lambda q: q.put("a", "b"),  # type: ignore[call-arg, arg-type]
    "no body": lambda q: q.put(),  # type: ignore[call-arg]
    "unknown option": lambda q: q.put("a", colour="red"),  # type: ignore[call-arg]
    "headers are a list": lambda q: q.put("a", headers=["x"]),  # type: ignore[arg-type]
    "a header of a wrong type": lambda q: q.put("a", headers={"x": [1]}),  # type: ignore[dict-item]
    "a header without a name": lambda q: q.put("a", headers={1: "x"}),  # type: ignore[dict-item]
    "put_many of a number": lambda q: q.put_many(7),  # type: ignore[arg-type]
    "put_many with a wrong option": lambda q: q.put_many(["a", "b"], colour="red"),  # type: ignore[call-arg]
    "get: positional": lambda q: q.get(5),  # type: ignore[call-arg]
    "get: unknown": lambda q: q.get(block=False),  # type: ignore[call-arg]
    "get: timeout below 0": lambda q: q.get(timeout=-0.1),
    "get_many: 0": lambda q: q.get_many(0),
    "get_many: -1": lambda q: q.get_many(-1),
    "get_many: text": lambda q: q.get_many("5"),  # type: ignore[arg-type]
    "get_many: nothing": lambda q: q.get_many(),  # type: ignore[call-arg]
    "receive: timeout below 0": lambda q: q.receive(timeout=-1),
    "receive: timeout is text": lambda q: q.receive(timeout="1"),  # type: ignore[arg-type]
    "receive_many: 0": lambda q: q.receive_many(0),
    "receive_many: true": lambda q: q.receive_many(True),
    "browse: last": lambda q: q.browse(start="last"),  # type: ignore[arg-type]
    "browse: -1": lambda q: q.browse(start=-1),
    "consumer: selector": lambda q: q.consumer(selector=3),  # type: ignore[arg-type]
    "consumer: priority": lambda q: q.consumer(priority=1 << 31),
    "consumer: priority text": lambda q: q.consumer(priority="3"),  # type: ignore[arg-type]
    "join: timeout below 0": lambda q: q.join(timeout=-1),
    "loan: timeout below 0": lambda q: q.loan(5, timeout=-1),
}


@pytest.mark.parametrize("name", sorted(WRONG_CALLS))
def test_a_wrong_argument_changes_nothing(broker: shmq.Broker, queue: shmq.Queue[Any], name: str) -> None:
    queue.put("there")
    before = queue.statistics()
    with pytest.raises((ValueError, TypeError)) as caught:
        WRONG_CALLS[name](queue)
    assert not isinstance(caught.value, shmq.ShmqError)
    assert str(caught.value)
    after = queue.statistics()
    assert (after.put, after.ready, after.delivered, after.consumers) == (
        before.put,
        before.ready,
        before.delivered,
        before.consumers,
    )
    (process,) = broker.statistics().processes
    assert (process.unsettled, process.pinned_bytes) == (0, 0)


# Of another type: TypeError with what is expected. In the order of the classes.
OTHER_TYPES: list[tuple[str, dict[str, Any], str]] = [
    ("queue", {"create": 1}, "True or False"),
    ("browse", {"follow": 1}, "True or False"),
    ("browse", {"start": 1.5}, "position"),
    ("browse", {"start": None}, "position"),
    ("consumer", {"prefetch": "x"}, "int"),
    ("consumer", {"prefetch": True}, "int"),
    ("consumer", {"prefetch": 1.5}, "int"),
    ("consumer", {"exclusive": 1}, "True or False"),
    ("consumer", {"exclusive": None}, "True or False"),
    ("consumer of two", {"exclusive": 1}, "True or False"),
    ("consumer of two", {"prefetch": "x"}, "int"),
    ("put_many", {"bodies": 5}, r"put_many\(5\): several bodies"),
    ("get_many", {"limit": "a"}, r"get_many\('a'\): a number of messages"),
    ("get_many", {"limit": True}, r"get_many\(True\): a number of messages"),
    ("get_many", {"limit": 1.5}, r"get_many\(1.5\): a number of messages"),
    ("get", {"timeout": "1"}, r"timeout='1' is of the type str; give seconds"),
    ("receive", {"timeout": "1"}, r"timeout='1' is of the type str; give seconds"),
    ("loan", {"nbytes": "x"}, "bytes"),
    ("loan", {"nbytes": True}, "bytes"),
    ("move", {"copy": 1}, "True or False"),
    ("shutdown", {"immediate": 1}, "True or False"),
    ("pool", {"processes": "2"}, "int"),
    ("pool", {"max_messages": 1.5}, "int"),
]


@pytest.mark.parametrize(("call", "argument", "expected"), OTHER_TYPES)
def test_an_argument_of_another_type_is_a_type_error_with_what_is_expected(
    broker: shmq.Broker, queue: shmq.Queue[Any], call: str, argument: dict[str, Any], expected: str
) -> None:
    other = broker.queue("other")
    calls: dict[str, Callable[..., Any]] = {
        "queue": lambda **options: broker.queue("jobs", **options),
        "browse": queue.browse,
        "consumer": queue.consumer,
        "consumer of two": lambda **options: broker.consumer(queue, other, **options),
        "put_many": lambda bodies: queue.put_many(bodies),
        "get_many": lambda limit: queue.get_many(limit, timeout=0),
        "get": queue.get,
        "receive": queue.receive,
        "loan": queue.loan,
        "move": lambda **options: queue.move(other, **options),
        "shutdown": queue.shutdown,
        "pool": lambda **options: shmq.WorkerPool(queue, print, **options),
    }
    queue.put("a")
    with pytest.raises(TypeError, match=expected):
        calls[call](**argument)
    assert (queue.get(timeout=0), other.qsize(), queue.statistics().consumers) == ("a", 0, 0)


# Runs a program with a /dev/shm of its own, as in another container that shares the directory only.
APART = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh"]
OPENS = "import sys, shmq\nshmq.open(sys.argv[1]).queue('jobs').put('a'); print('opened')"


def apart(broker_dir: Path) -> tuple[int, str]:
    result = subprocess.run(
        [*APART, sys.executable, "-c", OPENS, str(broker_dir)], capture_output=True, text=True, timeout=600, check=False
    )
    return result.returncode, result.stdout + result.stderr


def test_a_broker_in_use_with_another_shm_is_refused(broker_dir: Path, tool: Callable[[str], str]) -> None:
    tool("unshare")
    if subprocess.run([*APART, "true"], capture_output=True, check=False).returncode:
        pytest.skip("not allowed to mount: run the tests as root, or in a user namespace")
    with shmq.open(broker_dir, memory=MEMORY) as broker:
        queue = broker.queue("jobs")
        queue.put("ours")
        status, text = apart(broker_dir)
        assert status == 1
        assert "BrokerError" in text
        assert "is in another /dev/shm, and in use" in text
        assert "--ipc" in text
        assert queue.get(timeout=0) == "ours"
        shmq.open(broker_dir).close()
    with Child("shmq.open(sys.argv[1]); say('open'); listen()", broker_dir) as child:
        assert child.line() == "open"
        assert apart(broker_dir)[0] == 1
        child.kill()
        name = json.loads((broker_dir / "segment").read_text())["name"]
        del broker, queue
        gc.collect()
        status, text = apart(broker_dir)
        assert (status, "opened" in text) == (0, True), text
        Path("/dev/shm", name).unlink()  # that of the dead: who opened the broker has another /dev/shm
