"""Where it ends: full queues and memory, bodies and tables that are too large, names that cannot be."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child
from tests.engine.conftest import fill
from tests.engine.lifecycle.test_shutdown import finish, in_thread
from tests.support.offspring import Offspring, Say


def test_a_full_queue_says_how_full_it_is(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=3)
    queue.put_many(["a", "b", "c"])
    puts: list[Callable[[], object]] = [
        lambda: queue.put("d", timeout=0),
        lambda: queue.put({"d": 1}, timeout=0.01),
    ]
    for put in puts:
        with pytest.raises(shmq.Full) as caught:
            put()
        full = caught.value
        assert (full.resource, full.limit, full.used, full.accepted) == ("maxsize", 3, 3, 0)
        assert "'jobs'" in str(full)
        assert full.remedy
    m = queue.receive(timeout=0)
    with pytest.raises(shmq.Full):
        queue.put("d", timeout=0)  # unsettled ones count
    m.ack()
    queue.put("d", timeout=0)
    assert queue.get_many(5, timeout=0) == ["b", "c", "d"]


def test_a_producer_waits_for_room(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=1)
    queue.put("a")
    thread, results = in_thread(lambda: queue.put("b"))
    assert queue.get(timeout=5) == "a"
    assert queue.get(timeout=5) == "b"
    finish(thread)
    assert isinstance(results[0], int)


def test_put_many_puts_what_fits_and_says_how_many(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=100)
    with pytest.raises(shmq.Full) as caught:
        queue.put_many(range(150), timeout=0)
    assert (caught.value.accepted, caught.value.resource) == (100, "maxsize")
    assert queue.get_many(200, timeout=0) == list(range(100))
    queue.put_many(range(100), timeout=0)
    with pytest.raises(shmq.Full) as caught:
        queue.put("x", timeout=0)
    assert caught.value.accepted == 0


def test_a_ring_without_maxsize_is_full_at_its_slots(memory_only: shmq.Broker) -> None:
    """Shows G5."""
    queue = memory_only.queue("jobs", slot_size=4096)
    with pytest.raises(shmq.Full) as caught:
        queue.put_many([b""] * 100_000, timeout=0)
    full = caught.value
    assert full.resource == "maxsize"
    assert full.limit == full.used == full.accepted == queue.qsize()
    assert "larger maxsize" not in full.remedy  # it has none
    assert all(word in full.remedy for word in ("more consumers", "with a maxsize", "more memory"))
    queue.get(timeout=0)
    queue.put("x", timeout=0)


def test_full_memory_says_who_pins_it(broker_dir: Path, memory_only: shmq.Broker) -> None:
    """Shows G5."""
    queue = memory_only.queue("jobs")
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
loan = q.loan(2_000_000)
say("has")
listen()
"""
    with Child(program, broker_dir) as child:
        assert child.line() == "has"
        with pytest.raises(shmq.Full) as caught:
            fill(queue, b"x" * 1_000_000)
        full = caught.value
        assert full.resource == "memory"
        assert full.limit == 16 << 20
        assert 8 << 20 < full.used <= full.limit
        assert f"pid {child.pid}: 2,000,000" in str(full)
    queue.get(timeout=0)
    queue.put(b"x" * 1_000_000, timeout=0)


