"""Rows that the core puts as columns are those that Python puts one by one."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.core.queue import Browsed, column_heads, encode_extras
from shmq.engine.arrow.option_columns import options_of
from shmq.engine.arrow.outgoing import bodies_of, outgoing
from shmq.engine.claims.claim import entries_between, levels_of
from shmq.headers import Header
from shmq.options.message import check_put_options
from shmq.spark.stage import Stage, StageWriter
from tests.spark.heads import any_header

pytestmark = pytest.mark.usefixtures("with_spark")  # for its pyarrow

NAMES = ["text", "n", "ü", "日本", "x" * 255, "shmq", "JM"]
TYPES = ["application/json", "application/octet-stream", "application/x-own", "x", "text/plain; charset=utf-8"]


def text_or_none(value: Header) -> str | None:
    return value if isinstance(value, str) else None


def any_batch(rng: random.Random, rows: int) -> Any:
    """Some of the columns, and a part of what they were made with."""
    import pyarrow as pa

    text = rng.random() < 0.5
    bodies = ["ü" * rng.choice([0, 1, 40, 500, 9_000]) for _ in range(rows)]
    maps = [
        None
        if rng.random() < 0.2
        else [(name, text_or_none(any_header(rng))) for name in rng.sample(NAMES, rng.randrange(5))]
        for _ in range(rows)
    ]
    columns = {
        "headers": pa.array(maps, pa.map_(pa.string(), pa.string())),
        "group": pa.array([rng.choice([None, "a", "ü" * 127]) for _ in range(rows)], pa.string()),
        "content_type": pa.array([rng.choice([None, *TYPES]) for _ in range(rows)], pa.string()),
        "priority": pa.array(
            [rng.choice([None, *range(10)]) for _ in range(rows)], rng.choice([pa.int8(), pa.int64()])
        ),
        "ttl": pa.array(
            [rng.choice([None, 100, 5_000, 10**9]) for _ in range(rows)], rng.choice([pa.int64(), pa.float64()])
        ),
        "delay": pa.nulls(rows, pa.int32()),
    }
    chosen = {name: columns[name] for name in rng.sample([*columns], rng.randrange(1, len(columns) + 1))}
    body = pa.array(bodies if text else [body.encode() for body in bodies], pa.string() if text else pa.binary())
    begin = rng.randrange(rows)
    return pa.RecordBatch.from_pydict({"body": body, **chosen}).slice(begin, rng.randrange(rows - begin + 1))


def staged(target: shmq.Queue[Any], rows: list[Any]) -> tuple[Stage, list[tuple[object, ...]]]:
    (stage,) = StageWriter(target, 60.0).write(rows)
    queue = target.broker.queue(stage.queue)
    ((begin, end),) = levels_of(queue)
    seen = [_said(entry) for entry in entries_between(queue, begin, end)]
    queue.delete()
    return stage, seen


def _said(entry: Browsed) -> tuple[object, ...]:
    """Content, priority, head, body, and the time to live in seconds."""
    return entry[3], entry[7], entry[8], entry[9], entry[10] and round((entry[10] - entry[2]) / 1e9)


def test_rows_are_put_as_python_puts_them(broker_dir: Path, seed: int) -> None:
    rng = random.Random(seed)
    with shmq.open(broker_dir, memory="128MiB") as broker:
        target = broker.queue("results", priorities=5, groups="shared")
        for _ in range(60):
            batch = any_batch(rng, 150)
            found = bodies_of(batch)
            assert found is not None
            if batch.num_rows:
                (stage, seen), (expected_stage, expected) = staged(target, [found]), staged(target, [*outgoing(batch)])
                assert seen == expected
                assert (stage.count, stage.timed) == (expected_stage.count, expected_stage.timed)


def test_rows_with_options_go_on_in_another_stage_where_one_is_full(
    broker_dir: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    with shmq.open(broker_dir, memory="128MiB") as broker:
        target = broker.queue("results", priorities=5, groups="shared")
        batch = any_batch(rng, 400)
        while batch.num_rows < 200:
            batch = any_batch(rng, 400)
        _, expected = staged(target, [*outgoing(batch)])
        declare = type(broker).queue

        def small(self: shmq.Broker, name: str, *args: Any, **options: Any) -> Any:
            return declare(self, name, *args, **options | ({"maxsize": 70} if ".stage." in name else {}))

        monkeypatch.setattr(type(broker), "queue", small)
        found = bodies_of(batch)
        assert found is not None
        stages = StageWriter(target, 60.0).write([found])
        monkeypatch.undo()
        queues = [broker.queue(stage.queue) for stage in stages]
        seen = [_said(e) for queue in queues for level in levels_of(queue) for e in entries_between(queue, *level)]
        assert len(stages) == -(-batch.num_rows // 70)
        assert seen == expected


UNFIT: dict[str, list[Any]] = {
    "headers": [[("JMSType", "a")], [("", "a")], [("x" * 256, "a")], [("a", "x" * 64_600)], [("a", "x" * 65_536)]],
    "group": ["", "x" * 256],
    "content_type": ["", "x" * 256, "ü", "a\nb"],
    "priority": [-1, 10],
    "ttl": [-1.0, math.nan],
    "delay": [-1.0, math.nan],
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_cannot_be_put_is_left_to_python_which_says_why(broker_dir: Path, name: str) -> None:
    import pyarrow as pa

    kinds = {
        "headers": pa.map_(pa.string(), pa.string()),
        "priority": pa.int32(),
        "ttl": pa.float64(),
        "delay": pa.float64(),
    }
    with shmq.open(broker_dir, memory="64MiB") as broker:
        target = broker.queue("results", priorities=5, groups="shared")
        for value in UNFIT[name]:
            column = pa.array([None, value], kinds.get(name, pa.string()))
            batch = pa.RecordBatch.from_pydict({"body": [b"x", b"y"], name: column})
            assert bodies_of(batch) is None
            with pytest.raises(ValueError, match=r"header|group|content type|priority|ttl|delay"):
                StageWriter(target, 60.0).write(outgoing(batch))


def test_a_name_that_comes_twice_is_left_to_python(broker_dir: Path) -> None:
    import pyarrow as pa

    maps = pa.array(
        [[("a", "1"), ("b", "2"), ("a", "3")], [(f"{n}", "") for n in range(65)]], pa.map_(pa.string(), pa.string())
    )
    for row in range(2):
        assert bodies_of(pa.RecordBatch.from_pydict({"body": [b"x"], "headers": maps.slice(row, 1)})) is None
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    for columns in ({"body": [b"x"], "group": broken}, {"body": broken, "group": ["a"]}):
        assert bodies_of(pa.RecordBatch.from_pydict(columns)) is None


@pytest.mark.parametrize("option", [{"priority": 7}, {"group": "a"}], ids=["priority", "group"])
def test_what_the_target_does_not_take_is_refused_as_for_one_row(broker_dir: Path, option: dict[str, Any]) -> None:
    import pyarrow as pa

    ((name, value),) = option.items()
    batch = pa.RecordBatch.from_pydict({"body": [b"x", b"y", b"z"], name: [None, value, value]})
    found = bodies_of(batch)
    assert found is not None
    with shmq.open(broker_dir, memory="64MiB") as broker:
        target = broker.queue("results")
        with pytest.raises(ValueError, match="has no") as expected:
            StageWriter(target, 60.0).write(outgoing(batch))
        with pytest.raises(ValueError, match="has no") as refused:
            StageWriter(target, 60.0).write([found])
        assert str(refused.value) == str(expected.value)
        assert [queue.name for queue in broker.queues()] == ["results"]


def test_times_are_what_a_put_makes_of_them(seed: int) -> None:
    import pyarrow as pa

    rng = random.Random(seed)
    values: list[float | None] = [None, 0.0, 1e-10, 1e-9, 2.5e-9, 3.5e-9, 0.1, 999_999_999.9, 1e9, 1e300, math.inf]
    values += [rng.uniform(0, 10 ** rng.randrange(-9, 10)) for _ in range(500)]
    wholes = [None, 0, 1, 10**9 - 1, 10**9, 2**63 - 1]
    for kind, given in ((pa.float64(), values), (pa.float32(), values[:9]), (pa.int64(), wholes)):
        batch = pa.RecordBatch.from_pydict({"body": [b""] * len(given), "ttl": pa.array(given, kind)})
        found = options_of(batch, 0)
        assert found is not None
        extras = [encode_extras(check_put_options({"ttl": ttl})) for ttl in batch.column("ttl").to_pylist()]
        assert found.ttls.tolist() == [2**64 - 1 if extra is None else extra[1] for extra in extras]


def test_columns_that_do_not_fit_each_other_are_refused(broker_dir: Path) -> None:
    none, one = (b"", b"\0" * 4, b""), (b"\1", b"\0" * 8, b"")
    far = (b"\1", b"\0\0\0\0\5\0\0\0", b"abc")
    for texts in ([far, one, none, none], [one, none, none, none], [none, none, none, none]):
        group, named, names, values = texts
        ends = b"\0\0\0\0\1\0\0\0"
        if group == none:
            group = named = (b"\0", b"\0" * 8, b"")
        with pytest.raises(ValueError, match="do not match"):
            column_heads(1000, group, named, names, values, b"\1", ends)
    with shmq.open(broker_dir, memory="16MiB") as broker:
        queue = broker.queue("results")
        good = (b"\0", b"\4", b"\xff" * 8, b"\0" * 8, b"")
        queue._put_column(0, False, b"\0" * 8, b"", 0, 1, good, 0)
        for n, unfit in enumerate((b"", b"\x0a", b"\0", b"\0\0\0\0\1\0\0\0")):
            with pytest.raises(ValueError, match="do not match"):
                queue._put_column(0, False, b"\0" * 8, b"", 0, 1, (*good[:n], unfit, *good[n + 1 :]), 0)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            queue._put_column(0, False, b"\0" * 8, b"", 0, 1, b"", 0)  # type: ignore[arg-type]
        assert queue.qsize() == 1
