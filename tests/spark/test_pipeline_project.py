"""The project of `shmq pipeline init`: sound files, whatever the names; its functions run over a real table."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

import shmq
from shmq.spark.pipelines.archive import archived
from shmq.spark.pipelines.project import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    "queue string, position bigint, message_id bigint, enqueued_at timestamp, priority int, group string, "
    "delivery_count int, content_type string, headers map<string,string>, body binary, "
    "death struct<queue:string,reason:string,error:string,at:timestamp,pids:array<bigint>,signal:int>"
)


def constants(file: Path) -> dict[str, Any]:
    """The constants that a module assigns at its top."""
    tree = ast.parse(file.read_text())
    return {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }


def test_any_name_of_a_broker_or_queue_is_a_sound_text(tmp_path: Path) -> None:
    evil = 'a"; import os #'
    files = write_project(tmp_path / "my etl", f"/srv/{evil}", [evil, "b"], evil)
    assert all(file.is_file() for file in files)
    found = constants(tmp_path / "my etl" / "transformations" / "entries.py")
    assert found["BROKER"] == f"/srv/{evil}"
    assert json.loads(found["QUEUES"]) == [evil, "b"]
    ast.parse((tmp_path / "my etl" / "transformations" / "measures.py").read_text())
    spec = (tmp_path / "my etl" / "spark-pipeline.yml").read_text()
    assert 'name: "my etl"\n' in spec
    assert f'storage: "{(tmp_path / "my etl" / "storage").as_uri()}"\n' in spec


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(shmq.ShmqError, match="is there, and not empty"):
        write_project(tmp_path, "/srv/shop", ["orders"])
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


def decorator(*given: Callable[..., Any]) -> Any:
    """In place of those of pyspark.pipelines: the function stays as it is."""
    return given[0] if given else decorator


def test_the_views_of_a_project_run(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datetime

    write_project(tmp_path / "etl", "/srv/shop", ["orders"])
    declared = ModuleType("pyspark.pipelines")
    declared.__dict__.update(table=decorator, materialized_view=decorator)
    monkeypatch.setitem(sys.modules, "pyspark.pipelines", declared)
    monkeypatch.setattr("pyspark.pipelines", declared, raising=False)
    views: dict[str, Any] = {}
    exec((tmp_path / "etl" / "transformations" / "measures.py").read_text(), views)

    put = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=60)
    rows: list[tuple[Any, ...]] = [
        ("orders", n, n, put, 4, None, n % 2, "text/plain", {}, b"x", None) for n in range(4)
    ]
    archived(spark.createDataFrame(rows, COLUMNS)).createOrReplaceTempView("entries")
    views["waits"]().createOrReplaceTempView("waits")
    (latency,) = views["latency"]().collect()
    assert (latency["queue"], latency["entries"]) == ("orders", 4)
    assert 60 <= latency["p50"] < 660
    assert sum(row["put"] for row in views["by_minute"]().collect()) == 4
    assert [(row["delivery_count"], row["entries"]) for row in views["redelivered"]().collect()] == [(1, 2)]
    assert views["poison"]().collect() == []
