# ruff: noqa
# fmt: off
import os
import signal

import shmq


def handle(m: shmq.Message[int]) -> int:
    if m.body == 500 and not m.redelivered:
        os.kill(os.getpid(), signal.SIGKILL)   # this worker dies with the message in hand
    return m.body * m.body                     # returning acks, an exception retries


if __name__ == "__main__":
    with shmq.open() as broker:
        jobs, squares = broker.queue("jobs"), broker.queue("squares")
        jobs.put_many(range(1000))
        shmq.WorkerPool(jobs, handle, processes=4, results=squares).run(until_empty=True)
        assert sorted(squares.get_many(2000, timeout=0)) == [n * n for n in range(1000)]
