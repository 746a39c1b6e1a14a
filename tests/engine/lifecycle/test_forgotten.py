"""Messages that nobody settled: dropped or kept, they are never lost and never silently held."""

import gc
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.engine.consumer import consumer as consumer_module
from tests.engine.child import Child, eventually
from tests.engine.lifecycle.test_shutdown import finish, in_thread


def taker_of(queue: shmq.Queue[Any], kind: str) -> Any:
    return queue if kind == "receive" else queue.consumer()


@pytest.mark.parametrize("kind", ["receive", "consumer"])
def test_dropped_messages_go_back_counted_and_the_next_call_says_so_once(queue: shmq.Queue[Any], kind: str) -> None:
    queue.put_many(range(5))
    taker = taker_of(queue, kind)
    kept = [taker.receive(timeout=0) for _ in range(3)]
    del kept[1:]
    gc.collect()
    with pytest.raises(shmq.SettlementError) as caught:
        taker.receive(timeout=0)
    text = str(caught.value)
    assert "2 messages" in text
    assert "'jobs'" in text
    assert "positions 1, 2" in text
    assert "with m:" in text
    again = taker.receive_many(2, timeout=0)
    assert [(m.body, m.delivery_count, m.redelivered) for m in again] == [(1, 2, True), (2, 2, True)]


def test_a_message_that_is_always_forgotten_ends_among_the_dead(broker: shmq.Broker) -> None:
    queue = broker.queue("forgotten", max_attempts=3)
    queue.put("poison")
    told = 0
    for _ in range(10):
        try:
            queue.receive(timeout=0)
        except shmq.SettlementError:
            told += 1
        except shmq.Empty:
            break
    assert told == 3
    with broker.queue("forgotten.dead").receive(timeout=0) as m:
        assert m.body == "poison"
        assert m.death is not None
        assert m.death.reason == "max_attempts"


@pytest.mark.parametrize("kind", ["receive", "consumer"])
def test_a_message_that_is_dropped_on_its_last_attempt_is_among_the_dead_at_once(
    broker: shmq.Broker, kind: str
) -> None:
    queue = broker.queue("forgotten", max_attempts=1)
    queue.put("poison")
    taker = taker_of(queue, kind)
    m = taker.receive(timeout=0)
    del m
    gc.collect()
    queue.join(timeout=0)
    assert queue.qsize() == 0
    (dead,) = broker.queue("forgotten.dead").browse()
    assert dead.death is not None
    assert (dead.death.reason, dead.death.error) == ("max_attempts", "dropped unsettled")
    with pytest.raises(shmq.SettlementError, match="1 message of queue 'forgotten' was dropped unsettled"):
        taker.receive(timeout=0)


@pytest.mark.parametrize("waits", [False, True])
def test_join_buries_what_nobody_may_be_given_any_more(broker: shmq.Broker, waits: bool) -> None:
    """A killed process had it; it dies by that, and nobody else comes to take."""
    queue = broker.queue("mortal", max_deaths=1, priorities=3)
    queue.put_many(["first", "second"])
    program = "q = shmq.open(sys.argv[1]).queue('mortal'); m = q.receive_many(2); say('has'); listen()"
    with Child(program, broker.path) as child:
        assert child.line() == "has"
        thread, results = in_thread(queue.join) if waits else (None, [])
        child.kill()
    if thread is not None:
        finish(thread)
        assert results == [None]
    else:
        eventually(lambda: queue.qsize() == 2, "both are back")
        queue.join(timeout=0)
    dead = [(m.body, m.death.reason) for m in broker.queue("mortal.dead").browse() if m.death is not None]
    assert dead == [("first", "max_deaths"), ("second", "max_deaths")]


def test_dropped_messages_and_no_next_call_give_a_resource_warning_at_close(queue: shmq.Queue[Any]) -> None:
    queue.put("a")
    consumer = queue.consumer()
    consumer.receive(timeout=0)
    with pytest.warns(ResourceWarning, match="1 message of queue 'jobs' was dropped unsettled"):
        consumer.close()
    assert queue.qsize() == 1


def test_dropped_messages_of_receive_warn_when_the_broker_is_closed() -> None:
    broker = shmq.open(memory="8MiB")
    queue = broker.queue("jobs")
    queue.put("a")
    queue.receive(timeout=0)
    with pytest.warns(ResourceWarning, match="dropped unsettled"):
        broker.close()


