"""Replays an archive into a queue: puts each archived entry once, in the order of the first puts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from shmq.spark.pipelines.archive import read_archive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from shmq.spark.pipelines.replay_ledger import Ledger

__all__ = ["Choice", "outgoing", "replay"]

_KEPT: Final = ("body", "headers", "group", "content_type")


class Choice:
    """The part of an archive that is replayed.

    Arguments:
        days: on which it was put, as "2026-03-01" (UTC); none: all.
        queues: in which it was; none: all.
        where: a condition of Spark's SQL on the columns of the archive; "": none.
    """

    def __init__(self, days: Sequence[str] = (), queues: Sequence[str] = (), where: str = "") -> None:
        self._days = tuple(days)
        self._queues = tuple(queues)
        self.where = where

    def of(self, archive: DataFrame) -> DataFrame:
        """Returns the files of the days and queues, as a whole."""
        from pyspark.sql import functions as F

        if self._days:
            archive = archive.where(F.col("day").isin([F.to_date(F.lit(day)) for day in self._days]))
        return archive.where(F.col("queue").isin(list(self._queues))) if self._queues else archive

    def rows(self, archive: DataFrame) -> DataFrame:
        """Returns the rows for which the condition is true."""
        return archive.where(self.where) if self.where else archive


def outgoing(archive: DataFrame, priorities: bool) -> DataFrame:
    """Archived entries with the columns that a queue can take, in the order in which they were put.

    Arguments:
        archive: as read_archive() gives it, or a part of it.
        priorities: the queue has such; else they are left out.
    """
    columns = (*_KEPT, "priority") if priorities else _KEPT
    return archive.orderBy("enqueued_at", "message_id").select(*columns)


def replay(
    spark: SparkSession,
    archive: str,
    choice: Choice,
    ledger: Ledger,
    path: str,
    queue: str,
    *,
    priorities: bool = False,
    dry_run: bool = False,
) -> int:
    """Puts what is chosen and was not put before, a day at a time; how many rows.

    Arguments:
        archive: its directory.
        choice: what of it.
        ledger: of this archive, queue and condition.
        path, queue: where to.
        priorities: the queue has such.
        dry_run: only count.

    Guarantee: a row is put once into this queue by all replays with this condition, whichever of them died when.
    """
    found = read_archive(spark, archive)
    choice.rows(found)  # a condition that is none is found here, before anything is begun
    chosen = choice.of(found)
    files = {(row["day"], row["file"]) for row in chosen.select("day", "file").distinct().collect()}
    new = set(ledger.new(file for _, file in files))
    if dry_run:
        begun = {file for entry in ledger.pending() for file in entry.files}
        return _count(choice.rows(_of_files(found, new | begun)))
    put = 0
    for entry in ledger.pending():  # a replay that died: what it was going to put
        put += _put(choice.rows(_of_files(found, entry.files)), entry.key, path, queue, priorities)
        ledger.finish(entry)
    for day in sorted({day for day, file in files if file in new}):
        entry = ledger.begin(file for its_day, file in files if its_day == day and file in new)
        put += _put(choice.rows(_of_files(found, entry.files)), entry.key, path, queue, priorities)
        ledger.finish(entry)
    return put


def _of_files(archive: DataFrame, files: Sequence[str] | set[str]) -> DataFrame:
    from pyspark.sql import functions as F

    return archive.where(F.col("file").isin(sorted(files)))


def _count(rows: DataFrame) -> int:
    count: int = rows.count()
    return count


def _put(rows: DataFrame, key: str, path: str, queue: str, priorities: bool) -> int:
    rows = rows.persist()
    try:
        writer = outgoing(rows, priorities).write.format("shmq").mode("append").option("path", path)
        writer.option("queue", queue).option("idempotencyKey", key).save()
        return _count(rows)
    finally:
        rows.unpersist()
