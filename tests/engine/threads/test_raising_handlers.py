"""A signal handler that raises amid a receive: its exception is what the caller sees, and no message was delivered."""

import contextlib
import gc
import random
import signal
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import shmq
from shmq.engine.handle.failure import dropped_text
from tests.engine.child import PATIENCE
from tests.engine.lifecycle.test_shutdown import finish, in_thread

Queue = shmq.Queue[Any]
Patch = pytest.MonkeyPatch


class Alarm(Exception):
    """The handler raises it."""


@pytest.fixture
def send() -> Iterator[Callable[[], None]]:
    """Sends this thread a signal whose handler raises Alarm."""

    def handler(number: int, frame: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGUSR1, handler)
    yield lambda: signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def strike(send: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """The same, the first time that it is called."""
    struck = False

    def once() -> None:
        nonlocal struck
        if not struck:
            struck = True
            send()

    yield once
    assert struck, "the signal was never sent"


def ahead(strike: Callable[[], None], work: Callable[..., Any]) -> Callable[..., Any]:
    def both(*arguments: Any) -> Any:
        strike()
        return work(*arguments)

    return both


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
@pytest.mark.parametrize("where", ["_check", "_tell_of_dropped", "_take_now"])
def test_what_a_handler_raises_amid_a_receive_reaches_the_caller_and_the_message_was_not_delivered(
    broker: shmq.Broker,
    queue: Queue,
    monkeypatch: Patch,
    strike: Callable[[], None],
    taken: Callable[[Any], Any],
    several: bool,
    where: str,
) -> None:
    """Shows G3."""
    queue.put_many(["a", "b"])
    made: Any = broker.consumer(queue, broker.queue("other")) if several else queue.consumer()
    with made as consumer:
        consumer.fileno()  # else the core does all of it, and no handler runs before the message is the caller's
        monkeypatch.setattr(consumer, where, behind(strike, getattr(consumer, where)))
        with pytest.raises(Alarm):
            taken(consumer)
        gc.collect()
        assert (queue.qsize(), queue.statistics().unsettled) == (2, 0)
        with consumer.receive(timeout=0) as m:  # and nothing is said of it: it was not the caller's fault
            assert (m.body, m.delivery_count) == ("a", 1)


def nothing() -> None:
    for _ in range(100):
        pass


def came(work: Callable[[], object], depth: int = 12) -> int:
    """How many Alarms the work and the time behind it raise.

    Each is caught at a depth of its own, for one that comes while another is dealt with ends the whole try.
    """
    count = 0
    try:
        count = came(work, depth - 1) if depth else 0
        (nothing if depth else work)()
        nothing()
    except Alarm:
        count += 1
    return count


@pytest.mark.parametrize("side", [ahead, behind])
@pytest.mark.parametrize(
    "where", ["_forgot", "_is_ours", "consumer.consumer.retry", "dead_lettering.outcome.retry_delay_ns"]
)
def test_what_a_handler_raises_while_a_dropped_message_goes_back_reaches_the_caller(
    queue: Queue, monkeypatch: Patch, strike: Callable[[], None], side: Any, where: str
) -> None:
    queue.put("a")
    with queue.consumer() as consumer:
        room, _, name = where.rpartition(".")
        owner = import_module(f"shmq.engine.{room}") if room else consumer
        monkeypatch.setattr(owner, name, side(strike, getattr(owner, name)))

        def drop() -> None:
            consumer.receive(timeout=0)  # gone at once; in a destructor nothing can be raised
            nothing()

        with pytest.raises(Alarm):
            drop()
        assert (queue.qsize(), queue.statistics().unsettled) == (1, 0)
        with pytest.raises(shmq.SettlementError, match="1 message of queue 'jobs' was dropped unsettled"):
            consumer.receive(timeout=0)
        with consumer.receive(timeout=0) as m:
            assert (m.body, m.delivery_count) == ("a", 2)


@pytest.mark.parametrize("handlers", [1, 2, 4, 5, 9])
def test_a_dropped_message_goes_back_however_many_handlers_raise_meanwhile(
    queue: Queue, monkeypatch: Patch, send: Callable[[], None], handlers: int
) -> None:
    queue.put("a")
    with queue.consumer() as consumer:
        forgot, sent = consumer._forgot, 0

        def struck(delivery: Any) -> None:
            nonlocal sent
            if sent < handlers:
                sent += 1
                send()
            forgot(delivery)

        monkeypatch.setattr(consumer, "_forgot", struck)
        assert came(lambda: consumer.receive(timeout=0)) == sent >= min(handlers, 5)
        assert (queue.qsize(), queue.statistics().unsettled, consumer._in_hand()) == (1, 0, [])
        with queue.receive(timeout=0) as m:
            assert (m.body, m.delivery_count) == ("a", 2)
        consumer._dropped.clear()


def test_a_handler_that_raises_while_credit_comes_back_keeps_nobody_from_the_consumer(
    queue: Queue, monkeypatch: Patch, strike: Callable[[], None]
) -> None:
    queue.put("a")
    with queue.consumer(prefetch=1) as consumer:
        m = consumer.receive(timeout=0)
        monkeypatch.setattr(consumer._room, "notify", ahead(strike, consumer._room.notify))
        held = [m]
        del m
        assert came(held.clear) == 1
        consumer._dropped.clear()
        thread, results = in_thread(lambda: consumer.receive(timeout=PATIENCE).ack())
        finish(thread)
        assert results == [None]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    ("where", "side"), [("_credit_came", ahead), ("_credit_came", behind), ("_wait_for_credit", ahead)]
)
def test_a_handler_that_raises_as_a_taker_comes_or_goes_costs_no_credit_and_no_row(
    broker: shmq.Broker, queue: Queue, monkeypatch: Patch, strike: Any, several: bool, where: str, side: Any
) -> None:
    queue.put_many(["a", "b"])
    queues = [queue, broker.queue("other")] if several else [queue]
    consumer = broker.consumer(*queues, prefetch=1)
    first = consumer.receive(timeout=0)
    with pytest.raises(shmq.Empty, match="prefetch=1"):
        consumer.receive(timeout=0)  # from now on it is told of credit that comes
    if where == "_credit_came":
        first.ack()
    monkeypatch.setattr(consumer, where, side(strike, getattr(consumer, where)))
    with pytest.raises(Alarm):
        consumer.receive(timeout=0)
    gc.collect()
    if not first.settled:
        with pytest.raises(shmq.Empty):
            consumer.receive(timeout=0)
        first.ack()
    with consumer.receive(timeout=0) as m:
        assert (m.body, m.delivery_count) == ("b", 1)
    consumer.close()
    assert [each.statistics().consumers for each in queues] == [0] * len(queues)


