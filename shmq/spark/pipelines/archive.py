"""An archive: entries of queues in Parquet files, by day and queue, each of them once.

An archive is a directory. Each broker and subscription that writes into it has a folder of its own there. For Spark's
log of the files that count belongs to one checkpoint, and a broker that was made anew begins a new one.

    ARCHIVE/archive-5f3a09c1d2e4/day=2026-03-01/queue=orders/part-....parquet
    ARCHIVE/archive-5f3a09c1d2e4/_spark_metadata, _checkpoint
    ARCHIVE/_replays                                          see replay_ledger
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shmq.engine.arrow.row import BY_NAME, FIELDS, ddl
from shmq.engine.claims.claim import identity_of
from shmq.errors import NotFound

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from shmq.engine.queue.queue import Queue

__all__ = ["COLUMNS", "Place", "archived", "folders_of", "read_archive", "start_archive"]

COLUMNS: Final = tuple(field.name for field in (*FIELDS, *BY_NAME))
_LOG: Final = "_spark_metadata"


class Place:
    """Where a subscription of a broker writes within an archive.

    Arguments:
        archive: the directory; it need not be there.
        queue: any of the broker's.
        subscription: under which the stream keeps what it has claimed.
    """

    def __init__(self, archive: str | Path, queue: Queue[Any], subscription: str) -> None:
        broker = identity_of(queue).partition("-")[0]
        self.folder = Path(archive).absolute() / f"{subscription}-{broker[:12]}"
        self.checkpoint = self.folder / "_checkpoint"


def archived(entries: DataFrame) -> DataFrame:
    """Entries as they are kept: with `archived_at`, and the `day` (of UTC) on which they were put.

    Example:
        >>> archived(spark.read.format("shmq").option("path", "shop.shmq").option("queue", "orders").load())
    """
    from pyspark.sql import functions as F

    return entries.withColumn("archived_at", F.current_timestamp()).withColumn("day", F.to_date("enqueued_at"))


def start_archive(
    spark: SparkSession,
    path: str,
    queues: Sequence[str],
    place: Place,
    subscription: str,
    seconds: float | None = None,
) -> StreamingQuery:
    """Starts the query that takes entries out of queues and keeps them.

    Arguments:
        path: of the broker.
        queues: their names.
        place: as Place says.
        subscription: one query at a time has it.
        seconds: from the begin of a batch to that of the next one, until it is stopped; None: the entries that are
            there now, and then the query ends.

    Guarantee: an entry is in its queue, among the claims of the subscription, or once in the archive, whoever is killed
    when. Readers that go by Spark's log of files see it once, others may see files of a batch that was not finished.
    """
    stream = (
        spark.readStream.format("shmq")
        .option("path", path)
        .option("queue", json.dumps(list(queues)))
        .option("subscription", subscription)
        .option("columns", ",".join(COLUMNS))
        .load()
    )
    rows = archived(stream).repartition("day", "queue")  # one file of each in a batch
    writer = rows.writeStream.format("parquet").partitionBy("day", "queue").option("compression", "zstd")
    writer = writer.option("path", str(place.folder)).option("checkpointLocation", str(place.checkpoint))
    if seconds is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{round(seconds * 1000)} milliseconds").start()


def read_archive(spark: SparkSession, archive: str | Path) -> DataFrame:
    """All that is in an archive: the columns of the format, and death, archived_at, day, and the name of the file.

    Raises NotFound if there is none.

    Example:
        >>> read_archive(spark, "/var/lib/archive").where("day = '2026-03-01' AND queue = 'orders'").count()
    """
    from pyspark.sql import functions as F

    schema = f"{ddl(COLUMNS)}, archived_at timestamp, day date"  # what a folder is called may look like a number
    file = F.col("_metadata.file_name").alias("file")
    parts = [spark.read.schema(schema).parquet(str(folder)).select("*", file) for folder in folders_of(archive)]
    return reduce(lambda one, other: one.unionByName(other), parts)


def folders_of(archive: str | Path) -> list[Path]:
    """Returns the folders of an archive that hold entries. Raises NotFound if there is none."""
    top = Path(archive)
    found = sorted(log.parent for log in top.glob(f"*/{_LOG}")) if top.is_dir() else []
    if not found:
        raise NotFound(f"there is no archive in {str(archive)!r}", remedy="shmq pipeline archive DIR QUEUE makes one")
    return found
