"""Pickling: Broker and Queue travel, everything borrowed does not."""

import gc
import multiprocessing
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq import Codec
from tests.engine.child import Child, eventually
from tests.engine.conftest import MEMORY

LOADS = "import pickle; thing = pickle.loads(bytes.fromhex(sys.argv[1]))\n"


def encode_upper(text: str) -> bytes:
    return text.upper().encode()


def decode_upper(data: memoryview) -> str:
    return bytes(data).decode()


UPPER: Codec[str] = Codec("text/x-upper", encode_upper, decode_upper)


def worker(queue: "shmq.Queue[Any]", results: "shmq.Queue[Any]") -> None:
    with queue.receive(timeout=20) as m:
        results.put(m.body * 2)


def test_a_queue_travels_to_another_process(broker_dir: Path, queue: shmq.Queue[Any]) -> None:
    queue.put("a")
    with Child(LOADS + "say(thing.get(timeout=5)); thing.put('b')", pickle.dumps(queue).hex()) as child:
        assert child.line() == "a"
        child.end()
    assert queue.get(timeout=0) == "b"


def test_a_broker_travels_to_another_process(broker: shmq.Broker) -> None:
    with Child(LOADS + "say(thing.path); thing.queue('x').put(1)", pickle.dumps(broker).hex()) as child:
        assert child.line() == broker.path
        child.end()
    assert broker.queue("x", create=False).qsize() == 1


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_an_anonymous_queue_is_passed_to_processes_however_they_start(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    with shmq.open(memory="8MiB") as broker:
        jobs, results = broker.queue("jobs"), broker.queue("results")
        process = context.Process(target=worker, args=(jobs, results))
        process.start()
        jobs.put(21)
        assert results.get(timeout=30) == 42
        process.join(30)
        assert process.exitcode == 0


def test_a_pickle_of_an_anonymous_broker_is_void_after_its_last_member() -> None:
    broker = shmq.open(memory="8MiB")
    pickles = [pickle.dumps(broker), pickle.dumps(broker.queue("jobs"))]
    broker.close()
    for data in pickles:
        with pytest.raises(shmq.BrokerNotFound, match="anonymous"):
            pickle.loads(data)


def test_a_pickle_of_an_anonymous_broker_is_good_while_one_member_lives() -> None:
    program = """
import pickle
broker = shmq.open(memory="8MiB")
broker.queue("jobs").put("a")
say(pickle.dumps(broker.queue("jobs")).hex())
listen()
broker.close()
say("closed")
listen()
"""
    with Child(program) as maker:
        data = bytes.fromhex(maker.line())
        queue = pickle.loads(data)
        maker.tell("close")
        assert maker.line() == "closed"
        assert queue.get(timeout=5) == "a"
        queue.broker.close()
        with pytest.raises(shmq.BrokerNotFound):
            pickle.loads(data)
        maker.tell("end")
        maker.end()


def test_an_unpickled_queue_is_equal_and_does_not_keep_the_broker_open(broker_dir: Path) -> None:
    broker = shmq.open(broker_dir, memory=MEMORY)
    queue = broker.queue("jobs")
    copies = [pickle.loads(pickle.dumps(queue)) for _ in range(5)]
    assert all(copy == queue and hash(copy) == hash(queue) for copy in copies)
    assert len(broker.statistics().processes) == 1
    copies.clear()
    gc.collect()
    broker.close()
    with pytest.raises(shmq.Closed):
        queue.put("a")


def test_the_codec_travels_with_the_queue(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", codec=UPPER)
    copy = pickle.loads(pickle.dumps(queue))
    copy.put("abc")
    assert queue.get(timeout=0) == "ABC"
    raw = pickle.loads(pickle.dumps(broker.queue("jobs", codec="bytes")))
    queue.put("abc")
    assert raw.get(timeout=0) == b"ABC"


def test_a_queue_that_was_deleted_is_not_found_by_its_pickle(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    data = pickle.dumps(queue)
    queue.delete()
    with pytest.raises(shmq.NotFound):
        pickle.loads(data)
    assert broker.queues() == []


@pytest.mark.parametrize("kind", ["message", "browsed", "consumer", "loan"])
def test_what_is_borrowed_cannot_be_pickled(queue: shmq.Queue[Any], kind: str) -> None:
    queue.put("a")
    things: dict[str, Any] = {
        "browsed": next(queue.browse()),
        "message": queue.receive(timeout=0),
        "consumer": queue.consumer(),
        "loan": queue.loan(5),
    }
    with pytest.raises(TypeError, match=r"m\.body" if kind in ("message", "browsed") else None):
        pickle.dumps(things[kind])
    things["loan"].abandon()
    things["message"].ack()


def test_a_closed_broker_cannot_be_pickled(broker_dir: Path) -> None:
    broker = shmq.open(broker_dir, memory=MEMORY)
    broker.close()
    with pytest.raises(shmq.Closed):
        pickle.dumps(broker)


def test_a_process_that_got_a_queue_leaves_when_it_ends(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    with Child(LOADS + "m = thing.receive(timeout=5)", pickle.dumps(queue).hex()) as child:
        queue.put("a")
        child.end()
    eventually(lambda: [p.pid for p in broker.statistics().processes] == [os.getpid()], "only us")
    m = queue.receive(timeout=0)
    assert m.delivery_count == 1
    m.ack()
