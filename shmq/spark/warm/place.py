"""The directory of a pool: its broker, who may start it, whether it lives, and its end.

    lock     held for moments by whoever starts the pool, joins it or ends it
    alive    held by the pool's first process as long as it lives; the kernel gives it back with its death
    broker/  the queues
    log      what the pool's processes print

A task joins under the lock, and the pool ends under it: so no task ever joins a pool that is about to go.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import shmq
from shmq.errors import BrokerNotFound, OptionsMismatch, ShmqError
from shmq.runtime import open_to_look
from shmq.spark.warm.job import Job

if TYPE_CHECKING:
    from shmq.engine.broker.broker import Broker

__all__ = ["Place"]


class Place:
    """One pool's directory; it need not be there.

    Arguments:
        directory: of this pool.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.lock = directory / "lock"
        self.alive = directory / "alive"
        self.broker = directory / "broker"
        self.log = directory / "log"

    @classmethod
    def of(cls, job: Job) -> Place:
        """Returns the place of a job's pool on this host. Raises PermissionError for another user's directory."""
        pools = job.pools
        pools.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = pools.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise PermissionError(f"{pools} can be written to by others; give map_in_pool directory=")
        return cls(pools / job.key)

    # ---- for tasks ---------------------------------------------------------------------------------------------

    @contextmanager
    def joined(self, job: Job) -> Iterator[Broker]:
        """Yields the pool's broker while this process uses it. Starts the pool if it does not live."""
        _sweep(self.directory)
        with self.locked():
            broker = self._opened_anew(job)
            try:
                self._start(job)
            except BaseException:
                broker.close()
                raise
        try:
            yield broker
        finally:
            broker.close()

    def _opened_anew(self, job: Job) -> Broker:
        """Under the lock. The broker that a killed pool has left, under another key, goes."""
        try:
            return self.opened(job)
        except OptionsMismatch:
            if self._lives() or self.users():
                raise
            self._remove_broker()
            return self.opened(job)

    def keep_alive(self, job: Job) -> None:
        """Starts the pool again if all of it has died."""
        if not self._lives():
            with self.locked():
                self._start(job)

    def _start(self, job: Job) -> None:
        """Starts the pool's first process. The caller holds the lock."""
        os.utime(self.lock)
        with self.alive.open("w") as alive:
            try:
                fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return  # it lives
            # The pool inherits the lock with the descriptor, so that there is no moment without it.
            parcel = pickle.dumps((sys.path, job))
            command = [sys.executable, "-m", "shmq.spark.warm.host", str(self.directory), str(alive.fileno())]
            with self.log.open("ab") as log:
                started = subprocess.run(
                    command,
                    input=parcel,
                    stdout=log,
                    stderr=log,
                    cwd="/",
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                    pass_fds=(alive.fileno(),),
                    start_new_session=True,  # what ends the processes of a Spark is not meant for it
                    check=False,
                )
        if started.returncode != 0:
            raise ShmqError("the pool of map_in_pool cannot be started", figures=self.log_tail())

    def log_tail(self) -> str:
        """Returns the last lines that the pool has printed."""
        with suppress(OSError):
            return self.log.read_text(errors="replace")[-4000:].rstrip()
        return ""

    def _lives(self) -> bool:
        try:
            with self.alive.open("r") as alive:
                fcntl.flock(alive, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False

    # ---- for both ----------------------------------------------------------------------------------------------

    def opened(self, job: Job) -> Broker:
        """Opens the pool's broker, or makes it. Raises OSError, ValueError for an unfit key file."""
        return shmq.open(self.broker, memory=job.memory, encryption_key=job.key_file)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lock of the directory, which is made if it is not there."""
        lock = self._acquired()
        while lock is None:  # who has just ended the pool removed the file: what counts is the file in place
            lock = self._acquired()
        with lock:
            yield

    def _acquired(self) -> TextIO | None:
        self.directory.mkdir(mode=0o700, exist_ok=True)
        try:
            lock = self.lock.open("a")
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(lock.fileno()), self.lock.stat()):
                return lock
        except FileNotFoundError:
            pass
        except BaseException:
            lock.close()
            raise
        lock.close()
        return None

    def users(self) -> set[int]:
        """Returns the other processes that use the broker."""
        try:
            with open_to_look(self.broker) as broker:
                found = broker.statistics().processes
        except BrokerNotFound:
            return set()
        return {process.pid for process in found if process.state != "dead"} - {os.getpid()}

    def remove(self) -> None:
        """Removes the broker, then the directory, its lock file last. The caller holds the lock."""
        self._remove_broker()
        for file in (self.alive, self.log, self.lock):
            file.unlink(missing_ok=True)
        with suppress(OSError):
            self.directory.rmdir()

    def _remove_broker(self) -> None:
        with suppress(BrokerNotFound), open_to_look(self.broker) as broker:
            broker.delete(force=True)
        shutil.rmtree(self.broker, ignore_errors=True)


def _sweep(directory: Path) -> None:
    """Removes the files of pools that were killed, if no process uses them any more."""
    for other in directory.parent.iterdir():
        place = Place(other)
        if other == directory or not place.lock.exists() or place._lives():
            continue
        with place.locked():
            if not place._lives() and not place.users():
                place.remove()
