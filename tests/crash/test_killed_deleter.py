"""A process that is killed while it deletes a broker: what it leaves is finished or begun anew by the next one."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import shmq
from shmq.core import segment
from shmq.engine.broker.broker import Broker, live_membership
from shmq.engine.directory.removal import destroy
from shmq.engine.membership.opening import join_directory
from shmq.errors import BrokerNotFound
from shmq.options import BrokerSettings
from tests.support.syscall_killer import killed_at

MEMORY = "8MiB"


def make(path: Path) -> None:
    with shmq.open(path, memory=MEMORY) as broker:
        broker.queue("jobs").put("a message")


def segments_of(path: Path) -> list[str]:
    """All that name the directory in their header, as long as they can be looked at."""
    found = []
    for name in segment.list_segments():
        try:
            if segment.inspect(name).path == str(path):
                found.append(name)
        except OSError:
            continue
    return found


def among(names: list[str], work: Callable[[], None]) -> None:
    """As if there were no other segments: with those of other tests, which come and go, the number of calls varies."""
    segment.list_segments = lambda: names
    work()


def by_destroy(path: Path) -> None:
    destroy(str(path), force=True)


def by_delete(path: Path) -> None:
    Broker(join_directory(str(path), BrokerSettings(), create=False)).delete(force=True)


@pytest.mark.parametrize(("delete", "then"), [(by_destroy, "destroy"), (by_destroy, "open"), (by_delete, "destroy")])
@pytest.mark.timeout(600)
def test_a_deletion_that_is_killed_at_any_system_call_is_finished_by_the_next_one(
    broker_dir: Path, delete: Callable[[Path], None], then: str
) -> None:
    """In its midst another process is a member: its calls work, or say that the broker was deleted. Shows G8."""
    stop, kept, gone = 0, 0, 0
    while True:
        make(broker_dir)
        with shmq.open(broker_dir) as member:
            queue = member.queue("jobs")
            killed = killed_at(stop, partial(among, segments_of(broker_dir), partial(delete, broker_dir)))
            if live_membership(member).live().gone():
                with pytest.raises(BrokerNotFound, match="deleted"):
                    queue.get(timeout=0)
                gone += 1
            else:
                assert queue.get(timeout=0) == "a message"
                kept += 1
        if then == "open":
            with shmq.open(broker_dir, memory=MEMORY) as broker:
                broker.queue("jobs").put("another")
        try:
            destroy(str(broker_dir))
        except BrokerNotFound:
            assert then == "destroy"
            for name in os.listdir(broker_dir) if broker_dir.exists() else ():
                assert name == "lock", "nothing but what excludes others may be left"
        assert segments_of(broker_dir) == []
        if not killed:
            break
        stop += 1
    assert kept > 20
    assert gone > 5
    print(f"{stop} deaths, {gone} of them behind the deletion")
