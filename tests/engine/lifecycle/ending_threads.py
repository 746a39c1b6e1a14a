"""A process whose threads are amid calls when their broker is closed, deleted from or forked, or the process ends.

As a program: python ending_threads.py URL SEED ENDING. Says nothing, and ends with code 0 whatever they are told.
"""

import os
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import shmq

MESSAGES = 40
THREADS = 5
LONGEST_RUN = 0.05  # seconds until the end comes: long enough for all calls to be met
WAIT = 0.02  # seconds, of each call that may wait
ENDINGS = ("close", "close twice", "exit", "fork and close", "fork and exit", "shut down", "delete")
Step = Callable[[shmq.Broker, shmq.Queue[Any], random.Random], object]


def settle(m: shmq.Message[Any], numbers: random.Random) -> None:
    how = numbers.randrange(7)
    if how == 0:
        m.ack()
    elif how == 1:
        m.retry("again", delay=0.001 * numbers.randrange(2))
    elif how == 2:
        m.release(delay=0.001)
    elif how == 3:
        _ = m.view(), m.body
        m.release()
    elif how == 4:
        m.reject("no")
    else:
        m.release()


def receive(broker: shmq.Broker, queue: shmq.Queue[Any], numbers: random.Random) -> None:
    settle(queue.receive(timeout=WAIT), numbers)


def consume(broker: shmq.Broker, queue: shmq.Queue[Any], numbers: random.Random) -> None:
    with queue.consumer(prefetch=4) as consumer:
        for m in consumer.receive_many(3, timeout=WAIT):
            settle(m, numbers)


def consume_several(broker: shmq.Broker, queue: shmq.Queue[Any], numbers: random.Random) -> None:
    with broker.consumer(queue, broker.queue("taken", codec="bytes")) as consumer:
        settle(consumer.receive(timeout=WAIT), numbers)


def put(broker: shmq.Broker, queue: shmq.Queue[Any], numbers: random.Random) -> None:
    queue.put(bytes(numbers.choice((1, 100, 3000, 70_000))), timeout=0)


def loan(broker: shmq.Broker, queue: shmq.Queue[Any], numbers: random.Random) -> None:
    lent = queue.loan(500, timeout=WAIT)
    lent.view[:3] = b"abc"
    if numbers.random() < 0.5:
        lent.commit()
    else:
        lent.abandon()


def get(broker: shmq.Broker, queue: shmq.Queue[Any], numbers: random.Random) -> None:
    other = broker.queue("taken", codec="bytes")
    other.put_many([b"x", bytes(2000)], timeout=0)
    other.get_many(2, timeout=WAIT)


def look(broker: shmq.Broker, queue: shmq.Queue[Any], numbers: random.Random) -> None:
    list(queue.browse())
    queue.statistics()
    broker.statistics()


STEPS: tuple[Step, ...] = (receive, receive, receive, consume, consume_several, put, loan, get, look)


def work(broker: shmq.Broker, queue: shmq.Queue[Any], numbers: random.Random) -> None:
    while True:
        try:
            numbers.choice(STEPS)(broker, queue, numbers)
        except (shmq.Closed, shmq.NotFound, shmq.ShutDown):
            return
        except (shmq.Empty, shmq.Full, shmq.SettlementError):
            if queue.broker._membership.closed:
                return


def in_child(broker: shmq.Broker, queue: shmq.Queue[Any], ending: str, numbers: random.Random) -> int:
    """A child whose parent's threads were amid calls uses the broker for itself, then ends as the parent does."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        queue.put(b"of a child", timeout=0.2)
        held = queue.receive(timeout=0.2)
        if numbers.random() < 0.5:
            held.release()
        if ending == "fork and close":
            broker.close()
        code = 0
    except (shmq.Full, shmq.Empty):
        code = 0
    finally:
        os._exit(code)


def main(url: str, seed: str, ending: str) -> None:
    numbers = random.Random(seed)
    broker = shmq.open(url)
    queue: shmq.Queue[Any] = broker.queue("jobs", codec="bytes", maxsize=200, max_attempts=0, max_memory="512KiB")
    if queue.qsize() < MESSAGES:
        queue.put_many([bytes(numbers.choice((10, 2000)))] * MESSAGES, timeout=1)
    threads = [
        threading.Thread(target=work, args=(broker, queue, random.Random(f"{seed} {n}")), daemon=True)
        for n in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    time.sleep(numbers.random() * LONGEST_RUN)  # not for an event: the end is to come anywhere
    child = in_child(broker, queue, ending, numbers) if ending.startswith("fork") else None
    if child is not None and os.waitpid(child, 0)[1] != 0:
        os._exit(3)
    if ending in ("exit", "fork and exit"):
        return
    if ending == "shut down":
        queue.shutdown(immediate=True)
    elif ending == "delete":
        queue.delete()
    elif ending == "close twice":
        other = threading.Thread(target=broker.close)
        other.start()
        broker.close()
        other.join()
    broker.close()
    for thread in threads:
        thread.join(60)
        if thread.is_alive():
            os._exit(4)
    if ending == "shut down":
        with shmq.open(url) as again:
            again.queue("jobs", codec="bytes").reopen()


if __name__ == "__main__":
    main(*sys.argv[1:])
