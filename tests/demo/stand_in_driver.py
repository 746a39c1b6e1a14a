"""In place of the driver of Spark: processes of one session that do the same job, without Spark.

As Spark's daemon of Python workers has, they have a process group of their own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

import shmq
from shmq.demo.definitions import Definitions
from shmq.demo.spark_desk import begin, done, notes_of
from shmq.demo.spark_driver import COUNTS, SOURCES, Job

IDLE_SECONDS = 0.05


def work(job: Job) -> None:
    """A worker, until nothing has come for a while."""
    broker = shmq.open(job.broker, create=False)
    sources: shmq.Queue[bytes] = broker.queue(SOURCES, codec="bytes")
    counts, notes = broker.queue(COUNTS), notes_of(broker)
    while True:
        try:
            message = sources.receive(timeout=IDLE_SECONDS)
        except shmq.Empty:
            continue
        file = str(message.headers["file"])
        begin(notes, file)
        found = Definitions.of(message.body)
        counts.put(row_of(file, found, message.redelivered))
        message.ack()
        done(notes, file)


def row_of(file: str, found: Definitions, repeated: bool) -> str:
    row: dict[str, Any] = {"file": file, **found._asdict(), "repeated": repeated}
    return json.dumps(row)


def start(job: Job) -> int:
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        work(job)
    return pid


def supervise(job: Job) -> None:
    """Workers that die are replaced."""
    for _ in range(job.workers):
        start(job)
    while True:
        os.wait()
        start(job)


def main() -> None:
    job = Job.of_words(sys.argv[1:])
    child = os.fork()  # in place of the Java virtual machine
    if child == 0:
        supervise(job)
    threading.Thread(target=heed, args=(job,)).start()


def heed(job: Job) -> None:
    if sys.stdin.readline():
        sources = shmq.open(job.broker, create=False).queue(SOURCES)
        while sources.statistics().unsettled or sources.qsize():
            time.sleep(0.01)
        os._exit(0)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main()