def test_a_message_that_is_kept_stays_visible_with_its_process(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    queue.put_many(["a", "b", "c"])
    with queue.consumer() as consumer:
        kept = consumer.receive_many(2, timeout=0)
        (process,) = broker.statistics().processes
        assert (process.unsettled, process.state) == (2, "live")
        assert (queue.statistics().unsettled, queue.qsize()) == (2, 1)
    assert [m.settled for m in kept] == [False, False]
    (process,) = broker.statistics().processes
    assert process.unsettled == 0
    assert queue.get_many(3, timeout=0) == ["a", "b", "c"]


def test_messages_kept_by_a_process_that_ends_normally_go_back_uncounted(
    broker_dir: Path, queue: shmq.Queue[Any]
) -> None:
    queue.put_many(["a", "b", "c"])
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
kept = [q.receive(timeout=5) for _ in range(2)]
c = q.consumer()
more = c.receive(timeout=5)
say([m.body for m in kept], more.body)
"""
    with Child(program, broker_dir) as child:
        assert child.end() == "['a', 'b'] c\n"
    messages = queue.receive_many(3, timeout=0)
    assert [(m.body, m.delivery_count) for m in messages] == [("a", 1), ("b", 1), ("c", 1)]
    assert queue.statistics().deaths == 0


def test_messages_of_a_killed_process_come_back_in_their_place_and_count(
    broker_dir: Path, broker: shmq.Broker, queue: shmq.Queue[Any]
) -> None:
    """Shows E13, C12, G2."""
    queue.put_many(["a", "b", "c"])
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
kept = [q.receive(timeout=5), q.consumer().receive(timeout=5)]
say("has", *(m.body for m in kept))
listen()
"""
    with Child(program, broker_dir) as child:
        assert child.line() == "has a b"
        child.kill()
    eventually(lambda: broker.statistics().queues["jobs"].ready == 3, "the messages back")
    messages = [queue.receive(timeout=5.0) for _ in range(3)]
    assert [(m.body, m.redelivered, m.delivery_count) for m in messages] == [
        ("a", True, 2),
        ("b", True, 2),
        ("c", False, 1),
    ]
    assert queue.statistics().deaths == 2


def test_the_nth_unsettled_message_stops_a_consumer_with_prefetch(queue: shmq.Queue[Any]) -> None:
    """Shows S18, S51, S84."""
    queue.put_many(range(5))
    with queue.consumer(prefetch=2) as consumer:
        first, _second = consumer.receive_many(10, timeout=0)
        with pytest.raises(shmq.Empty, match="prefetch=2"):
            consumer.receive(timeout=0.01)
        assert consumer.receive_many(10, timeout=0) == []
        first.ack()
        third = consumer.receive(timeout=0)
        assert third.body == 2
        third.release()
        assert consumer.receive(timeout=0).body == 2


@pytest.mark.in_hand
def test_a_consumer_that_is_stopped_by_its_prefetch_says_so_with_the_positions(
    queue: shmq.Queue[Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(consumer_module, "LONG_WAIT", 0.02)
    queue.put_many(range(5))
    with queue.consumer(prefetch=2) as consumer, caplog.at_level(logging.WARNING, "shmq.broker"):
        kept = consumer.receive_many(2, timeout=0)
        with pytest.raises(shmq.Empty):
            consumer.receive(timeout=2.0)
        assert len(kept) == 2
    (record,) = [record for record in caplog.records if record.name == "shmq.broker"]
    assert "positions 0, 1" in record.getMessage()
    assert record.queue == "jobs"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("prefetch", "error"), [(0, ValueError), (-1, ValueError), (True, TypeError), (1.5, TypeError), ("2", TypeError)]
)
def test_a_prefetch_is_a_positive_number(queue: shmq.Queue[Any], prefetch: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="prefetch"):
        queue.consumer(prefetch=prefetch)
    assert queue.statistics().consumers == 0


def test_a_message_dropped_after_the_broker_was_closed_is_silent() -> None:
    broker = shmq.open(memory="8MiB")
    queue = broker.queue("jobs")
    queue.put("a")
    m = queue.receive(timeout=0)
    broker.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del m
        gc.collect()


def test_a_warning_that_is_an_error_hinders_no_close(broker_dir: Path) -> None:
    broker = shmq.open(broker_dir, memory="8MiB")
    queue = broker.queue("jobs")
    queue.put("a")
    queue.receive(timeout=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ResourceWarning):
            broker.close()
    with pytest.raises(shmq.Closed):
        queue.put("b")
    with shmq.open(broker_dir) as again:
        assert len(again.statistics().processes) == 1
        assert again.queue("jobs").get(timeout=0) == "a"


ENDS: dict[str, tuple[Callable[[shmq.Queue[Any], Any], None], type[Exception]]] = {
    "the consumer is closed": (lambda q, c: c.close(), shmq.Closed),
    "the broker is closed": (lambda q, c: q.broker.close(), shmq.Closed),
    "the queue is deleted": (lambda q, c: q.delete(), shmq.NotFound),
    "the queue is shut down at once": (lambda q, c: q.shutdown(immediate=True), shmq.ShutDown),
}


@pytest.mark.parametrize("name", sorted(ENDS))
def test_a_wait_for_credit_ends_when(queue: shmq.Queue[Any], name: str) -> None:
    end, error = ENDS[name]
    queue.put_many(["a", "b"])
    consumer = queue.consumer(prefetch=1)
    held = consumer.receive(timeout=0)
    thread, results = in_thread(consumer.receive)
    eventually(consumer._room._waiters.__len__, "a waiting thread")  # type: ignore[attr-defined]
    end(queue, consumer)
    finish(thread)
    assert isinstance(results[0], error)
    assert not held.settled


def test_a_wait_for_credit_ends_when_a_message_is_settled(queue: shmq.Queue[Any]) -> None:
    """Shows S52, C9."""
    queue.put_many(["a", "b"])
    with queue.consumer(prefetch=1) as consumer:
        held = consumer.receive(timeout=0)
        thread, results = in_thread(consumer.receive)
        eventually(consumer._room._waiters.__len__, "a waiting thread")  # type: ignore[attr-defined]
        held.ack()
        finish(thread)
        m: Any = results[0]
        assert m.body == "b"
        m.ack()
