"""A signal handler that raises amid a receive: its exception is what the caller sees, and no message was delivered."""

import gc
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import shmq
from shmq.engine import consumer as consumer_module

Queue = shmq.Queue[Any]
Patch = pytest.MonkeyPatch


class Alarm(Exception):
    """What the handler raises."""


@pytest.fixture
def strike() -> Iterator[Callable[[], None]]:
    """Sends this thread a signal whose handler raises Alarm, the first time that it is called."""
    struck = False

    def handler(number: int, frame: object) -> None:
        raise Alarm

    def once() -> None:
        nonlocal struck
        if not struck:
            struck = True
            signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handler)
    yield once
    signal.signal(signal.SIGUSR1, before)
    assert struck, "the signal was never sent"


def behind(strike: Callable[[], None], work: Callable[..., Any]) -> Callable[..., Any]:
    def both(*arguments: Any) -> Any:
        answer = work(*arguments)
        strike()
        return answer

    return both


def receive(consumer: Any) -> Any:
    return consumer.receive(timeout=0)


def receive_many(consumer: Any) -> Any:
    return consumer.receive_many(3, timeout=0)


def loop(consumer: Any) -> Any:
    return next(iter(consumer))


@pytest.mark.parametrize("taken", [receive, receive_many, loop])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("where", ["_check", "_tell_of_dropped", "_leave"])
def test_what_a_handler_raises_amid_a_receive_reaches_the_caller_and_the_message_was_not_delivered(
    broker: shmq.Broker,
    queue: Queue,
    monkeypatch: Patch,
    strike: Callable[[], None],
    taken: Callable[[Any], Any],
    several: bool,
    where: str,
) -> None:
    queue.put_many(["a", "b"])
    made: Any = broker.consumer(queue, broker.queue("other")) if several else queue.consumer()
    with made as consumer:
        monkeypatch.setattr(consumer, where, behind(strike, getattr(consumer, where)))
        with pytest.raises(Alarm):
            taken(consumer)
        gc.collect()
        assert (queue.qsize(), queue.statistics().unsettled) == (2, 0)
        with consumer.receive(timeout=0) as m:  # and nothing is said of it: it was not the caller's fault
            assert (m.body, m.delivery_count) == ("a", 1)


def test_what_a_handler_raises_while_a_dropped_message_goes_back_reaches_the_caller(
    queue: Queue, monkeypatch: Patch, strike: Callable[[], None]
) -> None:
    queue.put("a")
    consumer = queue.consumer()
    monkeypatch.setattr(queue, "_retry_delay_ns", behind(strike, queue._retry_delay_ns))

    def drop() -> None:
        consumer.receive(timeout=0)  # gone at once; in a destructor nothing can be raised
        for _ in range(1000):
            pass

    with pytest.raises(Alarm):
        drop()
    assert (queue.qsize(), queue.statistics().unsettled) == (1, 0)
    consumer.close()


def test_what_a_handler_keeps_from_being_said_of_dropped_messages_is_said_by_the_next_call(
    queue: Queue, monkeypatch: Patch, strike: Callable[[], None]
) -> None:
    queue.put("a")
    with queue.consumer() as consumer:
        consumer.receive(timeout=0)
        monkeypatch.setattr(consumer_module, "_dropped_text", behind(strike, consumer_module._dropped_text))
        with pytest.raises(Alarm):
            consumer.receive(timeout=0)
        with pytest.raises(shmq.SettlementError, match="dropped unsettled"):
            consumer.receive(timeout=0)
        with consumer.receive(timeout=0) as m:
            assert m.body == "a"


def test_what_cannot_be_given_back_does_not_hide_what_the_handler_raised(queue: Queue, monkeypatch: Patch) -> None:
    queue.put_many(["a", "b"])
    consumer = queue.consumer()
    take = consumer._take
    taken = 0

    def second_is_struck(timeout: float | None) -> Any:
        nonlocal taken
        taken += 1
        if taken == 2:
            consumer.close()  # as a handler may: the first one is not ours any more
            raise Alarm
        return take(timeout)

    monkeypatch.setattr(consumer, "_take", second_is_struck)
    with pytest.raises(Alarm):
        consumer.receive_many(2, timeout=0)
    assert (queue.qsize(), queue.statistics().unsettled) == (2, 0)