def test_a_producer_waits_for_memory(memory_only: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = memory_only.queue("jobs")
    with pytest.raises(shmq.Full):
        fill(queue, b"x" * 1_000_000)
    had = queue.qsize()
    thread, results = in_thread(lambda: queue.put(b"y" * 1_000_000))
    assert len(queue.get(timeout=5)) == 1_000_000
    finish(thread)
    assert isinstance(results[0], int)
    assert queue.qsize() == had


QUARTER = (16 << 20) // 4


@pytest.mark.parametrize("body", [b"x" * (QUARTER + 1), "x" * (QUARTER + 1), ["x" * (QUARTER + 1)]], ids=type)
def test_a_body_that_never_fits_is_refused_at_once_with_the_limit(queue: shmq.Queue[Any], body: Any) -> None:
    for put in (lambda: queue.put(body), lambda: queue.put_many([body])):
        with pytest.raises(shmq.MessageTooLarge) as caught:
            put()
        assert f"{QUARTER:,}" in str(caught.value)
        assert "memory" in caught.value.remedy
    assert queue.statistics().put == 0


def test_the_largest_body_fits(queue: shmq.Queue[Any]) -> None:
    queue.put(b"x" * QUARTER, timeout=0)
    assert len(queue.get(timeout=0)) == QUARTER


def test_loans_that_never_fit_are_refused_at_once(queue: shmq.Queue[Any]) -> None:
    with pytest.raises(shmq.MessageTooLarge):
        queue.loan(QUARTER + 1)
    with pytest.raises(shmq.MessageTooLarge):
        queue.loan_array((QUARTER, 2), "uint8")


def test_no_body_is_larger_than_a_gibibyte(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="8GiB") as broker:
        with pytest.raises(shmq.MessageTooLarge, match="1,073,741,824") as caught:
            broker.queue("jobs").loan((1 << 30) + 1)
        assert "split" in caught.value.remedy


def test_headers_that_are_too_large_are_refused(queue: shmq.Queue[Any]) -> None:
    with pytest.raises(ValueError):
        queue.put("a", headers={"x": "y" * 100_000})
    assert queue.statistics().put == 0


def test_a_queue_has_1024_consumers_and_one_too_many_is_refused_with_who_holds_how_many(queue: shmq.Queue[Any]) -> None:
    consumers = [queue.consumer() for _ in range(1024)]
    queue.put("for the last one")
    consumers[-1].receive(timeout=0).ack()
    with pytest.raises(shmq.ConsumerRefused) as caught:
        queue.consumer()
    assert "1,024 consumers of 1,024, 0 waiting threads, 1,087 places for both" in str(caught.value)
    assert queue.statistics().consumers == 1024
    queue.put("for a thread without a consumer")
    assert queue.get(timeout=1) == "for a thread without a consumer"
    consumers.pop().close()
    with queue.consumer() as last:
        queue.put("a")
        last.receive(timeout=0).ack()
    for consumer in consumers:
        consumer.close()
    assert queue.statistics().consumers == 0


def open_consumers(path: Path, count: int, say: Say) -> None:
    queue = shmq.open(path).queue("jobs", create=False)
    consumers = [queue.consumer() for _ in range(count)]
    say(str(len(consumers)))
    signal.pause()


def test_rows_of_killed_consumers_are_there_for_the_next_one(broker_dir: Path, queue: shmq.Queue[Any]) -> None:
    consumers = [queue.consumer() for _ in range(24)]
    with Offspring(open_consumers, broker_dir, 1000) as crowd:
        crowd.expect("1000")
        with pytest.raises(shmq.ConsumerRefused):
            queue.consumer()
        crowd.kill()
    consumers.append(queue.consumer())
    assert queue.statistics().consumers == 25
    with pytest.raises(shmq.Empty):
        queue.get(timeout=0.001)


@pytest.mark.parametrize("name", ["a", "x" * 200, "ä" * 100, "with space", "päth.name-1", "日本"])
def test_names_of_1_to_200_bytes_are_kept(broker: shmq.Broker, name: str) -> None:
    queue = broker.queue(name)
    assert queue.name == name
    assert [q.name for q in broker.queues()] == [name]
    broker.queue(name, create=False).put("a")
    assert queue.get(timeout=0) == "a"


BAD_NAMES = ["", "x" * 201, "ä" * 100 + "x", "a/b", "/", "a\0b", "a\nb", "\x1f", "\x7f", "\x85", "\ud800"]


@pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
def test_names_that_cannot_be_are_refused(broker: shmq.Broker, name: str) -> None:
    with pytest.raises(ValueError):
        broker.queue(name)
    with pytest.raises(ValueError):
        broker.queue("jobs", dead_letter=name)
    assert broker.queues() == []


@pytest.mark.parametrize("name", [7, b"jobs", ["jobs"]])
def test_a_name_is_text(broker: shmq.Broker, name: Any) -> None:
    with pytest.raises(TypeError):
        broker.queue(name)


def test_one_queue_too_many_is_refused_with_the_limit(broker_dir: Path) -> None:
    def make_many(broker: shmq.Broker) -> None:
        for n in range(5000):
            broker.queue(f"q{n}", maxsize=1, slot_size=128)

    with shmq.open(broker_dir, memory="1GiB") as broker, pytest.raises(shmq.BrokerError) as caught:
        make_many(broker)
    assert "queues" in str(caught.value)


def test_a_queue_for_which_there_is_no_memory_says_how_much_is_used(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="8MiB", disk=0) as broker:
        with pytest.raises(shmq.Full, match="'large'") as caught:
            broker.queue("large", maxsize=1_000_000)
        assert caught.value.resource == "memory"
        assert 0 < caught.value.used < caught.value.limit == 8 << 20


def test_a_queue_that_is_not_there_is_named_and_no_earlier_failure_is_told_with_it(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB") as broker:
        with pytest.raises(shmq.MessageTooLarge):
            broker.queue("jobs").put(bytes(8 << 20))
        with pytest.raises(shmq.NotFound, match="there is no queue 'missing'") as caught:
            broker.queue("missing", create=False)
        assert "bytes" not in str(caught.value)


def test_a_directory_without_a_broker_is_not_found_whoever_may_write_there() -> None:
    with pytest.raises(shmq.BrokerNotFound):
        shmq.open("/tmp", create=False)
    with pytest.raises(shmq.BrokerNotFound, match="is not a directory"):
        shmq.open(__file__, create=False)
