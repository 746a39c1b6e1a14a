"""Everything but a Loan may be shared by threads."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import shmq

THREADS = 8
EACH = 500


def run_threads(work: Callable[[int], None], count: int = THREADS) -> None:
    """Runs `work(number)` in threads that start together; raises what the first of them raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("way", ["get", "get_many", "receive", "receive_many", "consumer", "prefetch", "loop"])
def test_threads_share_one_queue_and_one_consumer(queue: shmq.Queue[Any], way: str) -> None:
    """Shows S8, S49."""
    taken: list[int] = []
    consumer = queue.consumer(prefetch=3 if way == "prefetch" else None)

    def produce(number: int) -> None:
        for n in range(EACH):
            queue.put(number * EACH + n)

    def settle(m: shmq.Message[Any]) -> None:
        with m:
            taken.append(m.body)

    def consume(number: int) -> None:
        while True:
            try:
                if way == "get":
                    taken.append(queue.get())
                elif way == "get_many":
                    taken.extend(queue.get_many(7))
                elif way == "receive":
                    settle(queue.receive())
                elif way == "receive_many":
                    for m in queue.receive_many(7):
                        settle(m)
                elif way == "loop":
                    for m in consumer:
                        settle(m)
                    return
                else:
                    settle(consumer.receive())
            except shmq.ShutDown:
                return

    consumers = [threading.Thread(target=consume, args=(n,), daemon=True) for n in range(THREADS)]
    for thread in consumers:
        thread.start()
    run_threads(produce)
    queue.shutdown()
    for thread in consumers:
        thread.join(120)
        assert not thread.is_alive()
    assert sorted(taken) == list(range(THREADS * EACH))
    statistics = queue.statistics()
    assert (statistics.put, statistics.acked, statistics.unsettled) == (THREADS * EACH, THREADS * EACH, 0)


def test_a_prefetch_holds_for_all_threads_together(queue: shmq.Queue[Any]) -> None:
    """Shows S19, R10."""
    queue.put_many(range(400))
    most = [0]
    lock = threading.Lock()
    held = [0]
    with queue.consumer(prefetch=2) as consumer:

        def work(number: int) -> None:
            for _ in range(50):
                m = consumer.receive(timeout=30)
                with lock:
                    held[0] += 1
                    most[0] = max(most[0], held[0])
                with lock:
                    held[0] -= 1
                    m.ack()

        run_threads(work)
    assert most[0] <= 2
    assert queue.qsize() == 0


def test_a_message_may_be_settled_by_another_thread_than_its_receiver(queue: shmq.Queue[Any]) -> None:
    queue.put("a")
    m = queue.receive(timeout=0)
    run_threads(lambda number: m.ack(), 1)
    with pytest.raises(shmq.SettlementError, match="acked"):
        m.ack()


def test_threads_declare_open_and_close_the_same_things(broker_dir: Any) -> None:
    with shmq.open(broker_dir, memory="16MiB") as broker:

        def work(number: int) -> None:
            for n in range(30):
                with shmq.open(broker_dir) as mine:
                    queue = mine.queue(f"q{n % 5}")
                    queue.put(number)
                    assert queue.get(timeout=5) in range(THREADS)

        run_threads(work)
        assert len(broker.statistics().processes) == 1
        assert sum(s.put for s in broker.statistics().queues.values()) == THREADS * 30


def test_a_loan_is_for_one_thread_at_a_time(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=1)
    queue.put("full")
    loan = queue.loan(5)
    errors: list[BaseException] = []
    first = threading.Thread(target=loan.commit, daemon=True)
    first.start()
    while queue.statistics().producers_waiting == 0:
        pass
    try:
        loan.commit()
    except RuntimeError as error:
        errors.append(error)
    assert "one thread" in str(errors[0])
    queue.get(timeout=0)
    first.join(30)
    assert queue.qsize() == 1
