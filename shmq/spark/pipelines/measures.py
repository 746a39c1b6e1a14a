"""Measures of entries: functions from a frame to a frame, without a side effect.

A frame of entries has the columns of the format "shmq" (or some of them), and may have two more. The format gives
`death` to a reader that names it. `left_at` is the time at which an entry left its queue (of an archive: archived_at).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import datetime
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

__all__ = ["QUANTILES", "by_minute", "narrowed", "poison", "quantiles", "redelivered", "summary", "waits"]

# Names of columns, and which part of the entries waited at most so long.
QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "longest": 1.0}
_K: Final = 1000  # of a sketch: how exact it is
_PREVIEW: Final = 80  # characters of a body
_VALUE: Final = 200  # characters of a clue


def narrowed(entries: DataFrame, columns: Sequence[str] | None = None) -> DataFrame:
    """Entries with digest, size and beginning of the body in its place: all that the other functions ask for.

    Arguments:
        entries: with queue, enqueued_at and body at least. Of others that are missing group, headers, death and
            left_at are NULL, delivery_count is 0.
        columns: those that it has; None: it is asked, which Declarative Pipelines do not allow.

    Example:
        >>> entries = spark.read.format("shmq").option("path", "shop.shmq").option("queue", "orders").load()
        >>> by_minute(narrowed(entries)).show()
    """
    from pyspark.sql import functions as F

    there = set(entries.columns if columns is None else columns)

    def column(name: str, kind: str, default: object = None) -> Column:
        found = F.col(name) if name in there else F.lit(default)
        return found.cast(kind).alias(name)

    is_text = F.col("content_type").startswith("text/") | F.col("content_type").isin("application/json")
    preview = F.when(is_text, F.substring(F.decode("body", "UTF-8"), 1, _PREVIEW)) if "content_type" in there else None
    death = F.col("death") if "death" in there else F.lit(None).cast(_death_type())
    return entries.select(
        "queue",
        "enqueued_at",
        column("left_at", "timestamp"),
        column("delivery_count", "int", 0),
        column("group", "string"),
        column("headers", "map<string,string>"),
        F.octet_length("body").alias("bytes"),
        F.sha2("body", 256).alias("digest"),
        (F.lit(None).cast("string") if preview is None else preview).alias("preview"),
        death.alias("death"),
    )


def _death_type() -> str:
    from shmq.engine.arrow.row import BY_NAME

    return BY_NAME[0].type


def summary(entries: DataFrame) -> DataFrame:
    """A row for each queue: entries that wait, left, are dead letters or were delivered before; bytes; times.

    Arguments:
        entries: as narrowed() gives them.

    Columns: queue, waiting, left, dead, redelivered, bytes, first_at, last_at.
    """
    from pyspark.sql import functions as F

    return (
        entries.groupBy("queue")
        .agg(
            F.count_if(F.col("left_at").isNull() & F.col("death").isNull()).alias("waiting"),
            F.count("left_at").alias("left"),
            F.count("death").alias("dead"),
            F.count_if(F.col("delivery_count") > 0).alias("redelivered"),
            F.sum("bytes").alias("bytes"),
            F.min("enqueued_at").alias("first_at"),
            F.greatest(F.max("enqueued_at"), F.max("left_at")).alias("last_at"),
        )
        .orderBy("queue")
    )


def by_minute(entries: DataFrame, every: str = "1 minute") -> DataFrame:
    """A row for each queue and minute in which something came or left, in their order.

    Arguments:
        entries: as narrowed() gives them.
        every: a longer or shorter time in place of the minute, such as "1 hour".

    Columns: queue, minute (its begin), put, left, bytes and redelivered of what was put, and depth: how many of these
    entries were in the queue at the end of the minute.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    zero = F.lit(0)
    came = entries.select(
        "queue",
        F.window("enqueued_at", every).start.alias("minute"),
        F.lit(1).alias("put"),
        zero.alias("left"),
        "bytes",
        (F.col("delivery_count") > 0).cast("int").alias("redelivered"),
    )
    went = entries.where("left_at IS NOT NULL").select(
        "queue",
        F.window("left_at", every).start.alias("minute"),
        zero.alias("put"),
        F.lit(1).alias("left"),
        zero.alias("bytes"),
        zero.alias("redelivered"),
    )
    sums = [F.sum(name).alias(name) for name in ("put", "left", "bytes", "redelivered")]
    so_far = Window.partitionBy("queue").orderBy("minute")
    counted = came.unionAll(went).groupBy("queue", "minute").agg(*sums)
    return counted.withColumn("depth", F.sum(F.col("put") - F.col("left")).over(so_far)).orderBy("queue", "minute")


