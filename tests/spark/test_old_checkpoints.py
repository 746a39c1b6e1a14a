"""A checkpoint of an earlier time, and a copy beside which another one goes on: each row once, or an error, never
silence."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.engine.arrow.outgoing import Outgoing
from shmq.spark.data_lost import DataLost
from shmq.spark.options import SinkOptions, SourceOptions
from shmq.spark.publication import Publication
from shmq.spark.sink import BatchSink, StreamSink
from shmq.spark.stage import StageWriter
from shmq.spark.stream_source import Limit, StreamSource
from shmq.spark.subscription import claims_name
from tests.spark.engine import Checkpoint, Crash, Engine

BATCH = 10


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="32MiB", disk="1MiB") as opened:
        opened.queue("orders")
        yield opened


def source(broker: shmq.Broker, **options: str) -> SourceOptions:
    given = {"path": broker.path or "", "queue": "orders", "subscription": "etl", "pollMs": "0"}
    return SourceOptions.parse(given | {"maxRowsPerBatch": str(BATCH)} | options)


def sink(broker: shmq.Broker, **options: str) -> SinkOptions:
    return SinkOptions.parse({"path": broker.path or "", "queue": "results"} | options)


class ToFiles(Engine):
    """As Spark's file sink: a batch whose number is in its log is left out."""

    files: dict[int, list[bytes]]

    def _task(self, part: Any) -> Any:
        with shmq.open(self.sink.path, create=False) as broker:
            return [entry[9] for entry in self.source.entries(broker, part)]

    def _commit(self, messages: list[Any], batch: int) -> None:
        self.files.setdefault(batch, [row for rows in messages for row in rows])


class ForeachBatch(Engine):
    """df.write with a key and the batch's number as its version."""

    def _task(self, part: Any) -> Any:
        with shmq.open(self.sink.path, create=False) as broker:
            rows = [Outgoing(entry[9], {}, None) for entry in self.source.entries(broker, part)]
        return BatchSink(self.sink).stage(rows)

    def _commit(self, messages: list[Any], batch: int) -> None:
        given = {"path": self.sink.path, "queue": self.sink.queue, "idempotencyKey": "taxes"}
        options = SinkOptions.parse(given | {"idempotencyVersion": str(batch)})
        again = [type(message)("taxes", message.stages) for message in messages]
        BatchSink(options).commit(again)


class Way:
    """From the queue `orders` to somewhere, through one of the ways that there are."""

    def __init__(self, broker: shmq.Broker, kind: str) -> None:
        self.broker = broker
        self.kind = kind
        self.files: dict[int, list[bytes]] = {}
        self.found: list[bytes] = []

    def run(self, checkpoint: Checkpoint, crash_at: int | None = None, *, now: bool = False, **how: Any) -> None:
        options = how.pop("options", {})
        kinds = {"files": ToFiles, "queue": Engine, "foreach": ForeachBatch}
        engine = kinds[self.kind](checkpoint, source(self.broker, **options), sink(self.broker), crash_at)
        if isinstance(engine, ToFiles):
            engine.files = self.files
        engine.run(available_now=now, **how)

    def rows(self) -> list[bytes]:
        if self.kind == "files":
            return [row for rows in self.files.values() for row in rows]
        try:
            while True:
                self.found.append(self.broker.queue("results").get(timeout=0))
        except shmq.Empty:
            return self.found


WAYS = pytest.mark.parametrize("kind", ["queue", "foreach", "files"])


def put(broker: shmq.Broker, begin: int, end: int) -> list[bytes]:
    rows = [b"%d" % n for n in range(begin, end)]
    broker.queue("orders").put_many(rows)
    return rows


def cut(checkpoint: Checkpoint, batches: int) -> None:
    """The last batches are removed, as one does who wants Spark to run them again."""
    del checkpoint.offsets[-batches:]
    left = len(checkpoint.offsets) - 1
    checkpoint.commits[:] = [batch for batch in checkpoint.commits if batch < left]


@WAYS
@pytest.mark.parametrize("now", [False, True])
@pytest.mark.parametrize("batches", [2, 3, 6])
def test_a_checkpoint_whose_last_batches_were_removed_is_refused_and_loses_nothing(
    broker: shmq.Broker, kind: str, now: bool, batches: int
) -> None:
    way, checkpoint = Way(broker, kind), Checkpoint()
    rows = put(broker, 0, 60)
    way.run(checkpoint, now=now)
    assert way.rows() == rows
    cut(checkpoint, batches)
    rows += put(broker, 60, 90)
    with pytest.raises(DataLost, match=r"older than the last acknowledgement of subscription 'etl'.*new checkpoint"):
        way.run(checkpoint, now=now)
    assert way.rows() == rows[:60]
    assert broker.queue("orders").qsize() == 30
    new = Way(broker, kind)
    if kind == "foreach":  # it has numbers of its own
        with pytest.raises(DataLost, match="or a higher idempotencyVersion"):
            new.run(Checkpoint(), now=now)
        return
    new.run(Checkpoint(query="anew"), now=now)
    assert sorted(set(way.rows() + new.rows())) == sorted(rows)


