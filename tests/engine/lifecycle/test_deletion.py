"""Holders of messages of a deleted queue settle them as ever, and nothing of the queue stays."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.core.queue import reap
from tests.engine.child import Child, eventually


def touch_and_ack(m: shmq.Message[Any]) -> None:
    m.touch()
    m.ack()


# The calls that a holder may make on a message of a deleted queue, and the reasons in "jobs.dead" afterwards.
LATE: dict[str, tuple[Callable[[shmq.Message[Any]], None], list[str]]] = {
    "ack": (lambda m: m.ack(), []),
    "release": (lambda m: m.release(), []),
    "release later": (lambda m: m.release(delay=60), []),
    "retry": (lambda m: m.retry("no"), []),
    "the last retry": (lambda m: m.retry("no"), ["max_attempts"]),
    "reject": (lambda m: m.reject("no"), ["rejected"]),
    "touch": (touch_and_ack, []),
}


@pytest.mark.parametrize("name", sorted(LATE))
@pytest.mark.parametrize("size", [10, 100_000])
def test_a_message_in_hand_outlives_its_queue(broker: shmq.Broker, name: str, size: int) -> None:
    """Shows R16."""
    settle, reasons = LATE[name]
    queue = broker.queue("jobs", max_attempts=1 if "last" in name else 5)
    queue.put_many(["a" * size, "b"])
    m = queue.receive(timeout=0)
    queue.delete()
    with pytest.raises(shmq.NotFound):
        broker.queue("jobs", create=False)
    anew = broker.queue("jobs", max_attempts=7)  # of the same name, at once
    anew.put("other")
    assert m.body == "a" * size
    settle(m)
    assert m.settled
    with pytest.raises(shmq.SettlementError):
        m.ack()
    assert anew.get_many(5, timeout=0) == ["other"]
    dead = list(broker.queue("jobs.dead").browse()) if reasons else []
    assert [d.death.reason for d in dead if d.death] == reasons
    del m  # a body that was read is pinned, also after the settlement
    gc.collect()
    usage = broker._membership.live().usage()
    assert (usage["blocks_used"], usage["damage"]) == (len(dead) if size > 200 else 0, 0)


def test_a_closed_consumer_lets_go_of_messages_of_a_deleted_queue(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs")
    queue.put_many(["a" * 10_000] * 3)
    with queue.consumer() as consumer:
        held = consumer.receive_many(3, timeout=0)
        queue.delete()
        held[0].ack()
        with pytest.raises(shmq.NotFound):
            consumer.receive(timeout=0)
    held.clear()
    assert broker._membership.live().usage()["blocks_used"] == 0


HOLDER = """
q = shmq.open(sys.argv[1]).queue("jobs", create=False)
held = [q.receive(timeout=0) for _ in range(3)]
say("holds")
listen()
held[0].ack()
say("settled")
listen()
"""


@pytest.mark.memory
@pytest.mark.parametrize("dead_letter", [None, "dead_letters"])
@pytest.mark.parametrize("end", ["kill", "leave"])
def test_what_a_process_holds_of_a_deleted_queue_goes_with_it(
    broker_dir: Path, broker: shmq.Broker, dead_letter: str | None, end: str
) -> None:
    """Shows E15, R3, R16, G2."""
    queue = broker.queue("jobs", dead_letter=dead_letter) if dead_letter else broker.queue("jobs")
    queue.put_many([str(i) * 10_000 for i in range(4)])
    dead_letters = broker.queue("dead_letters")
    with Child(HOLDER, broker_dir) as child:
        assert child.line() == "holds"
        queue.delete()
        assert dead_letters.qsize() == (1 if dead_letter else 0)
        child.tell("go")
        assert child.line() == "settled"
        if end == "kill":
            child.kill()
        else:
            child.tell("go")
            child.end()
    wanted = 3 if dead_letter else 0

    def is_buried() -> bool:
        reap(broker._membership.live())
        return dead_letters.statistics().ready == wanted

    eventually(is_buried, "the burial")
    assert sorted(m.body[0] for m in dead_letters.browse()) == (["1", "2", "3"] if dead_letter else [])
    eventually(lambda: broker._membership.live().usage()["blocks_used"] == wanted, "the blocks")


def test_statistics_of_the_dead_letters_count_what_a_dead_holder_of_a_deleted_queue_had(
    broker_dir: Path, broker: shmq.Broker
) -> None:
    """Shows E15. Also where somebody else, who then left, has given it back and not buried it."""
    queue, dead_letters = broker.queue("jobs", dead_letter="dead_letters"), broker.queue("dead_letters")
    queue.put_many(["a", "b", "c"])
    with Child(HOLDER, broker_dir) as child:
        assert child.line() == "holds"
        queue.delete()
        child.kill()
    with Child("shmq.open(sys.argv[1])", broker_dir) as other:  # whoever opens gives back what the dead held
        other.end()
    assert dead_letters.statistics().ready == 3
    assert broker.statistics().queues["dead_letters"].ready == 3


def test_a_closed_handle_hinders_no_burial(broker_dir: Path, broker: shmq.Broker) -> None:
    broker.queue("dead_letters")
    with shmq.open(broker_dir) as other:
        queue = other.queue("jobs", dead_letter="dead_letters", dead_letter_expired=True)
    queue.put("late", ttl=0)
    queue.put("bad")
    queue.receive(timeout=0).reject("no")
    assert queue.statistics().ready == 0
    found = [m.death.reason for m in broker.queue("dead_letters").browse() if m.death]
    assert sorted(found) == ["expired", "rejected"]


def test_the_memory_of_a_deleted_queue_comes_back_with_its_last_message(broker: shmq.Broker) -> None:
    def free() -> int:
        broker.queue("probe", maxsize=1024).delete()  # whoever makes a queue gives back what is used no more
        broker.queue("probe", maxsize=1024).delete()
        return -broker._membership.live().usage()["used"]

    before = free()
    queue = broker.queue("jobs", maxsize=4096)
    queue.put("a")
    m = queue.receive(timeout=0)
    queue.delete()
    del queue
    assert free() < before
    m.ack()
    del m
    assert free() == before
