"""The states of an entry, step by step, and the processes that may bring it into each."""

import ast
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.conformance.conftest import KINDS
from tests.conformance.crowd import asleep
from tests.engine.child import Child, eventually
from tests.repo.tree import ROOT, files, name_of

Queue = shmq.Queue[Any]


def counts(queue: Queue) -> tuple[int, int]:
    statistics = queue.statistics()
    return statistics.ready, statistics.unsettled


def test_what_is_delivered_is_acquired_and_by_whom_is_known(broker: shmq.Broker, queue: Queue) -> None:
    """Available, acquired by a process with a name, gone. Shows S57, S77, S93, E4."""
    queue.put("a")
    assert counts(queue) == (1, 0)
    m = queue.receive(timeout=0)
    assert counts(queue) == (0, 1)
    (process,) = broker.statistics().processes
    assert (process.pid, process.unsettled) == (os.getpid(), 1)
    with pytest.raises(shmq.Empty):
        queue.receive(timeout=0)
    with pytest.raises(shmq.Empty):
        queue.get(timeout=0)
    m.ack()
    assert counts(queue) == (0, 0)
    assert list(queue.browse()) == []


def test_the_ways_to_take_differ_in_what_they_leave(queue: Queue) -> None:
    """Shows S20, S83."""
    queue.put_many(["a", "b", "c"])
    assert [m.body for m in queue.browse()] == ["a", "b", "c"]
    assert counts(queue) == (3, 0)
    assert queue.get(timeout=0) == "a"
    assert counts(queue) == (2, 0)
    borrowed = queue.receive(timeout=0)
    assert counts(queue) == (1, 1)
    with queue.consumer() as consumer:
        own = consumer.receive(timeout=0)
        assert counts(queue) == (0, 2)
        assert own.body == "c"
    assert counts(queue) == (1, 1)  # with the consumer its message went back
    borrowed.ack()


def test_what_comes_back_is_marked_and_only_attempts_are_counted(queue: Queue) -> None:
    """Shows E8, E13."""
    queue.put("a")
    seen = []
    for outcome in ("release", "retry", "release", "retry"):
        m = queue.receive(timeout=0)
        seen.append((m.redelivered, m.delivery_count))
        assert [browsed.delivery_count for browsed in queue.browse()] == [m.delivery_count - 1]
        getattr(m, outcome)()
    m = queue.receive(timeout=0)
    assert [*seen, (m.redelivered, m.delivery_count)] == [(False, 1), (True, 1), (True, 2), (True, 2), (True, 3)]


def test_what_everybody_left_behind_is_there_for_who_comes_later(broker_dir: Path, kind: dict[str, Any]) -> None:
    """All processes of the broker are killed, one with entries in hand and one half settled. Shows E19, S88, R3."""
    program = f"""
q = shmq.open(sys.argv[1]).queue("jobs", **{kind!r})
if len(sys.argv) > 2:
    q.put_many([*"abcde"])
held = q.receive_many(2)
held[0].ack()
say("here")
listen()
"""
    with Child(program, broker_dir, "first") as first:
        assert first.line() == "here"
        with Child(program, broker_dir) as second:
            assert second.line() == "here"
            second.kill()
            first.kill()
    with shmq.open(broker_dir) as broker:
        queue = broker.queue("jobs")
        again = queue.receive_many(5, timeout=5)
        assert [(m.body, m.redelivered) for m in again] == [("b", True), ("d", True), ("e", False)]
        assert queue.statistics().acked == 2


CONSUMER = """
import threading
where = set()
def decode(body):
    where.add((os.getpid(), threading.get_ident()))
    return bytes(body).decode()
def encode(body):
    raise AssertionError("a consumer encodes nothing")
numbers = shmq.Codec("application/x-maker", encode, decode)
queue = shmq.open(sys.argv[1]).queue("jobs", codec=numbers)
with queue.consumer() as consumer:
    say("here")
    for m in consumer:
        with m:
            say(m.body)
say(where == {(os.getpid(), threading.main_thread().ident)})
"""


def test_a_producer_executes_nothing_of_a_consumer_nor_the_other_way_round(
    broker_dir: Path, broker: shmq.Broker, queue: Queue
) -> None:
    """Bodies say who made them; two processes, of which one sleeps for each message. Shows S47, S48."""

    def encode(body: int) -> bytes:
        return b"%d of %d in %d" % (body, os.getpid(), threading.get_ident())

    def decode(body: memoryview) -> int:
        raise AssertionError(f"a producer decodes nothing: {bytes(body)!r}")

    own: shmq.Queue[int] = broker.queue(queue.name, codec=shmq.Codec("application/x-maker", encode, decode))
    with Child(CONSUMER, broker_dir) as consumer:
        assert consumer.line() == "here"
        for number in range(20):
            eventually(lambda: asleep(queue) == 1, "a consumer that sleeps")
            own.put(number)
            assert consumer.line() == f"{number} of {os.getpid()} in {threading.get_ident()}"
        own.shutdown()
        assert consumer.end() == "True\n"


