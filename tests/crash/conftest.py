"""A broker that the test's process stays a member of, and that must be sound when the test is over."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import shmq


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="64MiB", disk="8GiB") as opened:
        yield opened
