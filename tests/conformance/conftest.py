"""A queue of every kind: what holds for one holds for all of them, since they differ in the order of entries only.

A kind is what `broker.queue()` is given; messages are put without options, so that each kind keeps them in the order in
which they came.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq

KINDS: dict[str, dict[str, Any]] = {
    "standard": {},
    "priorities": {"priorities": 4, "maxsize": 4000},
    "with groups": {"groups": "shared"},
    "with sticky groups": {"groups": "sticky"},
    "with limits": {"maxsize": 4000, "max_bytes": "4MiB"},
    "with lives and leases": {"lease": 3600, "max_ttl": 86400},
}


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of a queue of this kind."""
    return KINDS[request.param]


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="16MiB") as opened:
        yield opened


@pytest.fixture
def queue(broker: shmq.Broker, kind: dict[str, Any]) -> shmq.Queue[Any]:
    return broker.queue("jobs", **kind)
