"""map_in_pool with a real Spark: what a user sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import shmq
from shmq.spark import map_in_pool
from tests.support.warm_pools import wait_for_the_end_of_pools

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = 300.0  # of one query, on a busy machine
ROWS = 20_000


@pytest.fixture
def place(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Where pools of this test live, and how long; they have gone when it has ended."""
    yield {"directory": tmp_path, "idle": 2.0, "memory": "32MiB"}
    wait_for_the_end_of_pools(tmp_path)


@pytest.fixture
def small_batches(spark: SparkSession) -> Iterator[None]:
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, "500")
    yield
    spark.conf.set(name, str(before))


def calls() -> Any:
    pytest.importorskip("pyarrow")
    from tests.spark import warm_calls

    return warm_calls


def ids(frame: Any) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


@pytest.mark.usefixtures("small_batches")
def test_a_model_is_loaded_once_for_all_tasks_and_jobs(
    spark: SparkSession, place: dict[str, Any], tmp_path: Path
) -> None:
    frame = spark.range(0, ROWS, 1, 6)
    doubled = map_in_pool(
        frame, calls().doubled, "id long", initializer=calls().note, initargs=(tmp_path,), **{**place, "idle": 20.0}
    )
    assert ids(doubled) == list(range(0, 2 * ROWS, 2))
    assert doubled.count() == ROWS
    assert len(list(tmp_path.glob("loaded-*"))) == 1


@pytest.mark.usefixtures("small_batches")
def test_a_killed_process_of_the_pool_is_no_failed_task(
    spark: SparkSession, place: dict[str, Any], tmp_path: Path
) -> None:
    dying = calls().DieOnce(tmp_path, ROWS // 2)
    assert ids(map_in_pool(spark.range(0, ROWS, 1, 2), dying, "id long", **place)) == list(range(0, 2 * ROWS, 2))
    assert (tmp_path / "died").exists()


@pytest.mark.usefixtures("small_batches")
def test_a_task_that_fails_behind_the_pool_is_tried_again_and_doubles_nothing(
    spark: SparkSession, place: dict[str, Any], tmp_path: Path
) -> None:
    mark = tmp_path / "failed"

    def fail_once(row: Any) -> int:
        if row["id"] == 3 * ROWS // 2 and not mark.exists():
            mark.touch()
            raise RuntimeError("once")
        return int(row["id"])

    doubled = map_in_pool(spark.range(0, ROWS, 1, 2), calls().doubled, "id long", **place)
    assert sorted(doubled.rdd.map(fail_once).collect()) == list(range(0, 2 * ROWS, 2))
    assert mark.exists()


def test_the_error_of_a_handler_is_the_error_of_the_query(spark: SparkSession, place: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="LookupError: no such thing as 0") as caught:
        map_in_pool(spark.range(0, 3, 1, 1), calls().refuse, "id long", **place).collect()
    assert "batch 0 of partition 0" in str(caught.value)


def test_a_schema_that_does_not_fit_names_the_column(spark: SparkSession, place: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="column 'id': the handler returned int64, the schema has string"):
        map_in_pool(spark.range(3), calls().doubled, "id string", **place).collect()


def test_times_and_nested_columns_pass(spark: SparkSession, place: dict[str, Any]) -> None:
    frame = spark.sql("SELECT timestamp'2026-01-02 03:04:05' AS at, array(1, 2) AS l, map('a', struct(1 AS n)) AS m")
    assert map_in_pool(frame, lambda batch: batch, frame.schema, **place).collect() == frame.collect()


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [({"processes": 0}, ValueError), ({"in_flight": 0}, ValueError), ({"idle": 0.0}, ValueError)],
)
def test_unfit_arguments_are_refused(spark: SparkSession, wrong: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=next(iter(wrong))):
        map_in_pool(spark.range(3), len, "id long", **wrong)
    with pytest.raises(TypeError, match="a function is expected"):
        map_in_pool(spark.range(3), 7, "id long")  # type: ignore[arg-type]


def test_a_stream_passes_a_pool(spark: SparkSession, place: dict[str, Any], broker_dir: Path, tmp_path: Path) -> None:
    with shmq.open(broker_dir, memory="64MiB") as broker:
        broker.queue("orders").put_many(str(n) for n in range(100))
        reader = spark.readStream.format("shmq").option("path", str(broker_dir)).option("queue", "orders")
        numbers = reader.option("subscription", "etl").load().selectExpr("CAST(string(body) AS bigint) AS id")
        doubled = map_in_pool(numbers, calls().doubled, "id long", **place).selectExpr("string(id) AS body")
        writer = doubled.writeStream.format("shmq").option("path", str(broker_dir)).option("queue", "results")
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        assert query.awaitTermination(int(SECONDS))
        assert sorted(map(int, broker.queue("results").get_many(1000))) == list(range(0, 200, 2))