@WAYS
@pytest.mark.parametrize("limit", ["4", "25"])
def test_the_last_batch_that_was_not_acknowledged_comes_again_with_the_same_rows(
    broker: shmq.Broker, kind: str, limit: str
) -> None:
    """Also when there are newcomers, and batches may be smaller or larger by now."""
    way, checkpoint = Way(broker, kind), Checkpoint()
    rows = put(broker, 0, 60)
    way.run(checkpoint)
    cut(checkpoint, 1)
    rows += put(broker, 60, 95)
    way.run(checkpoint, options={"maxRowsPerBatch": limit})
    assert way.rows() == rows


@WAYS
def test_a_copy_of_a_checkpoint_that_goes_on_beside_it_loses_and_doubles_nothing(
    broker: shmq.Broker, kind: str
) -> None:
    way, one = Way(broker, kind), Checkpoint()
    rows = put(broker, 0, 30)
    way.run(one)
    two = copy.deepcopy(one)
    rows += put(broker, 30, 37)
    way.run(one)
    rows += put(broker, 37, 60)
    way.run(two)
    assert way.rows() == rows
    with pytest.raises(DataLost, match="older than the last acknowledgement"):
        way.run(one)
    rows += put(broker, 60, 70)
    way.run(two)
    assert way.rows() == rows


@WAYS
@pytest.mark.parametrize("seed", range(6))
def test_copies_backups_crashes_and_removed_batches_in_any_order_lose_and_double_nothing(
    broker: shmq.Broker, kind: str, seed: int
) -> None:
    seed = random.Random(seed).getrandbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    way, checkpoints, told = Way(broker, kind), [Checkpoint()], 0
    rows: list[bytes] = []
    for _ in range(40):
        rows += put(broker, len(rows), len(rows) + chance.randrange(25))
        one = chance.choice(checkpoints)
        deed = chance.randrange(6)
        if deed == 0 and len(checkpoints) < 4:
            checkpoints.append(copy.deepcopy(one))
        elif deed == 1 and len(one.offsets) > 3:
            cut(one, chance.randrange(1, 3))
        try:
            crash_at = chance.choice([None, chance.randrange(1, 20)])
            limit = {"maxRowsPerBatch": str(chance.randrange(1, 20))}
            way.run(one, crash_at, now=chance.random() < 0.3, options=limit, batches=chance.randrange(1, 5))
        except Crash:
            pass
        except DataLost:
            told += 1
            checkpoints.remove(one)
            if not checkpoints:
                break
    found = way.rows()
    assert len(set(found)) == len(found)
    claimed = [body.encode() if isinstance(body, str) else body for body in bodies(broker)]
    assert set(found) | set(claimed) == set(rows)
    assert told or len(checkpoints) == 1


def bodies(broker: shmq.Broker) -> list[Any]:
    return [m.body for name in ("orders", claims_name("orders", "etl")) for m in broker.queue(name).browse()]


