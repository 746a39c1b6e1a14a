"""A batch of many tasks whose rows are more than the broker's memory is staged, and published."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shmq
from shmq.spark.options import SinkOptions
from shmq.spark.sink import StreamSink


@pytest.mark.parametrize(("tasks", "rows", "size"), [(20, 6_000, 64), (60, 300, 64), (12, 2_000, 1_000)])
def test_a_batch_of_many_tasks_that_is_larger_than_memory_is_published(
    broker_dir: Path, tasks: int, rows: int, size: int
) -> None:
    """Slots of a stage are memory until it is published, wherever its rows are."""
    with shmq.open(broker_dir, memory="16MiB", disk="1GiB") as broker:
        sink = StreamSink(SinkOptions.parse({"path": broker.path or "", "queue": "results", "commitTimeout": "60"}))
        for batch in range(2):
            staged = []
            for task in range(tasks):
                bodies = [b"%d %d " % (task, row) + bytes(size) for row in range(rows)]
                staged.append(sink.write([pa.record_batch({"body": pa.array(bodies, pa.binary())})], "query"))
            sink.commit(staged, batch)
            results = broker.queue("results")
            found = [tuple(map(int, body.split()[:2])) for body in results.get_many(tasks * rows + 1, timeout=0)]
            assert found == [(task, row) for task in range(tasks) for row in range(rows)]


def fill(queue: shmq.Queue[Any], size: int) -> None:
    with contextlib.suppress(shmq.Full):
        while True:
            queue.put(bytes(size), timeout=0)


def test_a_decision_for_which_there_is_no_memory_is_told_and_nothing_is_published(
    broker_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its note has more than memory is left, and what has the memory cannot go to disk."""
    monkeypatch.setattr("shmq.spark.notes.OTHERS_FLOW", 0.1)
    with shmq.open(broker_dir, memory="16MiB", disk=0) as broker:
        ballast = broker.queue("ballast")
        sink = StreamSink(SinkOptions.parse({"path": broker.path or "", "queue": "results"}))
        staged = [sink.write([pa.record_batch({"body": pa.array([b"row"], pa.binary())})], "q" * 500)]
        for size in (1 << 20, 1 << 16, 1 << 12, 1 << 8, 0):
            fill(ballast, size)
        with pytest.raises(shmq.Full, match="memory"):
            sink.commit(staged, 0)
        ballast.purge()
        assert broker.queue("results").qsize() == 0
        sink.commit(staged, 0)
        assert broker.queue("results").get(timeout=0) == b"row"
