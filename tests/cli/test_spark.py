"""spark settle, spark publish: without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.engine.arrow.outgoing import Outgoing
from shmq.spark.data_lost import DataLost
from shmq.spark.options import SinkOptions, SourceOptions
from shmq.spark.publication import Publication
from shmq.spark.sink import StreamSink
from shmq.spark.stage import StageWriter
from shmq.spark.stream_source import Limit, StreamSource
from shmq.spark.subscription import claims_name
from tests.cli.shell import Shell

CLAIMS = claims_name("orders", "etl")


@pytest.fixture
def broker(shell: Shell, broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir) as opened:
        yield opened


def checkpoint_of(folder: Path, offsets: list[dict[str, Any]], done: int) -> Path:
    """As Spark writes it: a file a batch, with a line for each source behind two of its own."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    for batch, offset in enumerate(offsets):
        (folder / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n-\n{json.dumps(offset)}\n')
        if batch <= done:
            (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}\n')
        (folder / "offsets" / f".{batch}.crc").write_bytes(b"\0")
    return folder


def claimed(broker: shmq.Broker) -> list[dict[str, Any]]:
    """Two batches of three rows, and a third one that is not done."""
    broker.queue("orders").put_many([b"row"] * 9)
    options = {"path": broker.path or "", "queue": "orders", "subscription": "etl", "pollMs": "0"}
    planner = StreamSource(SourceOptions.parse(options))
    offsets = [planner.initialOffset()]
    for _ in range(3):
        offsets.append(planner.latestOffset(offsets[-1], Limit(rows=3)))
    planner.close()
    return offsets[1:]


def test_what_the_checkpoint_proves_is_acknowledged(shell: Shell, broker: shmq.Broker, tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tmp_path / "checkpoint", claimed(broker), done=1)
    for _ in range(2):
        done = shell("spark", "settle", str(checkpoint), "etl")
        assert (done.code, done.out) == (0, "batch 1 and those before it are acknowledged\n")
        assert broker.queue(CLAIMS).qsize() == 3
    assert json.loads(shell("--json", "spark", "settle", f"file://{checkpoint}", "etl").out) == {"batch": 1}


def test_nothing_is_acknowledged_before_a_batch_is_done(shell: Shell, broker: shmq.Broker, tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tmp_path / "checkpoint", claimed(broker), done=-1)
    assert shell("spark", "settle", str(checkpoint), "etl").out == "no batch is done yet\n"
    assert broker.queue(CLAIMS).qsize() == 9


def test_what_does_not_fit_is_told(shell: Shell, broker: shmq.Broker, tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tmp_path / "checkpoint", claimed(broker), done=2)
    for arguments, text in (
        ((str(tmp_path), "etl"), "is not a checkpoint of a streaming query"),
        (("s3://bucket/checkpoint", "etl"), "is on another file system"),
        ((str(checkpoint), "audit"), "queue 'orders' has no subscription 'audit': it has 'etl'"),
    ):
        done = shell("spark", "settle", *arguments, expected=None)
        assert done.code != 0
        assert text in done.words
    broker.queue(CLAIMS).delete()
    broker.queue(CLAIMS)
    refused = shell("spark", "settle", str(checkpoint), "etl", expected=1)
    assert "is not of subscription 'etl' as it is now" in refused.words


def test_a_decided_batch_is_finished(shell: Shell, broker: shmq.Broker) -> None:
    results = broker.queue("results", maxsize=2)
    assert shell("spark", "publish", "results").out == "0 batches finished\n"
    assert [queue.name for queue in broker.queues()] == ["results"]
    stages = StageWriter(results, 60.0).write([Outgoing(b"row", {}, None)] * 3)
    with pytest.raises(shmq.Full):
        Publication(results, 0.0).publish("query", 0, stages)
    assert shell("spark", "publish", "results", expected=1).words
    results.get()
    assert shell("spark", "publish", "results").out == "1 batch finished\n"
    assert shell("spark", "publish", "results").out == "0 batches finished\n"
    assert "there is no queue 'resluts'" in shell("spark", "publish", "resluts", expected=3).words


def test_what_nobody_has_decided_is_told_and_dropped(shell: Shell, broker: shmq.Broker) -> None:
    """The command finishes a decided batch, and leaves the stages of another queue alone."""
    results, other = broker.queue("results", maxsize=3), broker.queue("results.stage")
    for target in (results, results, other):
        StageWriter(target, 60.0).write([Outgoing(b"lost", {}, None)] * 2)
    told = shell("spark", "publish", "results").out
    assert told == "0 batches finished; 2 staging queues not decided: they expire, or --drop-stages deletes them\n"
    assert not [queue for queue in broker.queues() if queue.name.endswith(".published")]
    decided = StageWriter(results, 60.0).write([Outgoing(b"row", {}, None)] * 3)
    results.put("in the way")
    with pytest.raises(shmq.Full):
        Publication(results, 0.0).publish("query", 0, decided)
    assert results.get() == "in the way"
    done = json.loads(shell("--json", "spark", "publish", "results", "--drop-stages").out)
    assert done == {"batches": 1, "undecided": 0, "dropped": 2}
    assert results.get_many(9, timeout=0) == [b"row"] * 3
    assert len([queue for queue in broker.queues() if queue.name.startswith("results.stage.stage.")]) == 1
    assert shell("spark", "publish", "results", "--drop-stages").out == "0 batches finished; 0 staging queues deleted\n"


def test_a_batch_whose_stages_were_dropped_fails_whole_and_is_run_again(shell: Shell, broker: shmq.Broker) -> None:
    results = broker.queue("results")
    sink = StreamSink(SinkOptions.parse({"path": broker.path or "", "queue": "results"}))
    rows = [Outgoing(b"row", {}, None)] * 3
    first = sink.stage(rows, "query")
    assert shell("spark", "publish", "results", "--drop-stages").out == "0 batches finished; 1 staging queue deleted\n"
    with pytest.raises(DataLost, match="nothing of this batch is published"):
        sink.commit([first], 0)
    sink.commit([sink.stage(rows, "query")], 0)
    assert results.get_many(9, timeout=0) == [b"row"] * 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--listen", "0.0.0.0:8815"], "can be reached from other hosts"),
        (["--tls-cert", "cert.pem"], "--tls-cert and --tls-key go together"),
    ],
)
def test_a_gateway_lets_nobody_in_by_mistake(shell: Shell, arguments: list[str], words: str) -> None:
    shell("init")
    assert words in shell("gateway", *arguments, expected=2).words
