"""kill -9 of one part of a query under a real Spark; the next run goes on from the checkpoint; each row comes once."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import shmq
from shmq.spark.notes import published_name
from shmq.spark.publication import undecided
from shmq.spark.subscription import claims_name
from tests.spark.drivers import SECONDS, STREAM, end, program, running
from tests.spark.gateways import GatewayProcess
from tests.spark.warm_driver import Done, WarmDriver

ROWS = 4000
SOME = 600  # more than a batch has


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="64MiB") as opened:
        opened.queue("orders").put_many(b"%d" % n for n in range(ROWS))
        yield opened


def rows_of(queue: shmq.Queue[Any], count: int) -> list[int]:
    return [int(queue.get(timeout=SECONDS)) for _ in range(count)]


def check_ended(done: Done) -> None:
    assert done.returncode == 0, done.stderr[-3000:]


def check_run(driver: WarmDriver, arguments: list[str]) -> None:
    """The next run of a query: another process with another Spark."""
    check_ended(driver.run(*arguments[1:]))


def planner_of(broker: shmq.Broker) -> psutil.Process:
    """The process that has the subscription, as its refusal of others names it."""
    claims = broker.queue(claims_name("orders", "etl"), create=False)
    with pytest.raises(shmq.ConsumerRefused, match=r"of pid \d+") as refused:
        claims.consumer(exclusive=True)
    found = re.search(r"of pid (\d+)", str(refused.value))
    assert found is not None
    return psutil.Process(int(found[1]))


def test_a_planner_that_is_killed_fails_the_query_and_the_next_run_goes_on(
    warm_driver: WarmDriver, broker: shmq.Broker, tmp_path: Path
) -> None:
    results, log = broker.queue("results"), tmp_path / "log.txt"
    arguments = [*program(tmp_path, STREAM), "path", broker.path or "", str(tmp_path / "checkpoint"), "local[2,2]"]
    with running(arguments, log) as driver:
        found = rows_of(results, SOME)
        planner = planner_of(broker)
        assert planner.pid != driver.pid
        planner.kill()
        assert driver.wait(SECONDS) != 0, "the query has not noticed"
    check_run(warm_driver, arguments)
    assert found + rows_of(results, results.qsize()) == list(range(ROWS))


def test_a_gateway_that_is_killed_fails_the_query_and_the_next_run_goes_on(
    warm_driver: WarmDriver, broker: shmq.Broker, tmp_path: Path
) -> None:
    results, log = broker.queue("results"), tmp_path / "log.txt"
    gateway = GatewayProcess(Path(broker.path or ""))
    arguments = [*program(tmp_path, STREAM), "uri", gateway.uri, str(tmp_path / "checkpoint"), "local[2,2]"]
    try:
        with running(arguments, log) as driver:
            found = rows_of(results, SOME)
            gateway.kill()
            assert driver.wait(SECONDS) != 0, "the query has not noticed"
        gateway = GatewayProcess(Path(broker.path or ""), port=gateway.port)
        check_run(warm_driver, arguments)
    finally:
        gateway.end()
    assert found + rows_of(results, results.qsize()) == list(range(ROWS))


def test_a_driver_that_is_killed_between_decision_and_moves_has_published_its_batch(
    warm_driver: WarmDriver, broker: shmq.Broker, tmp_path: Path
) -> None:
    """The queue of results has room for a part of a batch, so its commit waits amid the moves."""
    results, log = broker.queue("results", maxsize=100), tmp_path / "log.txt"
    arguments = [*program(tmp_path, STREAM), "path", broker.path or "", str(tmp_path / "checkpoint"), "local[2,2]"]
    with running(arguments, log) as driver:
        found = rows_of(results, SOME)  # of the second batch
        until_full(results, 100)
        end(driver)
    warm_driver.start(*arguments[1:])
    found += rows_of(results, ROWS - SOME)
    check_ended(warm_driver.wait())
    assert found == list(range(ROWS))
    assert results.qsize() == 0


BLOCKED = """
    import os, sys, time
    from pyspark.sql.functions import udf
    from pyspark.sql.types import BinaryType
    from shmq.spark import local_session
    path, checkpoint, mark = sys.argv[1:]

    @udf(BinaryType())
    def once(body):
        if body == b"700" and not os.path.exists(mark):
            open(mark, "x").close()
            time.sleep(3600)  # until it is killed
        return body

    with local_session() as spark:
        rows = spark.readStream.format("shmq").option("path", path).option("queue", "orders")
        rows = rows.option("subscription", "etl").option("maxRowsPerBatch", "500").load()
        writer = rows.select(once("body").alias("body")).writeStream.format("shmq").option("path", path)
        writer = writer.option("queue", "results").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
"""


def test_a_driver_that_is_killed_while_its_tasks_read_goes_on_with_the_same_batch(
    warm_driver: WarmDriver, broker: shmq.Broker, tmp_path: Path
) -> None:
    results, mark = broker.queue("results"), tmp_path / "mark"
    arguments = [*program(tmp_path, BLOCKED), broker.path or "", str(tmp_path / "checkpoint"), str(mark)]
    with running(arguments, tmp_path / "log.txt") as driver:
        until(mark.exists, driver)
        end(driver)
    check_run(warm_driver, arguments)
    assert rows_of(results, results.qsize()) == list(range(ROWS))


def test_a_driver_that_is_killed_before_the_commit_of_its_sink_has_published_nothing(
    warm_driver: WarmDriver, broker: shmq.Broker, tmp_path: Path
) -> None:
    """Somebody else publishes, so the commit waits for its turn when all rows of the batch are staged."""
    results, log = broker.queue("results"), tmp_path / "log.txt"
    arguments = [*program(tmp_path, STREAM), "path", broker.path or "", str(tmp_path / "checkpoint"), "local[2,2]"]
    notes = broker.queue(published_name("results"), max_attempts=0, max_deaths=0)
    with notes.consumer(exclusive=True), running(arguments, log) as driver:
        until(lambda: sum(stage.qsize() for stage in undecided(results)) == 500, driver)
        end(driver)
    assert results.qsize() == 0
    check_run(warm_driver, arguments)
    assert rows_of(results, results.qsize()) == list(range(ROWS))


def test_a_driver_that_is_killed_between_the_commits_of_sink_and_spark_publishes_nothing_twice(
    warm_driver: WarmDriver, broker: shmq.Broker, tmp_path: Path
) -> None:
    """The test deletes the driver's commit of the last batch that it published from its checkpoint."""
    results, log, commits = broker.queue("results"), tmp_path / "log.txt", tmp_path / "checkpoint" / "commits"
    arguments = [*program(tmp_path, STREAM), "path", broker.path or "", str(tmp_path / "checkpoint"), "local[2,2]"]
    with running(arguments, log) as driver:
        until((commits / "1").exists, driver)
        end(driver)
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdecimal())
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)
    check_run(warm_driver, arguments)
    assert rows_of(results, results.qsize()) == list(range(ROWS))


def until(holds: Callable[[], bool], driver: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        assert driver.poll() is None, "the driver has ended"
        time.sleep(0.01)


def until_full(queue: shmq.Queue[Any], maxsize: int) -> None:
    deadline = time.monotonic() + SECONDS
    while queue.qsize() < maxsize:
        assert time.monotonic() < deadline, f"{queue.qsize()} instead of {maxsize}"
        time.sleep(0.01)
