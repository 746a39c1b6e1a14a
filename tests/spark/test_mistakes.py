"""Mistakes with a real Spark are told clearly, and lose nothing: the next run has the rows that are missing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import shmq
from shmq.spark.subscription import claims_name
from tests.spark.drivers import SECONDS, program, running
from tests.spark.gateways import GatewayProcess
from tests.spark.warm_driver import WarmDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery


ROWS = 900
BATCH = 300


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="64MiB") as opened:
        opened.queue("orders").put_many(b"%d" % n for n in range(ROWS))
        yield opened


def start(spark: SparkSession, place: dict[str, str], checkpoint: Path, *, ends: bool = True) -> StreamingQuery:
    """Queue `orders` into `results`, three batches; ends=False: it goes on, and leaves its last batch claimed."""
    options = place | {"queue": "orders", "subscription": "etl", "maxRowsPerBatch": str(BATCH)}
    rows = spark.readStream.format("shmq").options(**options).load().select("body")
    sink = {key: text for key, text in place.items() if key != "failOnDataLoss"}
    writer = rows.writeStream.format("shmq").options(**sink).option("queue", "results")
    writer = writer.option("checkpointLocation", str(checkpoint))
    return (writer.trigger(availableNow=True) if ends else writer).start()


def place_of(broker: shmq.Broker) -> dict[str, str]:
    return {"path": broker.path or ""}


def run(spark: SparkSession, broker: shmq.Broker, checkpoint: Path, **options: str) -> None:
    assert start(spark, place_of(broker) | options, checkpoint).awaitTermination(SECONDS), "the query does not end"


def rows_of(queue: shmq.Queue[Any], count: int | None = None) -> list[int]:
    return [int(queue.get(timeout=SECONDS)) for _ in range(queue.qsize() if count is None else count)]


def stopped_amid(spark: SparkSession, broker: shmq.Broker, checkpoint: Path) -> list[int]:
    """A run that was stopped when all was through, without an acknowledgement of its last batch; its rows."""
    query = start(spark, place_of(broker), checkpoint, ends=False)
    found = rows_of(broker.queue("results"), ROWS)
    while not (checkpoint / "commits" / str(ROWS // BATCH - 1)).exists():
        assert query.isActive, query.exception()
    query.stop()
    assert broker.queue(claims_name("orders", "etl")).qsize() == BATCH
    return found


def test_a_second_query_on_a_subscription_names_the_process_of_the_first(
    spark: SparkSession, broker: shmq.Broker, tmp_path: Path
) -> None:
    first = start(spark, place_of(broker), tmp_path / "first", ends=False)
    try:
        found = rows_of(broker.queue("results"), ROWS)
        with pytest.raises(Exception, match=r"'etl' of queue 'orders' is read by another query: .* of pid \d+"):
            run(spark, broker, tmp_path / "second")
        broker.queue("orders").put_many(b"%d" % n for n in range(ROWS, ROWS + 5))
        found += rows_of(broker.queue("results"), 5)
    finally:
        first.stop()
    assert found == list(range(ROWS + 5))


def test_a_deleted_checkpoint_loses_nothing_and_doubles_the_last_batch_at_most(
    spark: SparkSession, broker: shmq.Broker, tmp_path: Path
) -> None:
    found = stopped_amid(spark, broker, tmp_path / "checkpoint")
    shutil.rmtree(tmp_path / "checkpoint")
    broker.queue("orders").put(b"%d" % ROWS)
    run(spark, broker, tmp_path / "checkpoint")
    assert found == list(range(ROWS))
    assert rows_of(broker.queue("results")) == list(range(ROWS - BATCH, ROWS + 1))


@pytest.mark.parametrize(
    ("what", "text"),
    [("purged", rf"0 of {BATCH}"), ("deleted", "was made anew"), ("remade", "was made anew")],
)
def test_claims_that_are_gone_are_told_and_left_out_only_if_the_option_says_so(
    spark: SparkSession, broker: shmq.Broker, tmp_path: Path, what: str, text: str
) -> None:
    """The last batch is not in the commit log, so it is read again."""
    checkpoint, claims = tmp_path / "checkpoint", broker.queue(claims_name("orders", "etl"), max_attempts=0)
    stopped_amid(spark, broker, checkpoint)
    (checkpoint / "commits" / str(ROWS // BATCH - 1)).unlink()
    (checkpoint / "commits" / f".{ROWS // BATCH - 1}.crc").unlink()
    broker.queue("orders").put(b"%d" % ROWS)
    if what == "purged":
        claims.purge()
    else:
        claims.delete()
        if what == "remade":
            broker.queue(claims.name, max_attempts=0, max_deaths=0)
    with pytest.raises(Exception, match=f"DataLost: .*{text}.*failOnDataLoss=false"):
        run(spark, broker, checkpoint)
    assert broker.queue("orders").qsize() == 1
    run(spark, broker, checkpoint, failOnDataLoss="false")
    assert rows_of(broker.queue("results")) == [ROWS]


def test_a_queue_that_was_deleted_under_its_query_is_told(
    spark: SparkSession, broker: shmq.Broker, tmp_path: Path
) -> None:
    stopped_amid(spark, broker, tmp_path / "checkpoint")
    broker.queue("orders").delete()
    with pytest.raises(Exception, match="there is no queue 'orders' in the broker"):
        run(spark, broker, tmp_path / "checkpoint")
    broker.queue("orders").put(b"%d" % ROWS)
    run(spark, broker, tmp_path / "checkpoint")
    assert rows_of(broker.queue("results")) == [ROWS]


def test_a_wrong_token_is_told_and_takes_nothing(spark: SparkSession, broker: shmq.Broker, tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    for file in (right, wrong):
        file.write_text(f"token-{file.name}-0123456789abcdef\n")
        file.chmod(0o600)
    gateway = GatewayProcess(Path(broker.path or ""), "--token-file", str(right))
    try:
        place = {"uri": gateway.uri, "tokenFile": str(wrong)}
        with pytest.raises(Exception, match="token"):
            start(spark, place, tmp_path / "checkpoint").awaitTermination(SECONDS)
        assert broker.queue("orders").qsize() == ROWS
        place["tokenFile"] = str(right)
        assert start(spark, place, tmp_path / "checkpoint").awaitTermination(SECONDS)
    finally:
        gateway.end()
    assert rows_of(broker.queue("results")) == list(range(ROWS))


FAILING = """
    import os, sys
    from pyspark.sql.functions import udf
    from pyspark.sql.types import BinaryType
    from shmq.spark import local_session
    path, checkpoint, mark = sys.argv[1:]

    @udf(BinaryType())
    def once(body):
        if not os.path.exists(mark):
            open(mark, "x").close()
            os.kill(os.getpid(), 9)
        return body

    with local_session(**{"spark.master": "local[2]"}) as spark:
        rows = spark.readStream.format("shmq").option("path", path).option("queue", "orders")
        rows = rows.option("subscription", "etl").option("maxRowsPerBatch", "300").load().select("body")
        rows = rows.select(once("body").alias("body"))
        writer = rows.writeStream.format("shmq").option("path", path).option("queue", "results")
        writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
"""


def test_without_retries_a_killed_worker_fails_the_query_and_the_next_run_has_each_row_once(
    warm_driver: WarmDriver, broker: shmq.Broker, tmp_path: Path
) -> None:
    """`local[2]` gives a task one attempt."""
    log, mark = tmp_path / "log.txt", tmp_path / "mark"
    arguments = [*program(tmp_path, FAILING), broker.path or "", str(tmp_path / "checkpoint"), str(mark)]
    with running(arguments, log) as driver:
        assert driver.wait(SECONDS) != 0
    assert mark.exists(), log.read_text()[-3000:]
    assert "failed 1 times" in log.read_text()
    assert broker.queue("results").qsize() == 0
    done = warm_driver.run(*arguments[1:])
    assert done.returncode == 0, done.stderr[-3000:]
    assert rows_of(broker.queue("results")) == list(range(ROWS))
