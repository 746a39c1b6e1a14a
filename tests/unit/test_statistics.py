"""Snapshots: frozen, pickled, and as JSON with exactly their fields."""

import dataclasses
import json
import pickle
from types import MappingProxyType
from typing import Any

import pytest

from shmq.death import Death
from shmq.statistics import Alerts, BrokerStatistics, ProcessInfo, QueueStatistics, as_json

COUNTS = ("put", "delivered", "acked", "redelivered", "deaths", "dead_lettered", "expired", "dropped")
QUEUE = QueueStatistics(
    name="jobs",
    ready=1,
    unsettled=2,
    delayed=0,
    bytes=28,
    memory_bytes=128,
    reserved_bytes=24576,
    disk_bytes=0,
    flowed=False,
    oldest_age=0.5,
    first_position=None,
    next_position=4,
    consumers=1,
    producers_waiting=0,
    shut_down=False,
    **dict.fromkeys(COUNTS, 3),
)
PROCESS = ProcessInfo(pid=7, name="worker", started_at=1.5, state="stopped", unsettled=2, pinned_bytes=64)
DEATH = Death("jobs", "max_deaths", "Traceback ...", 2.5, (7, 8), 9)
BROKER = BrokerStatistics("/d", "0.1.0", 1 << 20, 4096, 128, 0, 0, (PROCESS,), MappingProxyType({"jobs": QUEUE}))
ALL = [QUEUE, PROCESS, DEATH, Alerts(messages=10)]


@pytest.mark.parametrize("snapshot", [*ALL, BROKER], ids=lambda snapshot: type(snapshot).__name__)
def test_json_has_exactly_the_fields_in_their_order(snapshot: Any) -> None:
    printed = json.loads(json.dumps(as_json(snapshot)))
    assert list(printed) == [field.name for field in dataclasses.fields(snapshot)]


def test_json_goes_into_mappings_and_tuples() -> None:
    plain = as_json(BROKER)
    assert plain["queues"] == {"jobs": as_json(QUEUE)}
    assert plain["processes"] == [as_json(PROCESS)]
    assert plain["queues"]["jobs"]["first_position"] is None
    assert as_json(DEATH)["pids"] == [7, 8]


@pytest.mark.parametrize("value", [None, {}, "text", QueueStatistics])
def test_only_a_snapshot_has_a_form_in_json(value: object) -> None:
    with pytest.raises(TypeError, match="snapshot"):
        as_json(value)


def test_a_value_without_a_form_in_json_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes"):
        as_json(dataclasses.replace(DEATH, error=b"raw"))  # type: ignore[arg-type]


@pytest.mark.parametrize("snapshot", ALL, ids=lambda snapshot: type(snapshot).__name__)
def test_a_snapshot_cannot_be_changed_and_can_be_pickled(snapshot: Any) -> None:
    field = dataclasses.fields(snapshot)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(snapshot, field, None)
    assert not hasattr(snapshot, "__dict__")
    assert pickle.loads(pickle.dumps(snapshot)) == snapshot
