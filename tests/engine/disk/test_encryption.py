"""A broker with a key encrypts what it writes to disk. A process that opens it gives the key; no other learns it."""

import hashlib
import hmac
import json
import multiprocessing
import os
import pickle
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.core.segment import SHM_DIRECTORY
from shmq.engine.broker.broker import broker_membership
from shmq.runtime import open_to_look
from tests.engine.child import Child
from tests.support.health import check_sound
from tests.support.offspring import Offspring, Say

MEMORY = "16MiB"
LITTLE = 20_000  # bytes in memory
KEY = bytes(range(32))
OTHER = bytes(reversed(KEY))
TEXT = "a customer's secret "
COUNT = 4000

OPEN = f"broker = shmq.open(sys.argv[1], create=False, encryption_key=bytes.fromhex({KEY.hex()!r}))\n"


def text_of(number: int) -> str:
    return f"{TEXT}{number}"


def put_texts(queue: shmq.Queue[Any], numbers: range) -> None:
    for number in numbers:
        queue.put(text_of(number), timeout=5.0, headers={"name": f"Moneypenny {number}"})


def take_texts(queue: shmq.Queue[Any], numbers: range) -> None:
    for number in numbers:
        assert queue.get(timeout=5.0) == text_of(number)


def jobs_of(broker: shmq.Broker) -> shmq.Queue[Any]:
    return broker.queue("jobs", max_memory=LITTLE)


def on_disk(directory: Path) -> bytes:
    """All that lies there."""
    return b"".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    return path


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory=MEMORY, disk="1GiB", encryption_key=KEY) as opened:
        yield opened


@pytest.mark.parametrize("key", [None, KEY])
def test_nothing_that_was_put_can_be_read_on_disk(broker_dir: Path, key: bytes | None) -> None:
    """Shows S135, G8."""
    with shmq.open(broker_dir, memory=MEMORY, disk="1GiB", encryption_key=key) as broker:
        queue = jobs_of(broker)
        put_texts(queue, range(COUNT))
        assert queue.statistics().flowed
        found = on_disk(broker_dir)
        assert len(found) > COUNT * 50
        for words in TEXT.encode(), b"Moneypenny", b"customer":
            assert (words in found) == (key is None)
        assert KEY not in found
        assert KEY.hex().encode() not in found
        take_texts(queue, range(COUNT))
        check_sound(broker, queue)


def test_the_key_is_nowhere_in_shared_memory(broker: shmq.Broker) -> None:
    """Shows G8."""
    put_texts(jobs_of(broker), range(COUNT))
    segment = Path(SHM_DIRECTORY, broker_membership(broker).member.name).read_bytes()
    assert TEXT.encode() in segment  # what is in memory is not encrypted
    assert KEY not in segment
    assert KEY[:16] not in segment


def test_a_broker_knows_its_key_by_a_check_from_which_nobody_finds_it(broker: shmq.Broker, broker_dir: Path) -> None:
    check = hmac.new(KEY, b"shmq key check 1", hashlib.sha256).digest()[:16]
    assert broker_membership(broker).member.header()["key_check"] == check
    assert json.loads((broker_dir / "segment").read_text())["key_check"] == check.hex()


GIVEN: dict[str, Callable[[Path], Any]] = {
    "bytes": lambda path: KEY,
    "a bytearray": lambda path: bytearray(KEY),
    "a function": lambda path: lambda: KEY,
    "a path": lambda path: path,
    "a path as text": str,
    "a file of digits": lambda path: digits_in(path),
}


def digits_in(path: Path) -> Path:
    path.write_text(KEY.hex() + "\n")
    return path


@pytest.mark.parametrize("name", sorted(GIVEN))
def test_the_key_is_given_in_many_ways(broker_dir: Path, key_file: Path, name: str) -> None:
    with shmq.open(broker_dir, memory=MEMORY, disk="1GiB", encryption_key=GIVEN[name](key_file)) as broker:
        put_texts(jobs_of(broker), range(COUNT))
        with Child(OPEN + "say(broker.queue('jobs').get(timeout=5))", str(broker_dir)) as child:
            assert child.line() == text_of(0)
            child.end()


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33, b"g" * 64, KEY.hex().encode()[:-1]])
def test_a_file_without_a_key_is_refused_and_never_shown(broker_dir: Path, key_file: Path, content: bytes) -> None:
    key_file.write_bytes(content)
    with pytest.raises(ValueError, match=r"holds no key.*openssl rand -hex 32") as caught:
        shmq.open(broker_dir, encryption_key=key_file)
    assert not content or content.decode() not in str(caught.value)
    assert not broker_dir.exists()


