"""A task gives its batches to the pool of its host and hands on the results in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from shmq.errors import Empty, Full, MessageTooLarge, ShmqError
from shmq.spark.warm.arrow import batches_of, bytes_of, fitted, read_schema
from shmq.spark.warm.place import Place
from shmq.spark.warm.queues import ERROR, NUMBER, REPLIES, requests_of
from shmq.spark.warm.window import Window

if TYPE_CHECKING:
    from shmq.engine.broker.broker import Broker
    from shmq.spark.warm.job import Job

__all__ = ["through_pool"]

_LOOK: Final = 1.0  # seconds without a reply until the task looks whether the pool lives


def through_pool(batches: Iterable[pa.RecordBatch], job: Job, where: str = "this task") -> Iterator[pa.RecordBatch]:
    """Yields the results of all batches, in the order of the batches.

    Its queue of replies has a name that no other task has, nor this one when it is tried again. So replies that an
    attempt has left in the pool reach nobody.

    Arguments:
        batches: of the task.
        job: for the pool, which is started if it does not live.
        where: whose batches they are, for errors.

    Raises ShmqError with the traceback of the handler, for a batch that does not fit, or why there is no pool;
    SchemaMismatch.
    """
    place = Place.of(job)
    schema = read_schema(job.schema)
    with place.joined(job) as broker:
        for number, result in enumerate(_Exchange(broker, place, job, where).results(batches)):
            for batch in result:
                try:
                    yield fitted(batch, schema)
                except TypeError as error:
                    raise type(error)(f"batch {number} of {where}: {error}") from None


class _Exchange:
    """The exchange of one attempt of one task with the pool."""

    def __init__(self, broker: Broker, place: Place, job: Job, where: str) -> None:
        self._place = place
        self._job = job
        self._where = where
        self._requests = requests_of(broker, job.memory)
        self._replies = broker.queue(codec="bytes")
        self._window: Window[list[pa.RecordBatch]] = Window()

    def results(self, batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
        try:
            for batch in batches:
                self._send(batch)
                while self._window.size >= self._job.in_flight:
                    yield from self._window.take() or self._wait()
            while self._window.size:
                yield from self._window.take() or self._wait()
        finally:
            self._replies.delete()

    def _send(self, batch: pa.RecordBatch) -> None:
        body = bytes_of([batch], batch.schema)
        headers: dict[str, str | int] = {NUMBER: self._window.open(), REPLIES: self._replies.name}
        while True:
            # A batch in the pool makes room when its reply is taken, so a task that has one there waits for that.
            waits = self._window.missing > 1
            try:
                self._requests.put(body, headers=headers, timeout=0 if waits else _LOOK)
                return
            except MessageTooLarge as error:
                raise ShmqError(
                    f"a batch of {self._where} does not fit into the pool",
                    figures=f"{len(body):,} bytes; {batch.num_rows:,} rows",
                    remedy="give map_in_pool memory= of five times as much, or lower "
                    "spark.sql.execution.arrow.maxRecordsPerBatch",
                ) from error
            except Full:
                self._place.keep_alive(self._job)
                if waits:
                    self._wait()

    def _wait(self) -> tuple[()]:
        """Waits for one reply, however long that takes, as long as the pool lives."""
        while True:
            try:
                number, failed, body = self._reply()
                break
            except Empty:
                self._place.keep_alive(self._job)
        if failed:
            text = body.decode(errors="replace")
            raise ShmqError(f"map_in_pool: batch {number} of {self._where} failed", figures=text)
        self._window.put(number, batches_of(body))
        return ()

    def _reply(self) -> tuple[int, bool, bytes]:
        """Receives a reply: its number, whether it is an error, and its body.

        The frames of an error that the program keeps must not keep the message, so this is a method of its own. Else
        this process would not leave its place in the shared memory.
        """
        with self._replies.receive(timeout=_LOOK) as message:
            return int(str(message.headers[NUMBER])), bool(message.headers.get(ERROR)), message.body
