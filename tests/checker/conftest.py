"""A broker in its own directory; the first process in it has process row 0."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq

MEMORY = "16MiB"


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory=MEMORY) as opened:
        yield opened


@pytest.fixture
def queue(broker: shmq.Broker) -> shmq.Queue[Any]:
    return broker.queue("jobs")
