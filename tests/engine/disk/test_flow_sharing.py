"""A queue of a group's broker that flows to disk: what one user has moved there, the other brings back."""

import os
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.conftest import MEMORY
from tests.engine.lifecycle.test_less_trusted import place
from tests.support.users import GROUP, OTHER, as_user, needs_root

pytestmark = needs_root
__all__ = ["place"]  # a fixture
OWNER = 65533
LITTLE = 20_000
COUNT = 1000


def opened(path: Path) -> shmq.Broker:
    return shmq.open(path, memory=MEMORY)


def flowing(broker: shmq.Broker) -> shmq.Queue[Any]:
    return broker.queue("backlog", max_memory=LITTLE, codec="bytes")


def put(path: Path, first: int) -> None:
    with opened(path) as broker:
        queue = flowing(broker)
        for number in range(first, first + COUNT):
            queue.put(b"%08d" % number + b"x" * 100, timeout=0)
        assert queue.statistics().flowed


def take(path: Path, count: int) -> list[int]:
    with opened(path) as broker:
        queue = flowing(broker)
        return [int(queue.get(timeout=0)[:8]) for _ in range(count)]


@pytest.fixture(params=["made with its group", "made with setgid"])
def shared(place: Path, request: pytest.FixtureRequest) -> Path:
    """A directory that the owner has prepared for a broker, and for the group."""
    path = place / "jobs"
    path.mkdir()
    os.chown(path, OWNER, GROUP)
    path.chmod(0o2770 if request.param == "made with setgid" else 0o770)
    return path


def test_what_one_user_has_moved_to_disk_the_other_brings_back(shared: Path) -> None:
    """Neither has the group as his first one. Shows G5."""
    as_user(lambda: put(shared, 0), OWNER, GROUP, uid=OWNER)
    assert as_user(lambda: take(shared, 300), OTHER, GROUP) == list(range(300))
    as_user(lambda: put(shared, COUNT), OTHER, GROUP)
    assert as_user(lambda: take(shared, 1700), OWNER, GROUP, uid=OWNER) == list(range(300, 2000))
    as_user(lambda: put(shared, 0), OTHER, GROUP)
    assert as_user(lambda: take(shared, COUNT), OWNER, GROUP, uid=OWNER) == list(range(COUNT))
