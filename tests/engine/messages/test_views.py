"""Bodies read in place: pinned for as long as somebody looks, whatever becomes of message and broker."""

import gc
from pathlib import Path
from typing import Any

import numpy
import pytest

import shmq
from tests.engine.conftest import MEMORY

BIG = 400_000


def pinned(broker: shmq.Broker) -> int:
    return sum(process.pinned_bytes for process in broker.statistics().processes)


@pytest.mark.parametrize("body", [b"", b"small", b"x" * BIG])
def test_a_view_is_read_only_and_stays_after_the_ack(queue: shmq.Queue[Any], body: bytes) -> None:
    queue.put(body)
    m = queue.receive(timeout=0)
    view = m.view()
    assert view.readonly
    m.ack()
    del m
    queue.put_many([b"y" * BIG] * 10)
    assert bytes(view) == body
    with pytest.raises(TypeError):
        view[:1] = b"z"


def test_a_pinned_block_is_counted_and_given_back_when_the_last_view_goes(
    broker: shmq.Broker, queue: shmq.Queue[Any]
) -> None:
    queue.put(b"x" * BIG)
    m = queue.receive(timeout=0)
    view = m.view()
    part = view[10:20]
    m.ack()
    del m
    assert pinned(broker) >= BIG
    del view
    gc.collect()
    assert pinned(broker) >= BIG
    del part
    gc.collect()
    assert pinned(broker) == 0


def test_an_array_is_read_in_place_and_stays_after_ack_and_close(broker_dir: Path) -> None:
    broker = shmq.open(broker_dir, memory=MEMORY)
    queue = broker.queue("jobs")
    queue.put(numpy.arange(BIG, dtype="int32").reshape(100, -1))
    m = queue.receive(timeout=0)
    array = m.array()
    assert not array.flags.writeable
    assert not array.flags.owndata
    m.ack()
    del m
    broker.close()
    assert int(array.sum()) == BIG * (BIG - 1) // 2
    with shmq.open(broker_dir) as again:
        assert pinned(again) >= array.nbytes
        again.queue("jobs").put_many([b"y" * BIG] * 10)
        assert int(array[99, -1]) == BIG - 1
    del array
    gc.collect()


def test_the_process_of_a_closed_broker_leaves_with_its_last_view(broker_dir: Path) -> None:
    first = shmq.open(broker_dir, memory=MEMORY)
    queue = first.queue("jobs")
    queue.put(b"x" * BIG)
    m = queue.receive(timeout=0)
    view = m.view()
    m.ack()
    del m
    first.close()
    with shmq.open(broker_dir) as second:
        assert len(second.statistics().processes) == 2
        del view
        gc.collect()
        assert len(second.statistics().processes) == 1


def test_other_bodies_than_arrays_are_arrays_of_bytes(queue: shmq.Queue[Any]) -> None:
    for body in (b"abc", b"x" * BIG):
        queue.put(body)
        with queue.receive(timeout=0) as m:
            array = m.array()
            assert array.dtype == numpy.uint8
            assert array.tobytes() == body
            assert not array.flags.writeable


def test_the_view_of_a_browsed_message_is_a_copy(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    queue.put(b"x" * BIG)
    (seen,) = queue.browse()
    view = seen.view()
    assert pinned(broker) == 0
    queue.get(timeout=0)
    assert bytes(view) == b"x" * BIG


def test_a_view_after_the_settlement_is_refused_only_if_the_body_has_gone(queue: shmq.Queue[Any]) -> None:
    queue.put(b"x" * BIG)
    m = queue.receive(timeout=0)
    m.ack()
    assert bytes(m.view()) == b"x" * BIG


def test_a_body_is_an_own_copy(queue: shmq.Queue[Any]) -> None:
    queue.put(numpy.zeros(BIG))
    with queue.receive(timeout=0) as m:
        body = m.body
        body[0] = 7.0
        assert float(m.array()[0]) == 0.0
        assert m.body is body
