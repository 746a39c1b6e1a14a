"""A write, as Spark's engine calls it: tasks stage their rows, the commit on the driver's side publishes them all."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shmq.engine.arrow.bodies import Bodies
from shmq.engine.arrow.outgoing import Outgoing, bodies_of, checked, outgoing
from shmq.spark.named_queue import named_broker
from shmq.spark.options import SinkOptions
from shmq.spark.publication import Publication
from shmq.spark.routing import by_queue
from shmq.spark.stage import Stage, StageWriter

if TYPE_CHECKING:
    import pyarrow

__all__ = ["BatchSink", "Staged", "StreamSink"]


@dataclass(frozen=True)
class Staged:
    """The report of one run of a task to the commit: the query it is of, and its staging queues."""

    query: str
    stages: tuple[Stage, ...]


def _stage(options: SinkOptions, rows: Iterable[Outgoing | Bodies]) -> tuple[Stage, ...]:
    with named_broker(options.path, options.key_file) as broker:
        return tuple(StageWriter(broker.queue(options.queue), options.stage_ttl, options.most_stages).write(rows))


def _rows(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[Outgoing | Bodies]:
    for batch in checked(batches):
        for queue, part in by_queue(batch):
            bodies = bodies_of(part)
            if bodies is None:
                yield from outgoing(part, queue)
            else:
                yield replace(bodies, queue=queue)


def _stages_of(messages: Sequence[Staged | None]) -> list[Stage]:
    return [stage for message in messages if message is not None for stage in message.stages]


class StreamSink:
    """The stream writer's logic.

    Guarantee: each batch of a query is published once, whoever is killed when: all of it or nothing is decided in one
    put. A batch with an old number and other rows is a DataLost: the checkpoint is older than what was published.
    """

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, batches: Iterable[pyarrow.RecordBatch], query: str) -> Staged:
        """Stages the rows of one attempt of a task, in a worker; none after Full, OutOfSpace or ValueError."""
        return self.stage(_rows(batches), query)

    def stage(self, rows: Iterable[Outgoing | Bodies], query: str) -> Staged:
        """Stages rows, such as write() makes of its batches."""
        return Staged(query, _stage(self._options, rows))

    def commit(self, messages: Sequence[Staged | None], batch: int) -> None:
        """Publishes a batch, on the driver. `messages`: of the attempts that won, in the order of the partitions."""
        stages = _stages_of(messages)
        if not stages:
            return  # a batch without rows
        query = next(message.query for message in messages if message is not None)
        with named_broker(self._options.path, self._options.key_file) as broker:
            target = broker.queue(self._options.queue)
            Publication(target, self._options.commit_timeout).publish(query, batch, stages)

    def abort(self, messages: Sequence[Staged | None], batch: int) -> None:
        """Drops the reported stages after some tasks have failed. Stages that no task has reported expire."""
        stages = _stages_of(messages)
        if stages:
            with named_broker(self._options.path, self._options.key_file) as broker:
                Publication(broker.queue(self._options.queue), self._options.commit_timeout).abort(stages)


class BatchSink:
    """The batch writer's logic.

    Arguments:
        options: with an idempotency_key a second write with the same key and version publishes nothing.
        overwrite: mode("overwrite"). Raises ValueError unless truncate=true is given with it, and with it alone.
    """

    def __init__(self, options: SinkOptions, overwrite: bool = False) -> None:
        if overwrite and not options.truncate:
            raise ValueError(
                f'mode("overwrite") would throw away all messages in queue {options.queue!r}; '
                'use mode("append"), or say .option("truncate", "true")'
            )
        if options.truncate and not overwrite:
            raise ValueError(
                f'mode("append") leaves the messages of queue {options.queue!r}, and truncate=true would throw them '
                'away; use mode("overwrite"), or leave the option truncate out'
            )
        self._options = options
        self._purge = overwrite
        self._key = options.idempotency_key or secrets.token_hex(16)
        self._version = options.idempotency_version

    def write(self, batches: Iterable[pyarrow.RecordBatch]) -> Staged:
        return self.stage(_rows(batches))

    def stage(self, rows: Iterable[Outgoing | Bodies]) -> Staged:
        """Stages rows, such as write() makes of its batches."""
        return Staged(self._key, _stage(self._options, rows))

    def commit(self, messages: Sequence[Staged | None]) -> None:
        stages = _stages_of(messages)
        if not stages and not self._purge:
            return
        with named_broker(self._options.path, self._options.key_file) as broker:
            Publication(broker.queue(self._options.queue), self._options.commit_timeout).publish(
                self._key, self._version, stages, kept=self._options.idempotency_key is not None, purge=self._purge
            )

    def abort(self, messages: Sequence[Staged | None]) -> None:
        StreamSink(self._options).abort(messages, 0)
