"""Memory of a message to be: written in place, seen by nobody before its commit."""

import gc
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy
import pytest

import shmq
from tests.engine.child import Child, eventually
from tests.engine.conftest import MEMORY, fail


def pinned(broker: shmq.Broker) -> int:
    return sum(process.pinned_bytes for process in broker.statistics().processes)


def test_a_loan_is_seen_by_nobody_before_its_commit(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    with queue.loan(5, headers={"source": "web"}) as loan:
        loan.view[:] = b"hello"
        assert queue.qsize() == 0
        assert pinned(broker) >= 5
    with queue.receive(timeout=0) as m:
        assert m.body == b"hello"
        assert dict(m.headers) == {"source": "web"}
    del m
    assert pinned(broker) == 0


def test_a_loan_left_by_an_exception_never_was(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    loan = queue.loan(5)
    loan.view[:] = b"hello"
    with pytest.raises(ZeroDivisionError), loan:
        fail()
    assert queue.statistics().put == 0
    assert pinned(broker) == 0
    with pytest.raises(shmq.SettlementError, match="abandoned"):
        loan.commit()


def test_an_array_is_filled_in_place(queue: shmq.Queue[Any]) -> None:
    with queue.loan_array((480, 640), "uint8", headers={"camera": 1}) as loan:
        loan.array[:] = 7
        loan.array[0, 0] = 255
    out = queue.get(timeout=0)
    assert (out.shape, out.dtype, int(out[0, 0]), int(out[479, 639])) == ((480, 640), numpy.uint8, 255, 7)


@pytest.mark.parametrize(("shape", "dtype"), [(5, "float64"), ((), "int32"), ((0, 3), "int8"), ((2, 3, 4), ">u2")])
def test_arrays_of_all_shapes_arrive(queue: shmq.Queue[Any], shape: Any, dtype: str) -> None:
    with queue.loan_array(shape, dtype) as loan:
        loan.array[...] = 1
    out = queue.get(timeout=0)
    assert out.shape == ((shape,) if isinstance(shape, int) else shape)
    assert out.dtype == numpy.dtype(dtype)
    assert bool((out == 1).all())


def test_the_array_is_read_only_after_the_commit(queue: shmq.Queue[Any]) -> None:
    loan = queue.loan_array(100, "int64")
    array = loan.array
    array[:] = 1
    loan.commit()
    with pytest.raises(ValueError):
        array[0] = 2
    with pytest.raises(ValueError):
        loan.array[0] = 2
    assert int(queue.get(timeout=0).sum()) == 100
    queue.put_many([b"x" * 800] * 100)
    assert int(array.sum()) == 100


def test_a_live_slice_at_commit_is_a_buffer_error_and_the_loan_is_still_open(queue: shmq.Queue[Any]) -> None:
    loan = queue.loan(5)
    part = loan.view[1:3]
    with pytest.raises(BufferError):
        loan.commit()
    assert queue.qsize() == 0
    part[:] = b"xy"
    part.release()
    loan.view[0:1] = b"a"
    loan.view[3:] = b"bc"
    loan.commit()
    assert queue.get(timeout=0) == b"axybc"


def test_a_live_slice_at_abandon_is_a_buffer_error(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    loan = queue.loan(5)
    part = loan.view[1:3]
    with pytest.raises(BufferError):
        loan.abandon()
    part.release()
    loan.abandon()
    loan.abandon()
    assert pinned(broker) == 0


def test_the_view_of_a_loan_that_is_over_is_refused(queue: shmq.Queue[Any]) -> None:
    loan = queue.loan(5)
    view = loan.view
    loan.commit()
    with pytest.raises(ValueError):
        view[0]
    with pytest.raises(shmq.SettlementError, match="committed"):
        loan.view  # noqa: B018
    with pytest.raises(shmq.SettlementError, match="committed"):
        loan.commit()


def test_fewer_bytes_than_were_lent_may_be_put(queue: shmq.Queue[Any]) -> None:
    loan = queue.loan(1000)
    loan.view[:5] = b"hello"
    loan.commit(nbytes=5)
    assert queue.get(timeout=0) == b"hello"


@pytest.mark.parametrize("nbytes", [6, -1, 2.5, "5"])
def test_a_wrong_number_of_bytes_leaves_the_loan_open(queue: shmq.Queue[Any], nbytes: Any) -> None:
    loan = queue.loan(5)
    with pytest.raises((ValueError, TypeError)):
        loan.commit(nbytes=nbytes)
    loan.view[:] = b"hello"
    loan.commit()
    assert queue.get(timeout=0) == b"hello"


@pytest.mark.parametrize("nbytes", [-1, True, 1.5, "5"])
def test_a_loan_of_a_wrong_size_is_refused(queue: shmq.Queue[Any], nbytes: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        queue.loan(nbytes)


@pytest.mark.parametrize(
    ("shape", "dtype"), [(-1, "int8"), ((2, -1), "int8"), (3, "object"), ("3", "int8"), (2.5, "i4")]
)
def test_an_array_that_cannot_be_is_refused(
    broker: shmq.Broker, queue: shmq.Queue[Any], shape: Any, dtype: str
) -> None:
    with pytest.raises((ValueError, TypeError)):
        queue.loan_array(shape, dtype)
    assert pinned(broker) == 0


def test_a_dropped_loan_is_abandoned_with_a_resource_warning(broker: shmq.Broker, queue: shmq.Queue[Any]) -> None:
    loans = [queue.loan(100_000)]
    assert pinned(broker) >= 100_000
    with pytest.warns(ResourceWarning, match=r"100,000 bytes on queue 'jobs'"):
        loans.clear()
    assert pinned(broker) == 0
    assert queue.statistics().put == 0


def test_a_settled_loan_is_dropped_silently(queue: shmq.Queue[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        queue.loan(5).commit()
        queue.loan(5).abandon()
        gc.collect()


def test_the_loans_of_a_killed_process_never_were(broker_dir: Path, broker: shmq.Broker) -> None:
    queue = broker.queue("jobs")
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
loans = [q.loan(1_000_000) for _ in range(5)]
loans[0].view[:5] = b"hello"
say("has")
listen()
"""
    with Child(program, broker_dir) as child:
        assert child.line() == "has"
        assert pinned(broker) >= 5_000_000
        child.kill()
    eventually(lambda: pinned(broker) == 0, "the memory back")
    assert queue.statistics().put == 0
    loans = [queue.loan(1_000_000, timeout=0) for _ in range(10)]
    for loan in loans:
        loan.abandon()


def test_loans_hold_their_memory_and_give_it_back(queue: shmq.Queue[Any]) -> None:
    loans: list[shmq.Loan] = []

    def borrow() -> None:
        while True:
            loans.append(queue.loan(1_000_000, timeout=0))

    with pytest.raises(shmq.Full) as caught:
        borrow()
    assert caught.value.resource == "memory"
    count = len(loans)
    for loan in loans:
        loan.abandon()
    loans = [queue.loan(1_000_000, timeout=0) for _ in range(count)]
    for loan in loans:
        loan.abandon()


def test_a_commit_without_room_leaves_the_loan_open(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=1)
    queue.put("a")
    loan = queue.loan(5, timeout=0)
    loan.view[:] = b"hello"
    with pytest.raises(shmq.Full):
        loan.commit()
    queue.get(timeout=0)
    loan.commit()
    assert queue.get(timeout=0) == b"hello"


def test_an_array_commit_without_room_leaves_the_loan_open(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=1)
    queue.put("a")
    loan = queue.loan_array(50_000, "int32", timeout=0)
    loan.array[:] = 3
    with pytest.raises(shmq.Full):
        loan.commit()
    loan.array[0] = 4
    queue.get(timeout=0)
    loan.commit()
    assert int(queue.get(timeout=0).sum()) == 150_001
    del loan
    gc.collect()
    assert pinned(broker) == 0


def test_loans_open_at_the_close_of_the_broker_are_over(broker_dir: Path) -> None:
    broker = shmq.open(broker_dir, memory=MEMORY)
    loan = broker.queue("jobs").loan(5)
    loan.view[:] = b"hello"
    broker.close()
    with pytest.raises((shmq.Closed, shmq.SettlementError)):
        loan.commit()
    loan.abandon()
    with shmq.open(broker_dir) as again:
        assert again.queue("jobs").statistics().put == 0
        eventually(lambda: pinned(again) == 0, "the memory back")


def test_a_loan_that_waits_in_its_commit_is_nobody_elses(broker: shmq.Broker) -> None:
    queue = broker.queue("small", maxsize=1)
    queue.put(b"first")
    loan = queue.loan(5000)
    loan.view[:] = b"x" * 5000
    ids: list[int] = []
    thread = threading.Thread(target=lambda: ids.append(loan.commit()))
    thread.start()
    eventually(lambda: queue.statistics().producers_waiting == 1, "the commit waits")
    for call in (loan.abandon, lambda: loan.view, lambda: loan.array, loan.commit):
        with pytest.raises(RuntimeError, match="one thread at a time"):
            call()
    assert queue.get() == b"first"
    thread.join()
    assert queue.get() == b"x" * 5000
    assert len(ids) == 1
    with pytest.raises(shmq.SettlementError):
        loan.view  # noqa: B018