def test_a_file_that_is_not_there_is_told_by_its_name(broker_dir: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no-key"):
        shmq.open(broker_dir, encryption_key="/nonexistent/no-key")


def test_a_key_in_the_broker_s_own_directory_is_refused(broker: shmq.Broker, broker_dir: Path, tmp_path: Path) -> None:
    (broker_dir / "key").write_bytes(KEY)
    (tmp_path / "link").symlink_to(broker_dir)
    for path in broker_dir / "key", tmp_path / "link" / "key":
        with pytest.raises(ValueError, match="lies in the broker's own directory"):
            shmq.open(broker_dir, encryption_key=path)


REFUSED = """
try:
    shmq.open(sys.argv[1], create=False, encryption_key=bytes.fromhex(sys.argv[2]) if sys.argv[2] else None)
    say("opened")
except shmq.OptionsMismatch as error:
    say(error)
"""


@pytest.mark.parametrize("key", [b"", OTHER])
def test_without_the_key_nobody_opens_it_and_nothing_is_lost(broker: shmq.Broker, broker_dir: Path, key: bytes) -> None:
    """Shows G8."""
    queue = jobs_of(broker)
    put_texts(queue, range(COUNT))
    with Child(REFUSED, str(broker_dir), key.hex()) as child:
        said = child.line()
        child.end()
    assert "with which it was made" in said
    assert "another encryption_key" in said if key else "no encryption_key is given here" in said
    assert OTHER.hex() not in said
    assert len(broker.statistics().processes) == 1
    take_texts(queue, range(COUNT))


def test_a_key_for_a_broker_that_has_none_is_refused(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory=MEMORY, disk="1GiB") as broker:
        for _ in range(2):  # in a process that has it open, and in one that does not
            with pytest.raises(shmq.OptionsMismatch, match="has no encryption_key"):
                shmq.open(broker_dir, encryption_key=KEY)
            broker.close()


def test_in_one_process_a_second_handle_needs_no_key_and_no_other_one_will_do(
    broker: shmq.Broker, broker_dir: Path
) -> None:
    put_texts(jobs_of(broker), range(COUNT))
    with shmq.open(broker_dir) as second:
        take_texts(jobs_of(second), range(COUNT))
    with pytest.raises(shmq.OptionsMismatch, match="has another encryption_key"):
        shmq.open(broker_dir, encryption_key=OTHER)


def put_and_take(broker: shmq.Broker, say: Say) -> None:
    queue = jobs_of(broker)
    put_texts(queue, range(COUNT, 2 * COUNT))
    take_texts(queue, range(COUNT // 2))
    say("done")


def test_a_process_that_has_only_looked_needs_the_key_to_open_it_and_uses_it(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory=MEMORY, disk="1GiB", encryption_key=KEY) as broker:
        put_texts(jobs_of(broker), range(COUNT))
    with open_to_look(broker_dir) as looking:
        with pytest.raises(shmq.OptionsMismatch, match="encrypts messages that go to disk"):
            shmq.open(broker_dir, create=False)
        with pytest.raises(shmq.OptionsMismatch, match="another encryption_key"):
            shmq.open(broker_dir, create=False, encryption_key=OTHER)
        with shmq.open(broker_dir, create=False, encryption_key=KEY) as broker:
            take_texts(jobs_of(broker), range(COUNT))
        assert looking.queue("jobs", create=False).qsize() == 0


def test_a_forked_child_has_the_key_of_its_parent(broker: shmq.Broker) -> None:
    queue = jobs_of(broker)
    put_texts(queue, range(COUNT))
    with Offspring(put_and_take, broker) as child:
        child.expect("done")
    take_texts(queue, range(COUNT // 2, 2 * COUNT))


def drain(queue: "shmq.Queue[Any]", count: int) -> None:
    take_texts(queue, range(count))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("anonymous", [False, True])
def test_a_child_of_multiprocessing_gets_the_key_with_its_queue(broker_dir: Path, method: str, anonymous: bool) -> None:
    with shmq.open(None if anonymous else broker_dir, memory=MEMORY, disk="1GiB", encryption_key=KEY) as broker:
        queue = jobs_of(broker)
        put_texts(queue, range(COUNT))
        context: Any = multiprocessing.get_context(method)
        worker = context.Process(target=drain, args=(queue, COUNT))
        worker.start()
        worker.join()
        assert worker.exitcode == 0
        assert queue.qsize() == 0


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("anonymous", [False, True])
@pytest.mark.parametrize("then", ["goes", "changes", "is none"])
def test_a_child_of_multiprocessing_has_the_key_of_its_parent_whatever_became_of_the_file(
    broker_dir: Path, key_file: Path, method: str, anonymous: bool, then: str
) -> None:
    with shmq.open(None if anonymous else broker_dir, memory=MEMORY, disk="64MiB", encryption_key=key_file) as broker:
        queue = jobs_of(broker)
        put_texts(queue, range(COUNT))
        if then == "goes":
            key_file.unlink()
        else:
            key_file.write_bytes(OTHER if then == "changes" else b"none")
        context: Any = multiprocessing.get_context(method)
        worker = context.Process(target=drain, args=(queue, COUNT))
        worker.start()
        worker.join()
        assert worker.exitcode == 0
        assert queue.qsize() == 0
        assert KEY not in pickle.dumps(queue)


def test_a_pickle_that_may_lie_anywhere_has_no_key(broker: shmq.Broker, broker_dir: Path) -> None:
    """Shows G8."""
    pickled = pickle.dumps(broker)
    assert KEY not in pickled
    loads = "import pickle\nthing = bytes.fromhex(sys.argv[2])\n"
    refused = "try:\n    pickle.loads(thing)\nexcept shmq.OptionsMismatch as error:\n    say(error)\n"
    opened = OPEN + "say(pickle.loads(thing).path)"
    with Child(loads + refused + opened, str(broker_dir), pickled.hex()) as child:
        assert "before a handle is unpickled" in child.line()
        assert child.line() == str(broker_dir)
        child.end()


def test_a_pickle_has_the_name_of_the_key_file(broker_dir: Path, key_file: Path) -> None:
    with shmq.open(broker_dir, memory=MEMORY, disk="1GiB", encryption_key=key_file) as broker:
        queue = jobs_of(broker)
        put_texts(queue, range(COUNT))
        pickled = pickle.dumps(queue)
        assert KEY not in pickled
        with Child("import pickle\nsay(pickle.loads(bytes.fromhex(sys.argv[1])).get(timeout=5))", pickled.hex()) as it:
            assert it.line() == text_of(0)
            it.end()


def check_body(message: "shmq.Message[Any]") -> None:
    assert message.body.startswith(TEXT)


def test_workers_of_a_pool_have_the_key(broker: shmq.Broker) -> None:
    queue = jobs_of(broker)
    put_texts(queue, range(500))
    assert queue.statistics().flowed
    counts = shmq.WorkerPool(queue, check_body, processes=2).run(until_empty=True)
    assert counts.handled == 500


def test_an_anonymous_broker_encrypts_too() -> None:
    with shmq.open(memory=MEMORY, disk="1GiB", encryption_key=lambda: secrets.token_bytes(32)) as broker:
        queue = jobs_of(broker)
        put_texts(queue, range(COUNT))
        found = on_disk(Path(broker_membership(broker).disk))
        assert len(found) > COUNT * 50
        assert TEXT.encode() not in found
        take_texts(queue, range(COUNT))


def test_a_new_segment_of_an_old_directory_has_the_same_key(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory=MEMORY, disk="1GiB", encryption_key=KEY) as broker:
        name = broker_membership(broker).member.name
    with suppress(FileNotFoundError):
        os.unlink(f"{SHM_DIRECTORY}/{name}")
    with pytest.raises(shmq.OptionsMismatch, match="no encryption_key is given here"):
        shmq.open(broker_dir)
    with shmq.open(broker_dir, encryption_key=KEY) as broker:
        queue = jobs_of(broker)
        put_texts(queue, range(COUNT))
        assert TEXT.encode() not in on_disk(broker_dir)
        take_texts(queue, range(COUNT))


def test_selectors_priorities_and_moves_work_on_what_is_encrypted(broker: shmq.Broker) -> None:
    jobs, found = broker.queue("by-level", max_memory=LITTLE, priorities=10), broker.queue("found")
    for number in range(COUNT):
        jobs.put(text_of(number), priority=number % 3, headers={"part": number % 100})
    assert jobs.move(found, selector="part = 7") == COUNT // 100
    assert jobs.purge(selector="part = 8") == COUNT // 100
    with jobs.consumer(selector="part = 9") as consumer:
        for _ in range(COUNT // 100):
            consumer.receive(timeout=5.0).ack()
    assert sum(1 for _ in jobs.browse()) == COUNT - 3 * (COUNT // 100)
    left = [number for number in range(COUNT) if number % 100 not in (7, 8, 9)]
    assert [jobs.get(timeout=5.0) for _ in left] == [
        text_of(number) for level in (2, 1, 0) for number in left if number % 3 == level
    ]
    check_sound(broker, jobs)


def test_the_budget_on_disk_counts_encrypted_bytes(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory=MEMORY, disk="2MiB", encryption_key=KEY) as broker:
        queue = broker.queue("jobs", codec="bytes")
        with pytest.raises(shmq.Full) as caught:
            queue.put_many((bytes(200) for _ in range(1 << 20)), timeout=0)
        assert caught.value.resource == "disk"
        assert 1_600_000 < broker.statistics().disk_used <= 2 << 20
        check_sound(broker, queue)
