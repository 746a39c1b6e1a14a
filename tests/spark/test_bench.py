"""`shmq bench spark`: it runs, and says what it has measured."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

KINDS = [
    "get_many, no Spark",
    "claim, no Spark",
    "toy source",
    "read, bodies",
    "read, all columns",
    "toy sink",
    "write",
    "toy to toy, 200 a batch",
    "queue to queue, 200 a batch",
]


@pytest.mark.usefixtures("with_spark")
def test_the_bench_of_spark_measures_reads_writes_claims_and_streams() -> None:
    command = [sys.executable, "-m", "shmq", "bench", "spark", "--rows", "1000", "--rounds", "1", "--batch", "200"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["name"] for row in rows] == KINDS
    assert all(row["row_us"] > 0 and row["ratio"] > 0 for row in rows)


@pytest.mark.usefixtures("with_spark")
def test_the_bench_of_streams_measures_batches_and_what_an_idle_one_takes() -> None:
    command = [sys.executable, "-m", "shmq", "bench", "stream", "--rows", "10", "--batches", "2", "--seconds", "2"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    none, *streams = json.loads(done.stdout)["rows"]
    assert (none["name"], none["batch_ms"]) == ("Spark, no query", None)
    assert [row["name"] for row in streams] == ["rate source", "toy source", "toy to toy", "queue", "queue to queue"]
    assert all(row["batch_ms"] > 0 for row in streams)
    assert all(row["idle_percent"] > 0 for row in streams[3:])
