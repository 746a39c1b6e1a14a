"""A type checker's knowledge of bodies, from the queue's codec to the message's body. Checked, never run."""

from collections.abc import Iterator, Mapping
from typing import Any, assert_type

import shmq
from shmq import Broker, Codec, Consumer, Header, Loan, Message, Queue, WorkerPool


class Job:
    def __init__(self, number: int) -> None:
        self.number = number


def decode(data: memoryview) -> Job:
    return Job(int(bytes(data)))


JOBS: Codec[Job] = Codec("application/x-job", lambda job: str(job.number).encode(), decode)


def handles(broker: Broker) -> None:
    assert_type(shmq.open(), Broker)
    assert_type(broker.queue("a"), Queue[Any])
    assert_type(broker.queue("a", maxsize=5, dead_letter="b"), Queue[Any])
    assert_type(broker.queue("a", dead_letter=broker.queue("b")), Queue[Any])
    assert_type(broker.queue("a", codec="bytes"), Queue[bytes])
    assert_type(broker.queue("a", codec="pickle"), Queue[Any])
    assert_type(broker.queue("a", codec=JOBS), Queue[Job])
    assert_type(broker.queues(), list[Queue[Any]])
    broker.queue("a", maxsise=5)  # type: ignore[call-overload]
    broker.queue("a", maxsize="5")  # type: ignore[call-overload]
    broker.queue("a", codec="json")  # type: ignore[call-overload]
    broker.queue("a", last_value="key")  # type: ignore[call-overload]  # refused when it runs, too
    broker.queue("a", sort_by="key")  # type: ignore[call-overload]
    assert_type(broker.queue("a", max_memory="5MiB"), Queue[Any])
    broker.queue("a", durability="os")  # type: ignore[call-overload]
    shmq.open("a", disk="1GiB")
    shmq.open("a", durability="sync")  # type: ignore[arg-type]


def bodies(queue: Queue[Job], plain: Queue[Any]) -> None:
    assert_type(queue.put(Job(1), timeout=1.0, headers={"a": 1}), int)
    queue.put_many([Job(1), Job(2)], timeout=None, headers=None)
    assert_type(queue.get(), Job)
    assert_type(queue.get(timeout=0), Job)
    assert_type(queue.get_many(5, timeout=1.0), list[Job])
    assert_type(queue.receive(timeout=5), Message[Job])
    assert_type(queue.receive_many(5), list[Message[Job]])
    assert_type(queue.consumer(prefetch=5), Consumer[Job])
    assert_type(queue.browse(start=7, follow=True), Iterator[Message[Job]])
    assert_type(queue.loan(5), Loan)
    assert_type(queue.loan_array((2, 3), "uint8"), Loan)
    assert_type(plain.get(), Any)
    queue.put("a")  # type: ignore[arg-type]
    queue.put_many(["a"])  # type: ignore[list-item]
    queue.put(Job(1), 5.0)  # type: ignore[call-arg]
    queue.put(Job(1), header={"a": 1})  # type: ignore[call-arg]
    queue.put(Job(1), headers={"a": []})  # type: ignore[dict-item]
    queue.put(Job(1), durability="os")  # type: ignore[call-arg]
    queue.alter(sort_by="key")  # type: ignore[call-arg]
    queue.get(5)  # type: ignore[call-arg]
    queue.get(block=False)  # type: ignore[call-arg]
    queue.browse(start="last")  # type: ignore[arg-type]


def messages(queue: Queue[Job]) -> None:
    for m in queue.consumer():
        with m as same:
            assert_type(same, Message[Job])
            assert_type(m.body, Job)
            assert_type(m.headers, Mapping[str, Header])
            assert_type(m.queue, Queue[Job])
    with queue.consumer() as consumer:
        assert_type(consumer, Consumer[Job])
        assert_type(consumer.receive_many(5), list[Message[Job]])
    m.body = Job(1)  # type: ignore[misc]


def pools(queue: Queue[Job], results: Queue[int]) -> None:
    def handle(m: Message[Job]) -> int:
        return m.body.number

    def other(m: Message[str]) -> int:
        return len(m.body)

    assert_type(WorkerPool(queue, handle, results=results), WorkerPool[Job, int])
    WorkerPool(queue, other)  # type: ignore[arg-type]