# ---- every kind of queue -----------------------------------------------------------------------------------------


def told(queue: Queue, script: Callable[[Queue, list[object]], None]) -> list[object]:
    """The notes of the script, and the counts of its queue at the end."""
    notes: list[object] = []
    script(queue, notes)
    s = queue.statistics()
    notes.append((s.ready, s.unsettled, s.delayed, s.bytes, s.put, s.delivered, s.acked, s.redelivered))
    notes.append((s.dead_lettered, s.dropped, s.expired, s.consumers, s.shut_down))
    return notes


def row(m: shmq.Message[Any]) -> tuple[object, ...]:
    return m.body, m.redelivered, m.delivery_count, dict(m.headers), m.priority


def whole_life(queue: Queue, notes: list[object]) -> None:
    """All that can be done to a queue whatever its kind."""
    queue.put_many(["a", "b", "c"], headers={"n": 1})
    queue.put({"d": 4}, headers={"n": 2})
    queue.put(b"e" * 1000)
    with queue.loan(1) as loan:
        loan.view[:] = b"f"
    notes += [row(m) for m in queue.browse()] + [queue.qsize()]
    with queue.consumer(prefetch=3) as consumer, queue.consumer(selector="n = 2") as other:
        held = consumer.receive_many(5, timeout=0)
        notes += [row(m) for m in held] + [row(m) for m in other.receive_many(5, timeout=0)]
        held[1].release()
        held[0].retry("no luck")
        held[2].reject("never")
        notes += [row(m) for m in consumer.receive_many(2, timeout=0)]
    notes += [row(m) for m in queue.browse(selector="n IS NOT NULL")]
    queue.receive(timeout=0).release(delay=3600)
    notes += [queue.get(timeout=0), queue.qsize(), queue.purge(selector="n = 2")]
    queue.shutdown()
    notes += [row(m) for m in queue.consumer().receive_many(9, timeout=0)]
    try:
        queue.put("too late")
    except shmq.ShutDown as error:
        notes.append(type(error))
    queue.reopen()
    notes += [queue.put("again") > 0, queue.get_many(9, timeout=0), queue.purge(), [row(m) for m in queue.browse()]]
    queue.join(timeout=0)


def test_a_kind_of_queue_changes_nothing_but_the_order(broker: shmq.Broker, queue: Queue, kind: dict[str, Any]) -> None:
    """The same life of a standard queue, and of one of this kind, is told in the same words. Shows S29, S96."""
    standard = broker.queue("standard") if kind else broker.queue("standard", **kind)
    assert told(queue, whole_life) == told(standard, whole_life)
    dead = [
        [(m.body, m.death.reason) for m in broker.queue(f"{name}.dead").browse() if m.death]
        for name in ("standard", queue.name)
    ]
    assert dead == [[("c", "rejected")]] * 2


def test_priorities_change_the_order_and_nothing_else(broker: shmq.Broker, kind: dict[str, Any]) -> None:
    """Shows S29."""
    ordered, plain = broker.queue("ordered", **{**kind, "priorities": 10}), broker.queue("plain", **kind)
    for number in range(30):
        ordered.put(number, priority=number * 7 % 10)
        plain.put(number)
    seen = [m.body for m in ordered.browse()]
    assert sorted(seen) == [m.body for m in plain.browse()] == list(range(30))
    assert seen == sorted(range(30), key=lambda number: (-(number * 7 % 10), number))
    assert ordered.get_many(30, timeout=0) == seen
    assert plain.get_many(30, timeout=0) == list(range(30))


# ---- the pointers, and this folder itself ------------------------------------------------------------------------

POINTER = re.compile(r"\b(shmq_\w+)\(&?[\w>.()-]*(?:ring|shm)->(?:head|tail)\b")
READS = {"shmq_load_seq", "shmq_load_acquire", "shmq_load_relaxed"}


def test_pointers_move_by_compare_and_swap_only() -> None:
    """In the sources: nothing else writes to head or tail. Shows S7."""
    calls = [
        (name_of(path), call)
        for path in files("native/src", ".c")
        for call in POINTER.findall(path.read_text())
        if call not in READS
    ]
    assert calls
    assert {call for _, call in calls} == {"shmq_cas_seq"}
    assert POINTER.findall("shmq_store_seq(&r->shm->head, 5)") == ["shmq_store_seq"]


def test_each_test_of_behaviour_here_runs_on_every_kind_of_queue() -> None:
    assert "standard" in KINDS
    lost = []
    for path in sorted((ROOT / "tests" / "conformance").glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and node.args.args:
                arguments = {argument.arg for argument in node.args.args}
                made = re.findall(r"broker\.queue\('\w+'[^)]*\)", ast.unparse(node))
                if not arguments & {"queue", "kind"} or (made and "kind" not in arguments):
                    lost.append(f"{path.name}::{node.name}")
    assert not lost, f"for one kind only: {lost}"
