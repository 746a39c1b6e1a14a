"""One Spark for all tests of a worker that ask for it: `tools/test --spark` runs two workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from shmq.spark import local_session
from shmq.spark.jvm import Jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(with_spark: Jvm) -> Iterator[SparkSession]:
    """A session with two tasks at a time and two attempts for each."""
    with local_session() as session:
        yield session