def test_what_a_handler_raises_while_a_loop_is_left_by_break_reaches_the_caller(
    queue: Queue, monkeypatch: Patch, strike: Callable[[], None]
) -> None:
    queue.put_many(["a", "b"])
    with queue.consumer() as consumer:
        monkeypatch.setattr(consumer, "_give_back", ahead(strike, consumer._give_back))
        kept: list[Any] = []

        def loop() -> None:
            for m in consumer:
                kept.append(m)
                if len(kept) == 2:
                    break

        assert came(loop) == 1
        assert (queue.qsize(), queue.statistics().unsettled) == (2, 0)
        kept.clear()
        with consumer.receive(timeout=0) as m:  # and the attempt was not counted
            assert (m.body, m.delivery_count) == ("a", 1)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("side", [ahead, behind])
@pytest.mark.parametrize("where", ["_give_back", "_give_row_back"])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_a_close_that_a_handler_has_ended_is_done_by_the_next_one_or_the_garbage_collector(
    broker: shmq.Broker,
    queue: Queue,
    monkeypatch: Patch,
    strike: Callable[[], None],
    side: Any,
    where: str,
    several: bool,
    again: bool,
) -> None:
    queue.put("a")
    consumer: Any = broker.consumer(queue, broker.queue("other")) if several else queue.consumer()
    m = consumer.receive(timeout=0)
    monkeypatch.setattr(shmq.Consumer, where, side(strike, getattr(shmq.Consumer, where)))
    with pytest.raises(Alarm):
        consumer.close()
    assert consumer.closed
    if again:
        consumer.close()
    del m, consumer
    gc.collect()
    assert (queue.qsize(), queue.statistics().unsettled, queue.statistics().consumers) == (1, 0, 0)
    assert queue.get(timeout=0) == "a"


def test_a_consumer_whose_end_a_handler_has_struck_leaves_no_row_and_no_message(
    queue: Queue, monkeypatch: Patch, strike: Callable[[], None]
) -> None:
    queue.put("a")
    consumer = queue.consumer()
    m = consumer.receive(timeout=0)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # pytest's would keep the consumer
    monkeypatch.setattr(shmq.Consumer, "__del__", ahead(strike, shmq.Consumer.__del__))
    del m, consumer
    gc.collect()
    assert (queue.qsize(), queue.statistics().unsettled, queue.statistics().consumers) == (1, 0, 0)


def drop_some(queue: Queue, consumer: Any) -> None:
    for _ in range(3):
        consumer.receive(timeout=0)


