"""The first process of a pool: `python -m shmq.spark.warm.host DIRECTORY DESCRIPTOR`, started by a task.

It belongs to no task: it goes on when the task has ended, and ends when no task has used the pool for some time. The
descriptor is the lock that says that the pool lives.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from shmq.core import clock
from shmq.errors import BrokerNotFound, Empty, NotFound, WorkerError
from shmq.pool.worker_pool import WorkerPool

if TYPE_CHECKING:
    from shmq.engine.queue.queue import Queue
    from shmq.spark.warm.job import Job
    from shmq.spark.warm.place import Place

__all__ = ["main"]

_LOOK: Final = 1.0  # seconds between looks at who uses the pool, at most


def main() -> None:
    """Returns to its starter as soon as the pool has a process of its own."""
    directory, alive = Path(sys.argv[1]), int(sys.argv[2])
    parcel = sys.stdin.buffer.read()
    if os.fork() > 0:
        os._exit(0)  # nobody has to collect the other one
    os.set_inheritable(alive, False)
    os.umask(0o077)
    sys.path[:], job = pickle.loads(parcel)
    from shmq.spark.warm.place import Place

    try:
        _serve(job, Place(directory))
    except BaseException:
        traceback.print_exc()
        raise SystemExit(1) from None


def _serve(job: Job, place: Place) -> None:
    """Serves until no task uses the pool: then removes the pool with all its files."""
    from shmq.spark.warm.queues import requests_of

    while True:
        with suppress(NotFound, BrokerNotFound), place.opened(job) as broker:
            requests = requests_of(broker, job.memory)
            try:
                _handle(job, place, requests)
            except WorkerError as error:
                _refuse(place, requests, _why(error))
        with place.locked():
            if not place.users():
                place.remove()
                return


def _why(error: WorkerError) -> str:
    """Describes a failure to users of map_in_pool, who see neither the pool's queue nor its messages."""
    text = (
        f"no process of the pool can start: {error.figures}; call initializer and handler in a plain process to see "
        "the error; the next attempt of the task starts the pool again"
    )
    return "\n".join([text, *getattr(error, "__notes__", [])])


def _handle(job: Job, place: Place, requests: Queue[bytes]) -> None:
    """Runs the pool's workers. Raises WorkerError if workers cannot be started."""
    from shmq.spark.warm.handling import answer, prepare

    pool = WorkerPool(requests, answer, processes=job.processes, initializer=prepare, initargs=(job.calls,))
    done = threading.Event()

    def watch() -> None:
        used = clock.monotonic()
        while not done.wait(min(_LOOK, job.idle / 4)):
            if place.users() - {process.pid for process in pool.processes()}:
                used = clock.monotonic()
            elif clock.monotonic() - used >= job.idle:
                pool.stop()
                return

    watcher = threading.Thread(target=watch, name="shmq-idle", daemon=True)
    watcher.start()
    try:
        pool.run()
    finally:
        done.set()
        watcher.join()


def _refuse(place: Place, requests: Queue[bytes], text: str) -> None:
    """Tells the tasks why there are no workers, until they have gone; the next one finds a new attempt."""
    from shmq.spark.warm.handling import fail

    while True:
        try:
            with requests.receive(timeout=_LOOK) as message:
                fail(message, text)
        except Empty:
            if not place.users():
                return


if __name__ == "__main__":
    main()
