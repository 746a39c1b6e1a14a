"""Rows that the core makes as columns are those that Python makes one by one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.codec import Codec
from shmq.core.queue import head_columns
from shmq.engine.arrow.outgoing import bodies_of, outgoing
from shmq.engine.arrow.row import FIELDS, batches
from shmq.engine.claims.claim import bounds_of, identity_of, levels_of, wall_clock_of
from shmq.spark.column_batches import column_batches
from shmq.spark.data_lost import DataLost
from shmq.spark.entry_range import EntryRange, entries_of
from shmq.spark.stage import StageWriter
from tests.spark.heads import any_headers, in_columns

pytestmark = pytest.mark.usefixtures("with_spark")  # for its pyarrow

NAMES = [field.name for field in FIELDS]


def ranges_of(queue: shmq.Queue[Any]) -> list[EntryRange]:
    return [EntryRange("shown as", queue.name, identity_of(queue), *level, None) for level in levels_of(queue)]


def of_python(broker: shmq.Broker, wanted: EntryRange) -> list[dict[str, Any]]:
    made = batches(entries_of(broker, wanted), wanted.queue, NAMES, wall_clock_of(broker))
    return [row for batch in made for row in batch.to_pylist()]


def of_columns(broker: shmq.Broker, wanted: EntryRange, names: list[str] = NAMES) -> list[dict[str, Any]]:
    return [row for batch in column_batches(broker, wanted, names) for row in batch.to_pylist()]


@pytest.mark.parametrize("plain", [True, False], ids=["without heads", "with heads"])
def test_columns_are_the_rows_that_python_makes(broker_dir: Path, seed: int, plain: bool) -> None:
    rng = random.Random(seed)
    own = Codec("application/x-own", lambda body: bytes(body), bytes)
    with shmq.open(broker_dir, memory="64MiB") as broker:
        queue = broker.queue("orders", priorities=3, groups="shared")
        named = broker.queue("orders", codec=own)
        for _ in range(400):
            size = rng.choice([0, 1, 64, 200, 5_000, 70_000])
            body = rng.randbytes(size)
            options: dict[str, Any] = {"priority": rng.randrange(10)}
            if plain:
                queue.put(rng.choice([body, body.hex(), {"n": size}]), **options)
                continue
            if rng.random() < 0.7:
                options["headers"] = any_headers(rng)
            if rng.random() < 0.5:
                options["group"] = rng.choice(["a", "ü" * 127, f"customer {rng.randrange(5)}"])
            rng.choice([queue, named]).put(body, **options)
        with queue.consumer() as consumer:
            for _ in range(20):
                consumer.receive().release()  # some have been delivered before
        for wanted in ranges_of(queue):
            found = of_columns(broker, wanted)
            assert found == of_python(broker, wanted)
            assert of_columns(broker, wanted, ["body", "group"]) == [
                {"body": row["body"], "group": row["group"]} for row in found
            ]


def test_heads_that_are_not_plain_are_read_by_python(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="64MiB") as broker:
        many, dead = broker.queue("many", groups="shared"), broker.queue("dying")
        many.put(b"x", headers={f"key {n}": n for n in range(65)}, group="a")
        many.put(b"y", headers={"n": 1})
        dead.put(b"z", headers={"n": 1.5})
        dead.receive().reject("unfit")
        for queue in (many, broker.queue("dying.dead")):
            (wanted,) = ranges_of(queue)
            heads = [seen[8] for seen in entries_of(broker, wanted)]
            assert head_columns(*in_columns(heads)) is None
            assert of_columns(broker, wanted) == of_python(broker, wanted) != []


def test_a_batch_ends_at_rows_and_at_bytes(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="256MiB") as broker:
        small, large = broker.queue("small"), broker.queue("large")
        small.put_many([b"x"] * 40_000)
        large.put_many([bytes(6 << 20)] * 7)
        for queue, sizes in ((small, [16_384, 16_384, 7_232]), (large, [3, 3, 1])):
            (wanted,) = ranges_of(queue)
            assert [batch.num_rows for batch in column_batches(broker, wanted, ["body"])] == sizes
            assert [batch.num_rows for batch in column_batches(broker, wanted, ["position"])] == sizes


def test_entries_that_are_gone_are_left_out_or_an_error(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="64MiB") as broker:
        queue = broker.queue("orders")
        queue.put_many(range(100))
        begin, end = bounds_of(queue)
        wanted = EntryRange("orders", "orders", identity_of(queue), begin + 10, end - 10, 80)
        assert len(of_columns(broker, wanted)) == 80
        for _ in range(30):
            queue.get()
        assert [row["body"] for batch in column_batches(broker, wanted, NAMES, False) for row in batch.to_pylist()] == [
            b"%d" % n for n in range(30, 90)
        ]
        with pytest.raises(DataLost, match="60 of 80"):
            of_columns(broker, wanted)
        gone = EntryRange("orders", "orders", "another", begin, end, 80)
        assert list(column_batches(broker, gone, NAMES, False)) == []
        with pytest.raises(DataLost, match="0 of 80"):
            of_columns(broker, gone)
        assert of_columns(broker, EntryRange("orders", "orders", "", end, end, None)) == []


def test_bodies_are_staged_as_they_lie_in_a_batch(broker_dir: Path, seed: int) -> None:
    import pyarrow as pa

    rng = random.Random(seed)
    texts = ["ü" * rng.choice([0, 1, 30, 500, 9_000]) for _ in range(300)]
    kinds: list[tuple[Any, list[Any]]] = [
        (kind, texts if kind in (pa.string(), pa.large_string()) else [text.encode() for text in texts])
        for kind in (pa.binary(), pa.string(), pa.large_binary(), pa.large_string())
    ]
    with shmq.open(broker_dir, memory="64MiB") as broker:
        target = broker.queue("results")
        for kind, bodies in kinds:
            batch = pa.RecordBatch.from_pydict({"body": pa.array(bodies, kind)})
            found = bodies_of(batch.slice(7))
            assert found is not None
            (stage,) = StageWriter(target, 60.0).write([*outgoing(batch.slice(0, 7)), found])
            assert stage.count == len(bodies)
            queue = broker.queue(stage.queue)
            assert [queue.get(timeout=0) for _ in bodies] == bodies
        unfit = pa.RecordBatch.from_pydict({"body": [b"x", None]}), pa.RecordBatch.from_pydict({"body": [1]})
        assert [bodies_of(batch) for batch in unfit] == [None, None]


def test_bodies_go_on_in_another_stage_where_one_is_full(broker_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    with shmq.open(broker_dir, memory="64MiB") as broker:
        target = broker.queue("results")
        declare = type(broker).queue

        def small(self: shmq.Broker, name: str, *args: Any, **options: Any) -> Any:
            return declare(self, name, *args, **options | ({"maxsize": 150} if ".stage." in name else {}))

        monkeypatch.setattr(type(broker), "queue", small)
        rows = [b"%d" % n for n in range(400)]
        found = bodies_of(pa.RecordBatch.from_pydict({"body": pa.array(rows, pa.binary())}))
        assert found is not None
        stages = StageWriter(target, 60.0).write([found])
        assert [stage.count for stage in stages] == [150, 150, 100]
        monkeypatch.undo()
        taken = [broker.queue(stage.queue).get(timeout=0) for stage in stages for _ in range(stage.count)]
        assert taken == rows


def test_a_body_that_is_too_large_leaves_no_stage(broker_dir: Path) -> None:
    import pyarrow as pa

    with shmq.open(broker_dir, memory="16MiB") as broker:
        found = bodies_of(pa.RecordBatch.from_pydict({"body": [b"x", bytes(5 << 20)]}))
        assert found is not None
        with pytest.raises(shmq.MessageTooLarge):
            StageWriter(broker.queue("results"), 60.0).write([found])
        assert [queue.name for queue in broker.queues()] == ["results"]
