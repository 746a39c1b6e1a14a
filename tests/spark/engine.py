"""Spark's micro-batch engine without Spark: the same calls in the same order, and a crash after any of them.

The order is that of Spark 4.3: latestOffset, the offset log, commit of the batch before, partitions, read and write in
tasks, the sink's commit, the commit log. After a crash a planned batch comes first, and no call before it.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from typing import Any

import shmq
from shmq.engine.arrow.outgoing import Outgoing
from shmq.spark.options import SinkOptions, SourceOptions
from shmq.spark.sink import StreamSink
from shmq.spark.stream_source import Limit, StreamSource


class Crash(Exception):
    """The driver has died here."""


@dataclass
class Checkpoint:
    """The part that survives a crash: the offset log, the commit log, and the id of the query."""

    offsets: list[str] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)
    query: str = "query"


class Engine:
    """One run of a query.

    Arguments:
        checkpoint: of the query.
        crash_at: the number of the call after which it dies; None: it does not.
        attempts: how often each task runs; the last one wins.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        source: SourceOptions,
        sink: SinkOptions,
        crash_at: int | None = None,
        attempts: int = 1,
    ) -> None:
        self.checkpoint = checkpoint
        self.source: Any = StreamSource(source)
        self.sink = sink
        self.limit = Limit(source.max_rows, source.max_bytes)
        self.crash_at = crash_at
        self.attempts = attempts
        self.calls = 0

    def queue_of(self, body: bytes) -> str | None:
        """Into which a row goes; None: that of the sink."""
        return None

    def step(self) -> None:
        self.calls += 1
        if self.calls == self.crash_at:
            raise Crash

    def run(self, *, available_now: bool = False, batches: int = 1000) -> int:
        """Until nothing is left, or so many batches are done; how many calls it took. Raises Crash."""
        try:
            return self._run(available_now, batches)
        finally:
            self.source.close()  # as the end of its process does

    def _run(self, available_now: bool, batches: int) -> int:
        log = self.checkpoint
        if available_now:
            self.source.prepareForTriggerAvailableNow()
            self.step()
        if len(log.offsets) > 1 and len(log.offsets) - 2 not in log.commits:
            self._execute(len(log.offsets) - 2)
        if not log.offsets:
            log.offsets.append(self._told(self.source.initialOffset()))
            self.step()
        for _ in range(batches):
            start = log.offsets[-1]
            end = self._told(self.source.latestOffset(json.loads(start), self.limit))
            self.step()
            if end == start:
                break
            log.offsets.append(end)
            self.step()
            self.source.commit(json.loads(start))
            self.step()
            self._execute(len(log.offsets) - 2)
        return self.calls

    def _told(self, offset: dict[str, Any]) -> str:
        text = json.dumps(offset)
        assert text == json.dumps(offset, sort_keys=True)
        return text

    def _execute(self, batch: int) -> None:
        log = self.checkpoint
        start, end = json.loads(log.offsets[batch]), json.loads(log.offsets[batch + 1])
        parts = self.source.partitions(start, end)
        self.step()
        messages: list[Any] = []
        for part in parts:
            for _ in range(self.attempts):
                staged = self._task(part)
                self.step()
            messages.append(pickle.loads(pickle.dumps(staged)))
        self._commit(messages, batch)
        self.step()
        log.commits.append(batch)
        self.step()

    def _task(self, part: Any) -> Any:
        """One run of a task: what a worker does with its copies of source and sink."""
        worker, task = pickle.loads(pickle.dumps((self.source, part)))
        sink = StreamSink(pickle.loads(pickle.dumps(self.sink)))
        with shmq.open(self.sink.path, create=False) as broker:
            rows = [Outgoing(entry[9], {}, None, self.queue_of(entry[9])) for entry in worker.entries(broker, task)]
        return sink.stage(rows, self.checkpoint.query)

    def _commit(self, messages: list[Any], batch: int) -> None:
        StreamSink(self.sink).commit(messages, batch)