def waits(entries: DataFrame, now: datetime.datetime | None = None, every: str = "1 minute") -> DataFrame:
    """How long entries waited in their queues, as a sketch for each queue and minute of the put.

    A sketch has some kilobytes, whatever the number of entries, and may be kept: quantiles() merges them.

    Arguments:
        entries: as narrowed() gives them. Dead letters are left out: nobody waits for them.
        now: until when those have waited that are still there; None: those are left out.
        every: as in by_minute().

    Columns: queue, minute, sketch (KLL, of microseconds).
    """
    from pyspark.sql import functions as F

    until = F.col("left_at") if now is None else F.coalesce("left_at", F.lit(now))
    waited = F.unix_micros(until) - F.unix_micros("enqueued_at")
    return (
        entries.where(F.col("death").isNull() & until.isNotNull())
        .groupBy("queue", F.window("enqueued_at", every).start.alias("minute"))
        .agg(F.kll_sketch_agg_bigint(F.greatest(waited, F.lit(0)), _K).alias("sketch"))
    )


def quantiles(sketches: DataFrame, *by: str) -> DataFrame:
    """Sketches, merged and read: of how many entries they are, and how many seconds each part of them waited at most.

    Arguments:
        sketches: as waits() gives them, of today or kept from before.
        by: columns that stay apart, such as "queue", or "queue" and "minute"; none: all is one.

    Columns: those of `by`, entries, p50, p90, p99, longest. In seconds; all but the last one are estimates: a p99
    lies between 98.7 % and 99.3 % of the entries. Up to a thousand entries they are exact.
    """
    from pyspark.sql import functions as F

    ranks = F.array(*[F.lit(rank) for rank in QUANTILES.values()])
    merged = sketches.groupBy(*by).agg(F.kll_merge_agg_bigint("sketch").alias("sketch"))
    found = F.kll_sketch_get_quantile_bigint("sketch", ranks)
    seconds = [(found[place] / 1e6).alias(name) for place, name in enumerate(QUANTILES)]
    rows = merged.select(*by, F.kll_sketch_get_n_bigint("sketch").alias("entries"), *seconds)
    return rows.orderBy(*by) if by else rows


def redelivered(entries: DataFrame) -> DataFrame:
    """Entries that were delivered before and came back: how many, for each queue and number of deliveries.

    Arguments:
        entries: as narrowed() gives them.

    Columns: queue, delivery_count, entries, first_at (the earliest put).
    """
    from pyspark.sql import functions as F

    return (
        entries.where("delivery_count > 0")
        .groupBy("queue", "delivery_count")
        .agg(F.count("*").alias("entries"), F.min("enqueued_at").alias("first_at"))
        .orderBy("queue", "delivery_count")
    )


def poison(entries: DataFrame, least: int = 2, lift: float = 2.0) -> DataFrame:
    """Traits that dead letters have in common, and others have not: candidates for poison, the deadliest first.

    Arguments:
        entries: as narrowed() gives them: dead letters, and others of the same queues to compare them with.
        least: so many must have died of it.
        lift: and it must be so many times as frequent among the dead as among the others.

    Columns: queue (where they died), by ("group", "content" or "header"), value (of a header "name=value", of a content
    its SHA-256), dead, others, lift (NULL: no other has it), reasons, error (of the last one, its last line), preview
    (of a text), first_at, last_at.
    """
    from pyspark.sql import functions as F

    died = F.count("death").alias("dead")
    lived = F.count_if(F.col("death").isNull()).alias("others")
    there = entries.withColumn("queue", F.coalesce("death.queue", "queue"))
    totals = there.groupBy("queue").agg(died, lived).selectExpr("queue", "dead AS all_dead", "others AS all_others")
    found = (
        _clues(there)
        .groupBy("queue", "clue.by", "clue.value")
        .agg(
            died,
            lived,
            F.array_sort(F.collect_set("death.reason")).alias("reasons"),
            F.max_by("line", "death.at").alias("error"),
            F.max_by("preview", "death.at").alias("preview"),
            F.min("death.at").alias("first_at"),
            F.max("death.at").alias("last_at"),
        )
        .where(F.col("dead") >= least)
        .join(totals, "queue")
        .withColumn("lift", F.expr("(dead / all_dead) / nullif(others / all_others, 0)"))
        .where(F.col("lift").isNull() | (F.col("lift") >= lift))
    )
    shown = ("dead", "others", "lift", "reasons", "error")
    preview = F.when(F.col("by") == "content", F.col("preview")).alias("preview")
    value = F.substring("value", 1, _VALUE).alias("value")
    rows = found.select("queue", "by", value, *shown, preview, "first_at", "last_at")
    return rows.orderBy(F.desc("dead"), "others", "queue", "by", "value")


def _clues(entries: DataFrame) -> DataFrame:
    """Returns a row for each entry and each trait that it has in common with others."""
    from pyspark.sql import functions as F

    def clue(by: str, value: Column) -> Column:
        return F.struct(F.lit(by).alias("by"), value.alias("value"))

    headers = F.transform(
        F.map_entries(F.coalesce("headers", F.create_map().cast("map<string,string>"))),
        lambda pair: clue("header", F.concat_ws("=", pair["key"], pair["value"])),
    )
    clues = F.concat(F.array(clue("group", F.col("group")), clue("content", F.col("digest"))), headers)
    line = F.element_at(F.split(F.rtrim("death.error"), "\n"), -1).alias("line")
    return entries.select("queue", "death", "preview", line, F.explode(clues).alias("clue")).where(
        "clue.value IS NOT NULL"
    )
