"""Contestants with a backlog: ways of putting many messages aside and taking them again, with one interface for all."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import lmdb

from shmq.bench.redis_server import RedisServer
from shmq.engine.broker.broker import Broker
from shmq.engine.queue.queue import Queue
from shmq.runtime import open as open_broker

__all__ = ["BACKLOGS", "BATCH", "Backlog", "Load", "batches", "why_not"]

BATCH: Final = 1024  # messages a transaction, or a call: as many as shmq moves to or from its disk in one turn
_SLOT_BYTES: Final = 200
_ROOM: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Load:
    """A backlog: so many bodies of so many bytes, in a queue that may use so much of a broker's memory."""

    messages: int
    size: int
    memory: int
    max_memory: int

    def body(self) -> bytes:
        """Nothing that a file system stores as a hole."""
        return os.urandom(self.size)


def batches(count: int) -> Iterator[int]:
    """How many messages each transaction has."""
    for done in range(0, count, BATCH):
        yield min(BATCH, count - done)


class Backlog(Protocol):
    """Made in the parent, used by forked children, one after the other; `get` answers how many whole messages came."""

    name: str

    def put(self, count: int) -> None: ...
    def get(self, count: int) -> int: ...
    def memory(self) -> int | None:
        """Bytes of memory that it has beside its processes' own; None: it is the kernel's cache of files."""

    def disk(self) -> int:
        """Bytes on disk now."""

    def close(self) -> None: ...


def _bytes_below(directory: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file())


class ShmqBacklog:
    """A queue that may use a part of a broker's memory, a call a message; what exceeds it flows to disk."""

    name = "shmq"

    def __init__(self, directory: Path, load: Load) -> None:
        self.load, self.body = load, load.body()
        self.broker: Broker = open_broker(directory / "broker", memory=self._budget(), encryption_key=self._key())
        self.queue: Queue[bytes] = self._declare()

    def _budget(self) -> int:
        return self.load.memory

    def _key(self) -> bytes | None:
        return None

    def _declare(self) -> Queue[bytes]:
        return self.broker.queue("backlog", codec="bytes", max_memory=self.load.max_memory)

    def put(self, count: int) -> None:
        put, body = self.queue.put, self.body
        for _ in range(count):
            put(body)

    def get(self, count: int) -> int:
        get, size, whole = self.queue.get, self.load.size, 0
        for _ in range(count):
            whole += len(get()) == size
        return whole

    def memory(self) -> int | None:
        return self.broker.statistics().memory_reserved

    def disk(self) -> int:
        return self.broker.statistics().disk_used

    def close(self) -> None:
        self.broker.delete()


class ShmqBatchBacklog(ShmqBacklog):
    """The same by put_many and get_many, with as many messages a call as the peers have a transaction."""

    name = f"shmq, {BATCH:,} a call"

    def put(self, count: int) -> None:
        bodies = [self.body] * BATCH
        for some in batches(count):
            self.queue.put_many(bodies[:some])

    def get(self, count: int) -> int:
        came = whole = 0
        while came < count:
            bodies = self.queue.get_many(min(BATCH, count - came))
            came += len(bodies)
            whole += sum(len(body) == self.load.size for body in bodies)
        return whole


class ShmqEncryptedBacklog(ShmqBacklog):
    """The same in a broker that encrypts what it has on disk."""

    name = "shmq, encrypted"

    def _key(self) -> bytes | None:
        return os.urandom(32)


class ShmqMemoryBacklog(ShmqBacklog):
    """The same queue without flow, in a broker that has memory for all of it."""

    name = "shmq, all in memory"

    def _budget(self) -> int:
        return memory_for(self.load)

    def _declare(self) -> Queue[bytes]:
        return self.broker.queue("backlog", codec="bytes", maxsize=self.load.messages)


