"""Spark and Arrow keep any bytes in a string: what is no text in UTF-8 is refused where it is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.spark.hosts_sink import HostsStreamSink
from shmq.spark.options import SinkOptions, addresses_of
from shmq.spark.sink import BatchSink, StreamSink

pa = pytest.importorskip("pyarrow")
BAD = b"caf\xe9"


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="16MiB", disk="1MiB") as opened:
        yield opened


def strings(values: list[bytes | None], kind: Any) -> Any:
    """As Spark hands them over: bytes that nobody has looked at."""
    whole = pa.array(values, pa.binary() if kind == pa.string() else pa.large_binary())
    return pa.Array.from_buffers(kind, len(values), whole.buffers())


def batch(column: str, kind: Any, **more: Any) -> Any:
    """Four rows, of which the third has such a text."""
    texts = strings([b"a", None if column != "body" else b"", BAD, b"b"], kind)
    columns = {"body": pa.array([b"row"] * 4), **more}
    if column in ("key", "value"):
        others = strings([b"a", b"b", b"c", b"d"], kind)
        pair = (others, strings([b"a", b"x", BAD, b"b"], kind))
        columns["headers"] = pa.MapArray.from_arrays([0, 1, 2, 3, 4], *(pair if column == "value" else pair[::-1]))
    else:
        columns[column] = texts
    return pa.RecordBatch.from_pydict(columns)


MORE = {"alone": {}, "columns": {"priority": pa.array([1] * 4)}, "rows": {"delay": pa.array([0.0, 9.0, 9.0, 9.0])}}
CASES = [("body", pa.string()), ("body", pa.large_string()), ("group", pa.string()), ("content_type", pa.string()),
         ("key", pa.string()), ("value", pa.string())]  # fmt: skip


@pytest.mark.parametrize("how", MORE)
@pytest.mark.parametrize(("column", "kind"), CASES, ids=[f"{name} {kind}" for name, kind in CASES])
def test_a_row_with_a_text_that_is_none_is_refused_by_its_column_and_number(
    broker: shmq.Broker, column: str, kind: Any, how: str
) -> None:
    broker.queue("results", priorities=3, groups="shared")
    sound = pa.RecordBatch.from_pydict({"body": pa.array([b"sound"] * 5)})
    unfit = batch(column, kind, **MORE[how])
    named = "headers" if column in ("key", "value") else column
    told = rf"column '{named}' of row 7 is no text in UTF-8: .*0xe9 in position 3.*decode\(body, 'ISO-8859-1'\)"
    options = SinkOptions.parse({"path": broker.path or "", "queue": "results"})
    for write in (lambda it: StreamSink(options).write(it, "query"), BatchSink(options).write):
        with pytest.raises(ValueError, match=told):
            write(iter([sound, unfit]))
    with pytest.raises(ValueError, match=told) as refused:
        broker.queue("results").put_arrow([sound, unfit])
    assert refused.value.accepted == 5  # type: ignore[attr-defined]
    assert [queue.name for queue in broker.queues() if ".stage." in queue.name] == []


def test_a_write_to_gateways_is_refused_before_anything_is_sent() -> None:
    given = {"uri": "grpc://127.0.0.1:1", "queue": "results", "distribution": "group"}
    sink = HostsStreamSink(addresses_of(given), SinkOptions.parse(given), {})
    with pytest.raises(ValueError, match="column 'group' of row 2 is no text in UTF-8"):
        sink.write([batch("group", pa.string())], "query")


def test_all_texts_that_there_are_go_through(broker: shmq.Broker) -> None:
    texts = ["", "\x00", "é", "漢", "\U0010ffff", "a" * 9999]
    options = SinkOptions.parse({"path": broker.path or "", "queue": "results"})
    sink = BatchSink(options)
    sink.commit([sink.write([pa.RecordBatch.from_pydict({"body": pa.array(texts)})])])
    assert broker.queue("results").get_many(9, timeout=0) == texts
