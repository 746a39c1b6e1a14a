"""The figures of queues and archives, collected: what `shmq pipeline stats` shows."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from shmq.spark.pipelines import measures
from shmq.spark.pipelines.archive import read_archive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["EVERY", "Statistics", "archived_entries", "collected", "entries_of"]

EVERY: Final = {"minute": 60, "hour": 3600, "day": 86_400}  # seconds
_STEPS: Final = 1500  # more points are no picture
_MOST_POISON: Final = 100
COLUMNS: Final = ("queue", "enqueued_at", "delivery_count", "group", "content_type", "headers", "body", "death")

Row = dict[str, Any]


@dataclass(frozen=True)
class Statistics:
    """Times are POSIX seconds.

    Attributes:
        at: when they were made.
        every: "minute", "hour" or "day": what stands under `minutes` and `waits_by_minute` is of so long.
        queues: as measures.summary() has them, and the quantiles of what waited there, None where nothing did.
        minutes: as measures.by_minute().
        waits_by_minute: as measures.quantiles() by queue and minute.
        redelivered: as measures.redelivered().
        poison: as measures.poison(), the first hundred.
    """

    at: float
    every: str
    queues: list[Row]
    minutes: list[Row]
    waits_by_minute: list[Row]
    redelivered: list[Row]
    poison: list[Row]

    def plain(self) -> dict[str, Any]:
        """Converts the figures for JSON."""
        return asdict(self)


def entries_of(spark: SparkSession, path: str, queues: Sequence[str]) -> DataFrame:
    """The entries that are in these queues now, with their deaths; they stay there.

    Arguments:
        path: of the broker.
        queues: their names.
    """
    reader = spark.read.format("shmq").option("path", path).option("queue", json.dumps(list(queues)))
    return reader.option("columns", ",".join(COLUMNS)).load()


def archived_entries(spark: SparkSession, archive: str, queues: Sequence[str] = ()) -> DataFrame:
    """The rows of an archive, as entries that have left their queues when they were archived.

    Arguments:
        archive: its directory.
        queues: only what was in these; none: all.
    Raises NotFound if there is no archive.
    """
    from pyspark.sql import functions as F

    found = read_archive(spark, archive).withColumn("left_at", F.col("archived_at"))
    chosen = found.where(F.col("queue").isin(list(queues))) if queues else found
    return chosen.select(*COLUMNS, "left_at")


def collected(entries: DataFrame, every: str | None = None, least: int = 2) -> Statistics:
    """Runs the measures over a frame of entries.

    Arguments:
        entries: as entries_of() or archived_entries() give them, or both together (unionByName).
        every: "minute", "hour" or "day"; None: the finest of which there are not too many.
        least: as in measures.poison().

    Example:
        >>> collected(entries_of(spark, "shop.shmq", ["orders", "orders.dead"])).queues
    """
    now = datetime.datetime.now(datetime.UTC)
    narrow = measures.narrowed(entries).persist()
    try:
        queues = _rows(measures.summary(narrow))
        step = every or _step(queues)
        sketches = measures.waits(narrow, now, f"1 {step}").persist()
        waits = {row.pop("queue"): row for row in _rows(measures.quantiles(sketches, "queue"))}
        for row in queues:
            found = waits.get(row["queue"], {})
            row.update({name: found.get(name) for name in measures.QUANTILES})
        return Statistics(
            at=now.timestamp(),
            every=step,
            queues=queues,
            minutes=_rows(measures.by_minute(narrow, f"1 {step}")),
            waits_by_minute=_rows(measures.quantiles(sketches, "queue", "minute")),
            redelivered=_rows(measures.redelivered(narrow)),
            poison=_rows(measures.poison(narrow, least).limit(_MOST_POISON)),
        )
    finally:
        narrow.unpersist()


def _step(queues: Sequence[Row]) -> str:
    begins = [row["first_at"] for row in queues if row["first_at"] is not None]
    ends = [row["last_at"] for row in queues if row["last_at"] is not None]
    span = max(ends) - min(begins) if begins and ends else 0.0
    return next((name for name, seconds in EVERY.items() if span / seconds <= _STEPS), "day")


def _rows(frame: DataFrame) -> list[Row]:
    """Returns all rows, with POSIX seconds for timestamps: PySpark's depend on the local time zone."""
    from pyspark.sql import functions as F

    plain = [
        (F.unix_micros(field.name) / 1e6).alias(field.name) if field.dataType.typeName() == "timestamp" else field.name
        for field in frame.schema.fields
    ]
    return [row.asDict() for row in frame.select(*plain).collect()]
