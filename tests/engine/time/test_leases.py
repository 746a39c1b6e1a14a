"""Leases, as their users see them."""

import os
import signal
from typing import Any

import pytest

import shmq
from tests.engine.child import eventually
from tests.engine.time.test_time import dead_of
from tests.support.offspring import Offspring, Say


def test_a_message_that_is_held_too_long_is_taken_back(broker: shmq.Broker) -> None:
    """Shows E9, E11, R8."""
    queue: shmq.Queue[Any] = broker.queue("leased", lease=2.0)
    queue.put_many(["a", "b"])
    m = queue.receive(timeout=0)
    other = queue.consumer()
    eventually(lambda: queue.qsize() == 2, "the end of the lease")
    with other.receive(timeout=0) as again:
        assert (again.body, again.delivery_count, again.redelivered) == ("a", 2, True)
        for late in (m.ack, m.touch):
            with pytest.raises(shmq.SettlementError, match=r"lease"):
                late()
    assert broker.statistics().processes[0].unsettled == 0


def test_a_stopped_consumer_loses_what_it_has_leased(broker: shmq.Broker) -> None:
    """Shows E11, R3, R8, G3."""
    queue: shmq.Queue[Any] = broker.queue("leased", lease=0.1)
    queue.put("a")
    with Offspring(hold_one, queue) as child:
        child.expect("a")
        assert queue.get(timeout=30) == "a"
        os.waitpid(child.pid, os.WUNTRACED)  # it has stopped: else the signal that lets it go on comes too early
        os.kill(child.pid, signal.SIGCONT)
        child.expect("SettlementError")


def hold_one(queue: shmq.Queue[Any], say: Say) -> None:
    m = queue.receive(timeout=30)
    say(m.body)
    os.kill(os.getpid(), signal.SIGSTOP)  # until its lease was taken, however late that is
    try:
        m.ack()
    except shmq.SettlementError as error:
        say(type(error).__name__)


def test_a_touch_in_time_keeps_the_message(broker: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = broker.queue("leased", lease=2)
    queue.put("a")
    with queue.receive(timeout=0) as m:
        for _ in range(5):
            m.touch()
            assert queue.statistics().unsettled == 1
    with pytest.raises(shmq.SettlementError, match="cannot be touched"):
        m.touch()
    assert queue.statistics().acked == 1


def test_a_lease_that_ends_too_often_ends_among_the_dead(broker: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = broker.queue("leased", lease=0.03, max_attempts=2)
    queue.put("a")
    kept = []
    for _ in range(2):
        kept.append(queue.receive(timeout=30))
        eventually(lambda: queue.qsize() == 1, "the end of the lease")
    with pytest.raises(shmq.Empty):
        queue.receive(timeout=0)
    assert dead_of(queue) == [("a", "max_attempts")]


def test_a_lease_that_is_altered_holds_for_what_is_taken_from_then_on(queue: shmq.Queue[Any]) -> None:
    queue.put_many(["a", "b"])
    kept = queue.receive(timeout=0)
    queue.alter(lease=0.03)
    lent = queue.receive(timeout=0)
    eventually(lambda: queue.qsize() == 1, "the end of the lease")
    kept.ack()
    with pytest.raises(shmq.SettlementError, match="lease of"):
        lent.ack()
