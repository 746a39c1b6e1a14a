"""Which rows of a write go into which queue: the column `queue` says it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shmq.names import check_queue_name
from shmq.spark.named_queue import is_own_name

if TYPE_CHECKING:
    import pyarrow

__all__ = ["by_queue"]


def by_queue(batch: pyarrow.RecordBatch) -> Iterator[tuple[str | None, pyarrow.RecordBatch]]:
    """Splits rows by queue, in their order, without that column; None: the rows that name no queue.

    Raises ValueError for a name that no queue can have, and for one that shmq gives.
    """
    if "queue" not in batch.schema.names:
        yield None, batch
        return
    rows: dict[str | None, list[int]] = {}
    for number, name in enumerate(batch.column("queue").to_pylist()):
        rows.setdefault(name, []).append(number)
    plain = batch.drop_columns(["queue"])
    for name, numbers in rows.items():
        if name is not None:
            _check(name)
        yield name, plain if len(rows) == 1 else plain.take(numbers)


def _check(name: str) -> None:
    check_queue_name(name)
    if is_own_name(name):
        raise ValueError(
            f"column 'queue': {name!r} is a name of a queue that shmq has beside yours: claims, stages, notes, dead "
            "letters; rows go into a queue of yours"
        )
