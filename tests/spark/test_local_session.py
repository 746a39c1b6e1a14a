"""local_session(): what it asks of Spark, what it says when something is missing, and that it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import shmq
from shmq.spark import local_session
from shmq.spark.jvm import Jvm
from shmq.spark.session import settings_of
from tests.support.warm_pools import wait_for_the_end_of_pools

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_cores_and_attempts_make_the_master() -> None:
    settings = settings_of("mine", 3, 4, {})
    assert settings["spark.master"] == "local[3,4]"
    assert settings["spark.sql.shuffle.partitions"] == "3"
    assert settings["spark.app.name"] == "mine"


def test_nothing_is_shown_asked_of_the_network_or_left_in_the_directory() -> None:
    settings = settings_of("shmq", 2, 2, {})
    assert settings["spark.ui.enabled"] == settings["spark.ui.showConsoleProgress"] == "false"
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.sql.catalogImplementation"] == "in-memory"


def test_settings_of_the_caller_come_in_place_of_the_chosen_ones() -> None:
    settings = settings_of("shmq", 2, 2, {"spark.driver.memory": "4g", "spark.ui.enabled": True, "spark.x": 0.5})
    assert settings["spark.driver.memory"] == "4g"
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.x"] == "0.5"


@pytest.mark.parametrize(("cores", "attempts", "text"), [(0, 1, "cores=0"), (1, -1, "attempts=-1")])
def test_numbers_below_one_are_refused(cores: int, attempts: int, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}: it must be at least 1$"):
        local_session(cores=cores, attempts=attempts)


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'shmq\[spark\]'") as caught:
        local_session()
    assert caught.value.name == "pyspark"


def test_it_counts_rows(spark: SparkSession) -> None:
    assert spark.range(10).count() == 10


def test_python_of_the_tasks_is_that_of_the_caller_whose_variables_are_as_before(spark: SparkSession) -> None:
    found = spark.sparkContext.parallelize([1, 2], 2).map(lambda _: sys.executable).collect()
    assert found == [sys.executable] * 2
    assert not {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"} & os.environ.keys()


def test_the_running_one_is_given_to_who_wants_the_same_and_refused_to_others(spark: SparkSession) -> None:
    assert local_session() is spark
    with pytest.raises(
        shmq.ShmqError, match=r"spark\.master is local\[2,2\], local\[1,2\] wanted.*or stop\(\) it first"
    ):
        local_session(cores=1)


PROGRAM = """
import doctest, sys
import shmq, shmq.spark.jvm
from shmq.spark import local_session, map_in_pool

tests = [local_session, map_in_pool, shmq.spark.jvm.find_jvm]
for number, thing in enumerate(tests):
    test = doctest.DocTestParser().get_doctest(thing.__doc__, {}, thing.__name__, None, None)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
print("done")
"""


def test_the_examples_run_and_spark_prints_nothing_of_its_own(with_spark: Jvm, tmp_path: Path) -> None:
    """From a folder of its own: nothing is left there. A process of its own: there is one Spark in each."""
    folder = tmp_path / "folder"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(tmp_path)},  # not deeper: sockets of Spark have their names there
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("WARNING: ")] == []  # those are Java's
    assert list(folder.iterdir()) == []
    wait_for_the_end_of_pools(tmp_path)