@pytest.mark.parametrize("at", ["before", "between", "behind"])
def test_a_planner_that_dies_amid_what_it_writes_down_loses_and_doubles_nothing(
    broker: shmq.Broker, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the record is put; before the one before it is discarded; before what it says is done."""
    from shmq.spark import plan_record, subscription

    rows = put(broker, 0, 50)
    checkpoint, way = Checkpoint(), Way(broker, "queue")
    places = {
        "before": (plan_record.PlanRecord, "_write"),
        "between": (plan_record, "discard_below"),
        "behind": (subscription, "discard_below"),
    }
    place, name = places[at]
    real = getattr(place, name)
    for survived in range(30):
        calls = [0]

        def dying(*given: Any, calls: list[int] = calls, survived: int = survived) -> Any:
            calls[0] += 1
            if calls[0] > survived % 7:
                raise Crash
            return real(*given)

        monkeypatch.setattr(place, name, dying)
        try:
            way.run(checkpoint)
        except Crash:
            pass
        finally:
            monkeypatch.undo()
    way.run(checkpoint)
    assert way.rows() == rows


def test_a_query_that_shall_not_fail_goes_on_with_what_there_is_and_the_queue_tells(broker: shmq.Broker) -> None:
    way, checkpoint = Way(broker, "queue"), Checkpoint()
    put(broker, 0, 60)
    way.run(checkpoint)
    cut(checkpoint, 3)
    put(broker, 60, 90)
    told = r"published is batch 5 with 10 rows, this is batch 3 with 10; nothing of this batch is published"
    with pytest.raises(DataLost, match=told):
        way.run(checkpoint, options={"failOnDataLoss": "false"})
    assert len(way.rows()) == 60
    way.run(Checkpoint(query="anew"))
    assert sorted(set(way.rows())) == sorted(b"%d" % n for n in range(90))


def test_a_record_that_finds_no_memory_leaves_its_batch_claimed(
    broker: shmq.Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = put(broker, 0, 30)
    way, checkpoint = Way(broker, "queue"), Checkpoint()
    with monkeypatch.context() as patch:

        def full(*_: Any, **__: Any) -> None:
            raise shmq.OutOfSpace("no memory")

        patch.setattr("shmq.spark.plan_record.PlanRecord.plan", full)
        way.run(checkpoint)
        assert way.rows() == []
    way.run(checkpoint)
    assert way.rows() == rows


def test_the_record_is_of_its_claims(broker: shmq.Broker) -> None:
    """Claims that were made anew begin at their beginning."""
    put(broker, 0, 30)
    Way(broker, "queue").run(Checkpoint())
    broker.queue(claims_name("orders", "etl")).delete()
    put(broker, 30, 40)
    planner = StreamSource(source(broker))
    start = planner.initialOffset()
    assert planner.latestOffset(start, Limit())["queues"]["orders"]["rows"] == 10
    planner.close()


def test_a_name_of_the_records_is_no_name_of_a_subscription(broker: shmq.Broker) -> None:
    with pytest.raises(ValueError, match=r"names that end with '\.planned' are taken"):
        StreamSource(source(broker, subscription="etl.planned"))


# ---- notes -----------------------------------------------------------------------------------------------------------


def write(broker: shmq.Broker, rows: list[str], **options: str) -> None:
    written = BatchSink(sink(broker, **options))
    written.commit([written.stage([Outgoing(row, {}, None) for row in rows])])


def test_a_batch_of_another_source_under_an_old_number_is_told(broker: shmq.Broker) -> None:
    """Kafka, say, whose rows come again: the queue knows by the number, and by how many rows there are."""
    written = StreamSink(sink(broker))
    for batch, count in ((0, 3), (1, 4), (1, 4), (2, 5)):
        written.commit([written.stage([Outgoing(b"row", {}, None)] * count, "query")], batch)
    assert broker.queue("results").qsize() == 12
    for batch, count in ((2, 6), (2, 4), (1, 4), (0, 9)):
        staged = written.stage([Outgoing(b"row", {}, None)] * count, "query")
        with pytest.raises(DataLost, match=f"published is batch 2 with 5 rows, this is batch {batch} with {count}"):
            written.commit([staged], batch)
        written.abort([staged], batch)
    written.commit([written.stage([Outgoing(b"row", {}, None)] * 4, "query")], 3)
    assert broker.queue("results").qsize() == 16
    assert [queue.name for queue in broker.queues() if ".stage." in queue.name] == []


def test_a_key_without_a_version_is_of_one_write(broker: shmq.Broker) -> None:
    for _ in range(2):
        write(broker, ["a", "b"], idempotencyKey="night")
    with pytest.raises(DataLost, match="another idempotencyKey, or a higher idempotencyVersion"):
        write(broker, ["a", "b", "c"], idempotencyKey="night")
    write(broker, ["a", "b", "c"], idempotencyKey="night", idempotencyVersion="1")
    assert broker.queue("results").get_many(9, timeout=0) == ["a", "b", "a", "b", "c"]


def test_of_a_key_with_versions_one_note_is_kept(broker: shmq.Broker) -> None:
    for version in range(50):
        write(broker, ["a"], idempotencyKey="taxes", idempotencyVersion=str(version))
        write(broker, ["a"], idempotencyKey="taxes", idempotencyVersion=str(version))
    assert broker.queue("results").qsize() == 50
    assert broker.queue("results.published").qsize() == 1
    with pytest.raises(ValueError, match="idempotencyVersion goes with an idempotencyKey"):
        sink(broker, idempotencyVersion="3")


@pytest.mark.parametrize("undone", [False, True])
def test_notes_end_with_their_queue(broker: shmq.Broker, undone: bool) -> None:
    """Also one that was decided and not moved: its rows went with the queue."""
    results = broker.queue("results", maxsize=2)
    stages = StageWriter(results, 60.0).write([Outgoing("old", {}, None)] * (3 if undone else 2))
    if undone:
        with pytest.raises(shmq.Full):
            Publication(results, 0.0).publish("taxes", 0, stages)
    else:
        Publication(results, 0.0).publish("taxes", 0, stages)
    results.delete()
    for _ in range(2):
        write(broker, ["new"], idempotencyKey="taxes")
    assert broker.queue("results").get_many(9, timeout=0) == ["new"]
    assert broker.queue("results.published").qsize() == 1
    assert [queue.name for queue in broker.queues() if ".stage." in queue.name] == []
