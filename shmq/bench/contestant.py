"""Contestants: ways of moving messages between processes, with one interface for all."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.context import BaseContext
from typing import Any, Protocol

from shmq.engine.broker.broker import Broker
from shmq.engine.queue.queue import Queue
from shmq.runtime import open as open_broker

__all__ = ["CONTESTANTS", "Contestant", "contestant"]

CONTEXT: BaseContext = multiprocessing.get_context("fork")


class Contestant(Protocol):
    """Made in the parent, used in forked children, closed in the parent. Consumers answer how many they got."""

    name: str

    def produce(self, body: bytes, count: int, batch: int) -> None: ...
    def consume(self, size: int, count: int, batch: int) -> int: ...
    def put(self, body: bytes) -> None: ...
    def get(self, size: int) -> bytes: ...
    def close(self) -> None: ...


class ShmqContestant:
    """An anonymous broker, one queue; a call a message, or batches."""

    name = "shmq"
    checksum = True

    def __init__(self, size: int, maxsize: int) -> None:
        self.broker: Broker = open_broker(None)
        self.queue: Queue[bytes] = self.broker.queue("bench", codec="bytes", maxsize=maxsize, checksum=self.checksum)

    def produce(self, body: bytes, count: int, batch: int) -> None:
        if batch > 1:
            bodies = [body] * batch
            for _ in range(count // batch):
                self.queue.put_many(bodies)
            return
        put = self.queue.put
        for _ in range(count):
            put(body)

    def consume(self, size: int, count: int, batch: int) -> int:
        got = 0
        if batch > 1:
            while got < count:
                got += len(self.queue.get_many(min(batch, count - got)))
            return got
        get = self.queue.get
        for _ in range(count):
            get()
        return count

    def put(self, body: bytes) -> None:
        self.queue.put(body)

    def get(self, size: int) -> bytes:
        return self.queue.get()

    def close(self) -> None:
        self.broker.close()


class ShmqUncheckedContestant(ShmqContestant):
    """The same without the CRC-32C of each message: what that costs."""

    name = "shmq, no checksum"
    checksum = False


class ShmqLoanContestant(ShmqContestant):
    """Written and read in place: a loan on one side, a view on the other. The first and last bytes are touched."""

    name = "shmq loan+view"

    def produce(self, body: bytes, count: int, batch: int) -> None:
        size = len(body)
        for _ in range(count):
            with self.queue.loan(size) as loan:
                view = loan.view
                view[0] = view[size - 1] = 1
                del view

    def consume(self, size: int, count: int, batch: int) -> int:
        touched = 0
        for _ in range(count):
            with self.queue.receive() as message:
                view = message.view()
                touched += view[0] & view[size - 1]
        return touched


class MultiprocessingContestant:
    """multiprocessing.Queue: pickles, a feeder thread, a pipe and a lock."""

    name = "multiprocessing.Queue"

    def __init__(self, size: int, maxsize: int) -> None:
        self.queue: Any = CONTEXT.Queue(maxsize)

    def produce(self, body: bytes, count: int, batch: int) -> None:
        put = self.queue.put
        for _ in range(count):
            put(body)
        self.queue.close()
        self.queue.join_thread()

    def consume(self, size: int, count: int, batch: int) -> int:
        get = self.queue.get
        for _ in range(count):
            get()
        return count

    def put(self, body: bytes) -> None:
        self.queue.put(body)

    def get(self, size: int) -> bytes:
        body: bytes = self.queue.get()
        return body

    def close(self) -> None:
        self.queue.close()


class PipeContestant:
    """os.pipe with records of one size: no queue, but what a kernel buffer costs."""

    name = "os.pipe"

    def __init__(self, size: int, maxsize: int) -> None:
        self.reader, self.writer = os.pipe()
        # Records up to the pipe's atomic size need no lock; larger ones are written and read under one.
        self.write_lock = CONTEXT.Lock() if size > 4096 else None
        self.read_lock = CONTEXT.Lock()

    def produce(self, body: bytes, count: int, batch: int) -> None:
        for _ in range(count):
            self.put(body)

    def consume(self, size: int, count: int, batch: int) -> int:
        for _ in range(count):
            self.get(size)
        return count

    def put(self, body: bytes) -> None:
        if self.write_lock is None:
            os.write(self.writer, body)
            return
        with self.write_lock:
            view = memoryview(body)
            while view:
                view = view[os.write(self.writer, view) :]

    def get(self, size: int) -> bytes:
        first = os.read(self.reader, size)
        if len(first) == size:
            return first
        parts = [first]
        missing = size - len(first)
        while missing:
            parts.append(os.read(self.reader, missing))
            missing -= len(parts[-1])
        return b"".join(parts)

    def close(self) -> None:
        os.close(self.reader)
        os.close(self.writer)


CONTESTANTS: dict[str, Any] = {
    "shmq": ShmqContestant,
    "shmq-unchecked": ShmqUncheckedContestant,
    "shmq-loan": ShmqLoanContestant,
    "multiprocessing": MultiprocessingContestant,
    "pipe": PipeContestant,
}


def contestant(key: str, size: int, maxsize: int = 0) -> Contestant:
    """A fresh contestant for messages of `size` bytes, at most `maxsize` of them waiting (0: no limit)."""
    made: Contestant = CONTESTANTS[key](size, maxsize)
    return made
