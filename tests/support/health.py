"""A broker at rest is sound, whatever happened to its users."""

import os
from typing import Any

import shmq
from shmq.core.queue import reap


def usage(broker: shmq.Broker) -> dict[str, int]:
    return dict(broker._membership.live().usage())  # type: ignore[arg-type]


def reap_the_dead(broker: shmq.Broker) -> None:
    """Reaps every member that has died; returns when none is left."""
    reap(broker._membership.live())


def check_sound(broker: shmq.Broker, *queues: shmq.Queue[Any]) -> None:
    """No damage, map and blocks and rings make sense, and nobody but this process is in the table."""
    reap_the_dead(broker)
    member = broker._membership.live()
    assert member.valid() is None
    assert usage(broker)["damage"] == 0
    rows = member.processes()
    assert [row[3] for row in rows] == [os.getpid()], f"still in the table: {rows}"
    for queue in queues:
        assert queue._check() is None
        census = queue._census()
        assert census["claimed"] == 0, census
        assert census["holes"] == 0, census
        assert census["broken"] == 0, census


def check_empty(broker: shmq.Broker, *queues: shmq.Queue[Any]) -> None:
    """Sound, no entry in any of the queues, and no block in use."""
    check_sound(broker, *queues)
    for queue in queues:
        census = queue._census()
        assert (census["ready"], census["unsettled"]) == (0, 0), census
        crowd = queue._waiters()
        assert crowd["asleep"] == 0, crowd
    found = usage(broker)
    assert (found["blocks_used"], found["blocks_building"]) == (0, 0), found
