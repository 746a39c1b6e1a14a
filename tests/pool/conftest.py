"""A broker without a directory for the tests of pools."""

from collections.abc import Iterator

import pytest

import shmq


@pytest.fixture
def broker() -> Iterator[shmq.Broker]:
    with shmq.open(memory="32MiB") as opened:
        yield opened