def drop_some_of_the_process(queue: Queue, consumer: Any) -> None:
    for _ in range(3):
        queue.receive(timeout=0)


def leave_loops(queue: Queue, consumer: Any) -> None:
    for _ in range(3):
        for _m in consumer:
            break


def close_some(queue: Queue, consumer: Any) -> None:
    with queue.consumer(prefetch=2) as another:
        another.receive_many(2, timeout=0)


class Timer:
    """Has one handler raise once, wherever the work is by then."""

    def __init__(self, chance: random.Random) -> None:
        self._chance, self._armed, self.raised = chance, False, 0
        self._before = signal.signal(signal.SIGALRM, self._handler)

    def _handler(self, number: int, frame: object) -> None:
        if self._armed:  # Python may run it late
            self._armed = False
            self.raised += 1
            raise Alarm

    def strike(self, work: Callable[[], object]) -> None:
        def start() -> None:
            self._armed = True
            signal.setitimer(signal.ITIMER_REAL, self._chance.uniform(2e-6, 1.2e-4))
            try:
                with contextlib.suppress(shmq.SettlementError, shmq.Empty):
                    work()
            finally:
                self._armed = False

        came(start)

    def close(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("work", [drop_some, drop_some_of_the_process, leave_loops, close_some])
def test_nothing_stays_in_hand_wherever_a_handler_raises(
    broker: shmq.Broker, monkeypatch: Patch, work: Callable[[Queue, Any], None]
) -> None:
    """Shows G3."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # pytest's would keep what the exception has seen
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    queue = broker.queue("jobs", max_attempts=0)
    queue.put_many(range(5))
    with contextlib.closing(Timer(random.Random(seed))) as timer, queue.consumer() as consumer:
        for attempt in range(3000):
            timer.strike(lambda: work(queue, consumer))
            if queue.statistics().unsettled:
                gc.collect()  # what an exception's frames have kept
            assert queue.statistics().unsettled == 0, f"attempt {attempt}, {timer.raised} handlers"
    assert timer.raised > 100
    gc.collect()
    assert queue.statistics().consumers <= 1  # that of the process


def test_what_a_handler_keeps_from_being_said_of_dropped_messages_is_said_by_the_next_call(
    queue: Queue, monkeypatch: Patch, strike: Callable[[], None]
) -> None:
    """Shows G3."""
    queue.put("a")
    with queue.consumer() as consumer:
        consumer.receive(timeout=0)
        monkeypatch.setattr("shmq.engine.consumer.consumer.dropped_text", behind(strike, dropped_text))
        with pytest.raises(Alarm):
            consumer.receive(timeout=0)
        with pytest.raises(shmq.SettlementError, match="dropped unsettled"):
            consumer.receive(timeout=0)
        with consumer.receive(timeout=0) as m:
            assert m.body == "a"


def test_what_cannot_be_given_back_does_not_hide_what_the_handler_raised(queue: Queue, monkeypatch: Patch) -> None:
    queue.put_many(["a", "b"])
    consumer = queue.consumer()
    consumer.fileno()
    take = consumer._take_now
    taken = 0

    def second_is_struck(timeout: float | None) -> Any:
        nonlocal taken
        taken += 1
        if taken == 2:
            consumer.close()  # as a handler may: the first one is not ours any more
            raise Alarm
        return take(timeout)

    monkeypatch.setattr(consumer, "_take_now", second_is_struck)
    with pytest.raises(Alarm):
        consumer.receive_many(2, timeout=0)
    assert (queue.qsize(), queue.statistics().unsettled) == (2, 0)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_the_caller_has_the_message_or_it_was_not_delivered_wherever_a_handler_raises(
    queue: Queue, many: bool, own: bool
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    queue.put_many(["a", "b", "c"])
    with contextlib.closing(Timer(random.Random(seed))) as timer, queue.consumer() as consumer:
        lender: Any = consumer if own else queue._implicit()
        taker: Any = consumer if own else queue
        for attempt in range(3000):
            box: list[Any] = []  # whatever has reached the caller is here, and is never dropped

            def take(box: list[Any] = box) -> None:
                for _ in range(20):
                    box.append(taker.receive_many(2, timeout=0) if many else [taker.receive(timeout=0)])
                    for m in box[-1]:
                        m.release()

            timer.strike(take)
            for held in box:
                for m in held:
                    if not m.settled:
                        with contextlib.suppress(shmq.SettlementError):  # struck amid its release
                            m.release()
            assert not lender._dropped, f"attempt {attempt}: dropped, and its caller never had it"
            assert queue.statistics().unsettled == 0, f"attempt {attempt}, {timer.raised} handlers"
    assert timer.raised > 100
