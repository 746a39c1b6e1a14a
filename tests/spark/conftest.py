"""One Spark, and one process for programs with their own, for all tests of a worker that ask for them: `tools/test
--spark` runs two workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import shmq
from shmq.spark import local_session
from shmq.spark.jvm import Jvm
from tests.spark.warm_driver import WarmDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(with_spark: Jvm) -> Iterator[SparkSession]:
    """A session with two tasks at a time and two attempts for each."""
    with local_session() as session:
        yield session


@pytest.fixture(scope="session")
def warm_driver(with_spark: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmDriver]:
    """For programs that start a Spark of their own, one after another."""
    with WarmDriver.running(tmp_path_factory.mktemp("warm")) as driver:
        yield driver


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="32MiB") as opened:
        yield opened
