"""A put that waits for room without a time-out says so, once, and goes on waiting."""

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.engine.handle import long_wait
from shmq.mp import Queue as ObjectQueue
from tests.engine.child import Child, eventually
from tests.engine.conftest import fill

SHORT = 0.05  # seconds, in place of five


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    assert long_wait.LONG_WAIT == 5.0
    monkeypatch.setattr(long_wait, "LONG_WAIT", SHORT)


@pytest.fixture
def words() -> Iterator[Callable[[], list[str]]]:
    """The lines that shmq.queue has logged so far, from any thread."""
    records: list[logging.LogRecord] = []

    class Noting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler = Noting()
    logger = logging.getLogger("shmq.queue")
    logger.addHandler(handler)
    yield lambda: [record.getMessage() for record in records]
    logger.removeHandler(handler)


def waiting(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call, name="test-put", daemon=True)
    thread.start()
    return thread


def commit(queue: shmq.Queue[Any]) -> None:
    with queue.loan(5) as loan:
        loan.view[:] = b"hello"


@pytest.mark.parametrize(
    "put",
    [
        lambda queue: queue.put("one more"),
        lambda queue: queue.put(b"one more", timeout=float("inf")),
        lambda queue: queue.put({"one": "more"}, headers={"a": 1}),
        lambda queue: queue.put(bytes(100_000)),
        lambda queue: queue.put_many(["one more"]),
        commit,
    ],
    ids=["put", "endless", "encoded", "large", "put_many", "loan"],
)
def test_each_way_to_put_names_queue_limit_takers_and_remedy(
    broker: shmq.Broker, words: Callable[[], list[str]], put: Callable[[shmq.Queue[Any]], object]
) -> None:
    queue = broker.queue("jobs", maxsize=2)
    queue.put_many(["a", "b"])
    thread = waiting(lambda: put(queue))
    eventually(words, "a warning")
    (said,) = words()
    assert "'jobs'" in said
    assert "full at its maxsize (2 of 2 messages)" in said
    assert "consumers: none" in said
    assert "larger maxsize" in said
    assert "goes on waiting" in said
    assert thread.is_alive()
    assert queue.get() == "a"
    thread.join(30.0)
    assert queue.qsize() == 2


def test_the_limit_in_bytes_is_named(broker: shmq.Broker, words: Callable[[], list[str]]) -> None:
    queue = broker.queue("jobs", max_bytes=10)
    queue.put(b"0123456789")
    thread = waiting(lambda: queue.put(b"more"))
    eventually(words, "a warning")
    assert "full at its max_bytes (10 of 10 bytes)" in words()[0]
    queue.get()
    thread.join(30.0)


def test_a_queue_without_a_limit_names_its_slots(memory_only: shmq.Broker, words: Callable[[], list[str]]) -> None:
    queue = memory_only.queue("jobs")
    slots = queue._settings()["slots"]
    thread = waiting(lambda: queue.put_many(bytes(1) for _ in range(slots + 1)))
    eventually(words, "a warning")
    assert f"all slots in use ({slots:,} of {slots:,} messages)" in words()[0]
    queue.get()
    while thread.is_alive():  # a full ring has room in runs
        queue.get_many(1000, timeout=0)
        thread.join(0.01)


@pytest.mark.parametrize("put", ["put", "loan"])
def test_the_memory_of_the_broker_is_named(memory_only: shmq.Broker, words: Callable[[], list[str]], put: str) -> None:
    queue = memory_only.queue("jobs")
    with pytest.raises(shmq.Full):
        fill(queue, bytes(1 << 20))
    thread = waiting(lambda: queue.put(bytes(1 << 20)) if put == "put" else queue.loan(1 << 20).abandon())
    eventually(words, "a warning")
    assert "the broker's memory is used up (" in words()[0]
    assert "bytes used" in words()[0]
    queue.get()
    thread.join(30.0)
    assert not thread.is_alive()


def test_who_could_take_is_named(broker: shmq.Broker, broker_dir: Path, words: Callable[[], list[str]]) -> None:
    queue = broker.queue("jobs", maxsize=1)
    queue.put("a")
    taker = 'm = shmq.open(sys.argv[1]).queue("jobs").receive(); say(m.body); listen(); m.ack(); say("done")'
    with Child(taker, broker_dir) as child:
        assert child.line() == "a"
        thread = waiting(lambda: queue.put("b"))
        eventually(words, "a warning")
        assert f"consumers: pid {child.pid};" in words()[0]
        child.tell("go on")
        child.line()
        thread.join(30.0)
    assert queue.get() == "b"


def test_one_call_says_it_once_however_long_it_waits(broker: shmq.Broker, words: Callable[[], list[str]]) -> None:
    queue = broker.queue("jobs", maxsize=1)
    thread = waiting(lambda: queue.put_many(range(4)))
    eventually(words, "a warning")
    for n in range(3):
        thread.join(0.6)  # two pieces of a wait, in each of which it could say it again
        assert queue.get(timeout=30.0) == n
    thread.join(30.0)
    assert len(words()) == 1


def test_a_put_with_a_time_out_says_nothing_but_its_error(broker: shmq.Broker, words: Callable[[], list[str]]) -> None:
    queue = broker.queue("jobs", maxsize=1)
    queue.put("a")
    for call in (lambda: queue.put("b", timeout=0.6), lambda: queue.put_many(["b"], timeout=0.6)):
        with pytest.raises(shmq.Full):
            call()
    assert words() == []


@pytest.mark.usefixtures("own_process_broker")
def test_the_queues_of_multiprocessing_say_it_too(words: Callable[[], list[str]]) -> None:
    queue: ObjectQueue[int] = ObjectQueue(1)
    queue.put(1)
    thread = waiting(lambda: queue.put(2))
    eventually(words, "a warning")
    assert "full at its maxsize (1 of 1 message)" in words()[0]
    assert queue.get() == 1
    thread.join(30.0)
    assert queue.get() == 2


def test_a_handler_of_the_log_that_waits_for_the_same_room_does_not_log_that_for_ever(broker: shmq.Broker) -> None:
    queue = broker.queue("log", maxsize=1)
    queue.put("a")
    came = []

    class Putting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            came.append(record)
            queue.put(record.getMessage())

    handler, logger = Putting(), logging.getLogger("shmq.queue")
    logger.addHandler(handler)
    try:
        thread = waiting(lambda: queue.put("b"))
        eventually(lambda: came, "a warning")
        thread.join(0.6)
        assert queue.get() == "a"
        assert "'log'" in queue.get(timeout=30.0)
        assert queue.get(timeout=30.0) == "b"
        thread.join(30.0)
    finally:
        logger.removeHandler(handler)
    assert len(came) == 1


def test_without_any_logging_set_up_it_is_on_stderr(tmp_path: Path) -> None:
    program = """
import shmq.engine.handle.long_wait
shmq.engine.handle.long_wait.LONG_WAIT = 0.05
from shmq.mp import Queue
q = Queue(1)
q.put(1)
taking = threading.Thread(target=lambda: (listen(), q.get()))
taking.start()
say("full")
q.put(2)
taking.join()
say(q.get())
"""
    with Child(program, folder=tmp_path) as child:
        assert child.line() == "full"
        assert child.process.stderr is not None
        said = child.process.stderr.readline().decode()
        assert said.startswith("put into queue 'mp-")
        assert "full at its maxsize (1 of 1 message)" in said
        child.tell("take")
        assert child.end() == "2\n"
