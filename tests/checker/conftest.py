"""A broker in its own directory; the first process in it has process row 0."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from checker import Image
from tests.checker.flowing import flowing
from tests.checker.scene import everything

MEMORY = "16MiB"


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory=MEMORY) as opened:
        yield opened


@pytest.fixture
def queue(broker: shmq.Broker) -> shmq.Queue[Any]:
    return broker.queue("jobs")


@pytest.fixture(scope="session")
def image_of_everything(tmp_path_factory: pytest.TempPathFactory) -> Image:
    with everything(tmp_path_factory.mktemp("everything") / "broker") as image:
        copy = image
    return copy


@pytest.fixture(scope="session")
def image_that_flows(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return flowing(tmp_path_factory.mktemp("flowing") / "broker")