def memory_for(load: Load) -> int:
    """Bytes of memory in which all of it has room."""
    slots = 1 << max(10, (load.messages - 1).bit_length())
    return slots * _SLOT_BYTES + load.messages * (load.size * 5 // 4 + 256) + _ROOM


class _InFiles:
    """Methods of all stores that keep their rows in files below `path`, and none in shared memory."""

    path: Path

    def memory(self) -> int | None:
        return None

    def disk(self) -> int:
        return _bytes_below(self.path)

    def close(self) -> None:
        shutil.rmtree(self.path)


class SqliteBacklog(_InFiles):
    """A table, a row a message, the lowest number first; 1,024 a transaction, journal_mode=WAL, synchronous=OFF."""

    name = "SQLite"

    def __init__(self, directory: Path, load: Load) -> None:
        self.path, self.load, self.body = directory / "sqlite", load, load.body()
        self.path.mkdir()
        self._opened: sqlite3.Connection | None = None
        with self._open() as table:
            table.execute("PRAGMA journal_mode=WAL")
            table.execute("CREATE TABLE backlog (number INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        table.close()

    def _open(self) -> sqlite3.Connection:
        table = sqlite3.connect(self.path / "backlog.db", isolation_level=None)
        table.execute("PRAGMA synchronous=OFF")
        return table

    def _table(self) -> sqlite3.Connection:
        """By each process anew: a connection must not be used across a fork."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def put(self, count: int) -> None:
        table, rows = self._table(), [(self.body,)] * BATCH
        for some in batches(count):
            table.execute("BEGIN IMMEDIATE")
            table.executemany("INSERT INTO backlog (body) VALUES (?)", rows[:some])
            table.execute("COMMIT")

    def get(self, count: int) -> int:
        table, whole = self._table(), 0
        for some in batches(count):
            table.execute("BEGIN IMMEDIATE")
            rows = table.execute("SELECT number, body FROM backlog ORDER BY number LIMIT ?", (some,)).fetchall()
            table.execute("DELETE FROM backlog WHERE number <= ?", (rows[-1][0] if rows else 0,))
            table.execute("COMMIT")
            whole += sum(len(body) == self.load.size for _, body in rows)
        return whole


class LmdbBacklog(_InFiles):
    """LMDB used as a queue: a row a message, its key is its number; 1,024 a transaction, sync=False."""

    name = "LMDB"

    def __init__(self, directory: Path, load: Load) -> None:
        self.path, self.load, self.body = directory / "lmdb", load, load.body()
        self._opened: Any = None

    def _rows(self) -> Any:
        """By each process anew: an environment must not be used across a fork."""
        if self._opened is None:
            room = self.load.messages * (self.load.size * 2 + 4096) + _ROOM
            self._opened = lmdb.open(str(self.path), map_size=room, sync=False, metasync=False)
        return self._opened

    def put(self, count: int) -> None:
        rows, key = self._rows(), struct.Struct(">Q")
        for some in batches(count):
            with rows.begin(write=True) as transaction, transaction.cursor() as cursor:
                first = key.unpack(cursor.key())[0] + 1 if cursor.last() else 0
                for number in range(first, first + some):
                    transaction.put(key.pack(number), self.body, append=True)

    def get(self, count: int) -> int:
        rows, whole = self._rows(), 0
        for some in batches(count):
            with rows.begin(write=True) as transaction, transaction.cursor() as cursor:
                cursor.first()
                for _ in range(some):
                    whole += len(cursor.value()) == self.load.size
                    cursor.delete()
        return whole


class DropAllBacklog(_InFiles):
    """The flow to disk that the founding broker had at first. At the limit all bodies in memory go to disk at once, and
    each is loaded when its message is taken. A row a body in LMDB; its memory is one in /dev/shm."""

    name = "drop all, load on demand"

    def __init__(self, directory: Path, load: Load) -> None:
        self.path, self.load, self.body = directory / "dropped", load, load.body()
        self.memory_path = Path(tempfile.mkdtemp(prefix="shmq-bench-", dir="/dev/shm"))
        self._opened: tuple[Any, Any] | None = None

    def _stores(self) -> tuple[Any, Any]:
        """Bodies in memory and on disk; by each process anew."""
        if self._opened is None:
            room = self.load.messages * (self.load.size * 2 + 4096) + _ROOM
            options: dict[str, Any] = {"sync": False, "metasync": False, "map_size": room}
            self._opened = (lmdb.open(str(self.memory_path), **options), lmdb.open(str(self.path), **options))
        return self._opened

    def _drop_all(self) -> None:
        memory, disk = self._stores()
        with memory.begin(write=True) as left, disk.begin(write=True) as kept:
            for key, body in left.cursor():
                kept.put(key, body)
            left.drop(memory.open_db(txn=left), delete=False)

    def put(self, count: int) -> None:
        memory, disk = self._stores()
        key, most = struct.Struct(">Q"), max(1, self.load.max_memory // self.load.size)
        for some in batches(count):
            with disk.begin() as kept, memory.begin(write=True) as bodies:
                with bodies.cursor() as last, kept.cursor() as dropped:
                    newest = last.key() if last.last() else dropped.key() if dropped.last() else b""
                first = key.unpack(newest)[0] + 1 if newest else 0
                for number in range(first, first + some):
                    bodies.put(key.pack(number), self.body, append=True)
                over = bodies.stat()["entries"] > most
            if over:
                self._drop_all()

    def get(self, count: int) -> int:
        memory, disk = self._stores()
        whole = 0
        for some in batches(count):
            with disk.begin(write=True) as dropped, memory.begin(write=True) as bodies:
                for _ in range(some):
                    with dropped.cursor() as oldest:  # one message after the other, whoever wants it
                        on_disk = oldest.first()
                        body = oldest.pop(oldest.key()) if on_disk else None
                    if body is None:
                        with bodies.cursor() as oldest:
                            body = oldest.pop(oldest.key()) if oldest.first() else b""
                    whole += len(body) == self.load.size
        return whole

    def memory(self) -> int | None:
        return _bytes_below(self.memory_path)

    def close(self) -> None:
        super().close()
        shutil.rmtree(self.memory_path)


class RedisBacklog:
    """A list of a redis server behind a socket of this host, RPUSH and LPOP of 1,024; in memory, nothing is written."""

    name = "redis"

    def __init__(self, directory: Path, load: Load) -> None:
        self.load, self.body = load, load.body()
        self.server = RedisServer(directory)

    def put(self, count: int) -> None:
        bodies = [self.body] * BATCH
        for some in batches(count):
            self.server.call(b"RPUSH", b"backlog", *bodies[:some])

    def get(self, count: int) -> int:
        whole = 0
        for some in batches(count):
            bodies = self.server.call(b"LPOP", b"backlog", b"%d" % some)
            whole += sum(len(body) == self.load.size for body in bodies or ())
        return whole

    def memory(self) -> int | None:
        return self.server.most_memory()

    def disk(self) -> int:
        return 0

    def close(self) -> None:
        self.server.close()


BACKLOGS: dict[str, Any] = {
    "shmq": ShmqBacklog,
    "shmq-batch": ShmqBatchBacklog,
    "shmq-encrypted": ShmqEncryptedBacklog,
    "shmq-memory": ShmqMemoryBacklog,
    "sqlite": SqliteBacklog,
    "lmdb": LmdbBacklog,
    "drop-all": DropAllBacklog,
    "redis": RedisBacklog,
}


def why_not(key: str, load: Load) -> str | None:
    """Why this one cannot be measured here; None: it can."""
    if key == "redis" and shutil.which("redis-server") is None:
        return "no redis-server on the PATH"
    if key == "shmq-memory" and memory_for(load) > shutil.disk_usage("/dev/shm").free:
        return "no room in /dev/shm"
    return None
