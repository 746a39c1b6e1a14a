"""The driver: a program that parses and counts by Spark what comes from one queue, and puts the counts into another.

It is started by the demo, and killed by it, too. A line on stdin asks it to finish the messages that are there and to
end. When stdin is closed, the demo is dead, and it ends at once with all of its processes.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shmq.demo.spark_parser import PARSED, Parser
from shmq.spark import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["COUNTS", "SOURCES", "Job", "batches_in", "begun_batch"]

SOURCES, COUNTS = "sources", "counts"
_ATTEMPTS = 4  # of a task, one of whose workers is killed
_BATCH_BYTES = 16 << 20
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Job:
    """The job that the demo gives the driver.

    Attributes:
        folder: of this run, for the broker, the checkpoint and Spark's own files.
        workers: tasks at a time.
        files: in a batch at most.
        task_bytes: that a task gets, about.
    """

    folder: Path
    workers: int
    files: int
    task_bytes: int

    @property
    def broker(self) -> str:
        """The directory of the broker."""
        return str(self.folder / "broker")

    @property
    def checkpoint(self) -> Path:
        """Where Spark notes how far the query is."""
        return self.folder / "checkpoint"

    @property
    def scratch(self) -> Path:
        """Where Spark has files that nobody needs when it has ended."""
        return self.folder / "scratch"

    def words(self) -> list[str]:
        """As arguments of a command."""
        return [str(self.folder), str(self.workers), str(self.files), str(self.task_bytes)]

    @classmethod
    def of_words(cls, words: list[str]) -> Job:
        """Back again."""
        folder, *numbers = words
        return cls(Path(folder), *map(int, numbers))


def batches_in(checkpoint: Path, log: str) -> set[int]:
    """Numbers of the batches in a log of a checkpoint: "offsets" has those that are planned, "commits" those done."""
    try:
        return {int(name) for name in os.listdir(checkpoint / log) if name.isdecimal()}
    except FileNotFoundError:
        return set()


def begun_batch(checkpoint: Path) -> int | None:
    """The batch that was planned and not done; there is one at most. None: there is none."""
    return max(batches_in(checkpoint, "offsets") - batches_in(checkpoint, "commits"), default=None)


def session(job: Job) -> SparkSession:
    """Spark, which leaves its files where the demo removes them."""
    return local_session(
        "shmq demo",
        cores=job.workers,
        attempts=_ATTEMPTS,
        **{
            "spark.local.dir": str(job.scratch),
            "spark.driver.extraJavaOptions": f"'-Djava.io.tmpdir={job.scratch}' -XX:-UsePerfData",
            "spark.sql.warehouse.dir": str(job.scratch / "warehouse"),
        },
    )


def counts(spark: SparkSession, job: Job) -> DataFrame:
    """The whole of the job in Spark's words: parse each file, then count by file what was found."""
    from pyspark.sql.functions import expr, udf

    parser = Parser(job.broker, begun_batch(job.checkpoint))
    parse: Any = udf(parser, PARSED, useArrow=False)
    files = (
        spark.readStream.format("shmq")
        .option("path", job.broker)
        .option("queue", SOURCES)
        .option("subscription", "demo")
        .option("maxRowsPerBatch", str(job.files))
        .option("maxBytesPerBatch", str(_BATCH_BYTES))
        .option("maxPartitionBytes", str(job.task_bytes))
        .option("columns", "headers,body")
        .load()
    )
    parsed = files.select(expr("headers['file'] AS file"), parse(expr("headers['file']"), "body").alias("of"))
    found = parsed.selectExpr("file", "of.lines", "of.parsed", "of.repeated", "explode_outer(of.found) AS kind")
    return found.groupBy("file").agg(
        expr("count_if(kind = 'function') AS functions"),
        expr("count_if(kind = 'class') AS classes"),
        expr("count_if(kind = 'import') AS imports"),
        expr("max(lines) AS lines"),
        expr("bool_and(parsed) AS parsed"),
        expr("bool_or(repeated) AS repeated"),
    )


def put_counts(rows: DataFrame, batch: int, job: Job) -> None:
    """One batch of results. A batch that is run again has the same version, so it is put once."""
    body = rows.selectExpr("to_json(struct(*)) AS body")
    writer = body.write.format("shmq").mode("append").option("path", job.broker).option("queue", COUNTS)
    writer.option("idempotencyKey", "demo").option("idempotencyVersion", batch).save()


def run(job: Job, finish: threading.Event) -> None:
    """Until it is asked to finish. Raises what Spark raises."""
    with session(job) as spark:
        query = (
            counts(spark, job)
            .writeStream.outputMode("update")
            .foreachBatch(lambda rows, batch: put_counts(rows, batch, job))
            .option("checkpointLocation", str(job.checkpoint))
            .start()
        )
        while not finish.is_set():
            query.awaitTermination(_LOOK_SECONDS)
        query.processAllAvailable()
        query.stop()


def _heed(finish: threading.Event) -> None:
    if sys.stdin.readline():
        finish.set()
        sys.stdin.readline()
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> None:
    """The program."""
    finish = threading.Event()
    threading.Thread(target=_heed, args=(finish,), daemon=True).start()
    run(Job.of_words(sys.argv[1:]), finish)


if __name__ == "__main__":
    main()
