"""A project for Spark's Declarative Pipelines: what comes out of queues, as a table and views over it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from shmq.errors import ShmqError

__all__ = ["write_project"]

_LOG: Final = Path(__file__).parent.with_name("log4j2.properties")

_SPEC: Final = """\
name: {name}
storage: {storage}
configuration:
  spark.sql.session.timeZone: UTC
libraries:
  - glob:
      include: transformations/**
"""

# Settings that Spark starts with. The catalog is kept here, so that the next run knows the tables of this one.
_DEFAULTS: Final = """\
spark.driver.bindAddress 127.0.0.1
spark.driver.host 127.0.0.1
spark.hadoop.javax.jdo.option.ConnectionURL jdbc:derby:;databaseName={catalog};create=true
spark.sql.catalogImplementation hive
# Else the views of a run see the files that were there when it began, and not those that it has added.
spark.sql.metadataCacheTTLSeconds 1
spark.sql.warehouse.dir {tables}
spark.ui.enabled false
spark.ui.showConsoleProgress false
"""

_ENTRIES: Final = '''\
"""The streaming table `entries`: what comes to the queues is taken out of them, and is here once."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from shmq.spark.pipelines.archive import COLUMNS, archived

BROKER = {broker}
QUEUES = {queues}  # JSON


@dp.table
def entries() -> DataFrame:
    spark = SparkSession.active()
    return archived(
        spark.readStream.format("shmq")
        .option("path", BROKER)
        .option("queue", QUEUES)
        .option("subscription", {subscription})
        .option("columns", ",".join(COLUMNS))
        .load()
    )
'''

_MEASURES: Final = '''\
"""Views over `entries`. Each function takes a frame and gives a frame: add your own beside them."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from shmq.spark.pipelines import measures
from shmq.spark.pipelines.archive import COLUMNS


def narrowed() -> DataFrame:
    """The entries without their bodies; they left their queues when they were archived."""
    table = SparkSession.active().read.table("entries")
    return measures.narrowed(table.withColumnRenamed("archived_at", "left_at"), (*COLUMNS, "left_at"))


@dp.materialized_view
def by_minute() -> DataFrame:
    return measures.by_minute(narrowed())


@dp.materialized_view
def waits() -> DataFrame:
    """KLL sketches of a minute: later views merge them."""
    return measures.waits(narrowed())


@dp.materialized_view
def latency() -> DataFrame:
    return measures.quantiles(SparkSession.active().read.table("waits"), "queue")


@dp.materialized_view
def redelivered() -> DataFrame:
    return measures.redelivered(narrowed())


@dp.materialized_view
def poison() -> DataFrame:
    return measures.poison(narrowed())
'''


def write_project(folder: str | Path, broker: str, queues: Sequence[str], subscription: str = "pipeline") -> list[Path]:
    """Writes a project for `spark-pipelines run`, and returns its files.

    Arguments:
        folder: where to; it must not be there, or be empty.
        broker: its directory.
        queues: whose entries are taken.
        subscription: under which they are kept until they are in the table.
    Raises ShmqError if something is there: nothing is written over.

    Example:
        >>> [str(file) for file in write_project("shop", "/var/lib/shop", ["orders.dead"])]
        ['shop/spark-pipeline.yml', 'shop/conf/spark-defaults.conf', ...]
    """
    place = Path(folder)
    top = place.absolute()
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise ShmqError(f"{str(place)!r} is there, and not empty", remedy="name another directory; nothing was written")
    files = {
        "spark-pipeline.yml": _filled(_SPEC, {"name": top.name, "storage": (top / "storage").as_uri()}),
        "conf/spark-defaults.conf": _DEFAULTS.format(catalog=top / "catalog", tables=(top / "tables").as_uri()),
        "conf/log4j2.properties": _LOG.read_text(),
        "transformations/entries.py": _filled(
            _ENTRIES,
            {
                "broker": str(Path(broker).absolute()),
                "queues": json.dumps(list(queues)),
                "subscription": subscription,
            },
        ),
        "transformations/measures.py": _MEASURES,
    }
    (place / "storage").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (place / name).parent.mkdir(exist_ok=True)
        with (place / name).open("x", encoding="utf-8") as file:  # nobody else's, even if it came a moment ago
            file.write(text)
    return [place / name for name in files]


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Fills a template with each value as JSON, which is valid Python and YAML, too."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", json.dumps(value))
    return text
