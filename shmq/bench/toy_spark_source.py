"""A source and a sink of Spark that do nothing: the floor of what Spark itself asks for a row from Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

__all__ = ["ToySource"]

_BATCH_ROWS = 16_384


class _Reader(DataSourceReader):
    def __init__(self, rows: int, size: int, parts: int) -> None:
        self._rows = rows
        self._size = size
        self._parts = parts

    def partitions(self) -> list[InputPartition]:
        return _shared_out(self._rows, self._parts)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _batches(partition.value, self._size)


class _StreamReader(DataSourceStreamReader):
    """As many rows in each batch."""

    def __init__(self, rows: int, size: int, parts: int) -> None:
        self._rows = rows
        self._size = size
        self._parts = parts

    def initialOffset(self) -> dict[str, Any]:
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return {"row": start["row"] + self._rows}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return _shared_out(end["row"] - start["row"], self._parts)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _batches(partition.value, self._size)

    def commit(self, end: dict[str, Any]) -> None:
        pass

    def stop(self) -> None:
        pass


def _shared_out(rows: int, parts: int) -> list[InputPartition]:
    bounds = [rows * n // parts for n in range(parts + 1)]
    return [InputPartition(bounds[n + 1] - bounds[n]) for n in range(parts)]


def _batches(rows: int, size: int) -> Iterator[Any]:
    import pyarrow as pa

    whole = pa.RecordBatch.from_pydict({"body": pa.array([bytes(size)] * min(rows, _BATCH_ROWS), pa.binary())})
    for begin in range(0, rows, _BATCH_ROWS):
        yield whole.slice(0, min(rows - begin, _BATCH_ROWS))


def _drained(iterator: Iterator[Any]) -> WriterCommitMessage:
    for batch in iterator:
        assert batch.num_rows
    return WriterCommitMessage()


class _Writer(DataSourceArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return _drained(iterator)


class _StreamWriter(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return _drained(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        pass

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        pass


class ToySource(DataSource):
    """Rows of one body of zeros; what is written is counted and dropped."""

    @classmethod
    def name(cls) -> str:
        return "shmq-toy"

    def schema(self) -> str:
        return "body binary"

    def reader(self, schema: Any) -> DataSourceReader:
        return _Reader(int(self.options["rows"]), int(self.options["size"]), int(self.options["parts"]))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        parts = int(self.options.get("parts", "1"))
        return _StreamReader(int(self.options["rows"]), int(self.options["size"]), parts)

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        return _Writer()

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:
        return _StreamWriter()
