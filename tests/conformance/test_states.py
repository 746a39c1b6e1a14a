"""What an entry is, step by step, and who may make it so."""

import ast
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.conformance.conftest import KINDS
from tests.engine.child import Child
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
    queue.put_many("abc")
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
    q.put_many("abcde")
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


def test_a_body_is_made_and_read_by_those_who_put_and_take(broker: shmq.Broker, queue: Queue) -> None:
    """Waking executes nothing of a consumer in the producer. Shows S47, S48."""
    where: dict[str, set[int]] = {"encode": set(), "decode": set()}

    def encode(body: int) -> bytes:
        where["encode"].add(threading.get_ident())
        return b"%d" % body

    def decode(body: memoryview) -> int:
        where["decode"].add(threading.get_ident())
        return int(bytes(body))

    own = broker.queue(queue.name, codec=shmq.Codec("application/x-number", encode, decode))
    taken: list[int] = []

    def take() -> None:
        for m in own.consumer():
            with m:
                taken.append(m.body)

    consumer = threading.Thread(target=take)
    consumer.start()
    for number in range(20):
        own.put(number)
    own.shutdown()
    consumer.join(30)
    assert taken == list(range(20))
    assert where == {"encode": {threading.get_ident()}, "decode": {consumer.ident}}


# ---- the pointers, and this folder itself ------------------------------------------------------------------------

POINTER = re.compile(r"\b(shmq_\w+)\(&?[\w>.()-]*ring->(?:head|tail)\b")
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
    assert POINTER.findall("shmq_store_seq(&q->ring->head, 5)") == ["shmq_store_seq"]


def test_each_test_of_behaviour_here_runs_on_every_kind_of_queue() -> None:
    """Shows S29, S96."""
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
