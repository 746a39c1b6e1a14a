"""Workers end with the process that owns their pool, however much work is left."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import shmq

OWNING = """
import os
import sys
import threading

import shmq


def handle(m):
    m.queue.put(m.body)  # there is always more to do
    m.queue.broker.queue("pids").put(os.getpid())


def run(start):
    with shmq.open("jobs.shmq") as broker:
        results = broker.queue("results", maxsize=1) if start == "results" else None
        method = start if start in ("fork", "spawn", "forkserver") else None
        pool = shmq.WorkerPool(broker.queue("jobs"), handle, processes=2, mp_context=method, results=results)
        if start == "exec":
            with pool:
                pids = set()
                while len(pids) < 2:
                    pids.add(broker.queue("pids").get())
                sys.stdin.readline()
                os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"])
        if start == "heir" and os.fork() == 0:
            sys.stdin.read()  # holds what its parent had open
            os._exit(0)
        pool.run()


if __name__ == "__main__":
    if sys.argv[1] == "thread":
        running = threading.Thread(target=run, args=("forkserver",))
        running.start()
        running.join()
    else:
        run(sys.argv[1])
"""


@contextmanager
def owner(folder: Path, start: str) -> Iterator[tuple[subprocess.Popen[bytes], shmq.Broker]]:
    """A program with a pool that never has done all of its work."""
    (folder / "program.py").write_text(OWNING)
    with shmq.open(folder / "jobs.shmq", memory="32MiB") as broker:
        broker.queue("jobs").put_many(range(10))
        broker.queue("pids", overflow="drop_oldest", maxsize=1000)
        with subprocess.Popen([sys.executable, "program.py", start], cwd=folder, stdin=subprocess.PIPE) as process:
            try:
                yield process, broker
            finally:
                process.kill()


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver", "thread", "heir", "exec", "results"])
def test_workers_of_a_killed_pool_end_though_there_is_work(tmp_path: Path, start: str) -> None:
    """Shows G2."""
    with owner(tmp_path, start) as (process, broker):
        pids = broker.queue("pids")
        workers: set[int] = set()
        while len(workers) < 2:
            workers.add(pids.get(timeout=120.0))
        watched = [os.pidfd_open(worker) for worker in workers]
        try:
            assert process.stdin is not None
            if start == "exec":
                process.stdin.write(b"\n")
                process.stdin.flush()
            else:
                process.kill()
            for descriptor in watched:
                assert select.select([descriptor], [], [], 120.0)[0], "a worker goes on"
        finally:
            for descriptor in watched:
                os.close(descriptor)
        jobs = broker.queue("jobs").statistics()
        assert jobs.ready >= 10  # what waits with its result goes back
        assert jobs.unsettled == 0
