"""A source and a sink of Spark that do nothing: the floor of what Spark itself asks for a row from Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

__all__ = ["ToySource"]

_BATCH_ROWS = 16_384


class _Reader(DataSourceReader):
    def __init__(self, rows: int, size: int, parts: int) -> None:
        self._rows = rows
        self._size = size
        self._parts = parts

    def partitions(self) -> list[InputPartition]:
        bounds = [self._rows * n // self._parts for n in range(self._parts + 1)]
        return [InputPartition(bounds[n + 1] - bounds[n]) for n in range(self._parts)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow as pa

        rows = partition.value
        whole = pa.RecordBatch.from_pydict({"body": pa.array([bytes(self._size)] * _BATCH_ROWS, pa.binary())})
        for begin in range(0, rows, _BATCH_ROWS):
            yield whole.slice(0, min(rows - begin, _BATCH_ROWS))


class _Writer(DataSourceArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for batch in iterator:
            assert batch.num_rows
        return WriterCommitMessage()


class ToySource(DataSource):
    """Rows of one body of zeros; what is written is counted and dropped."""

    @classmethod
    def name(cls) -> str:
        return "shmq-toy"

    def schema(self) -> str:
        return "body binary"

    def reader(self, schema: Any) -> DataSourceReader:
        return _Reader(int(self.options["rows"]), int(self.options["size"]), int(self.options["parts"]))

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        return _Writer()
