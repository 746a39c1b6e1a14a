"""What one sees of a broker: frozen snapshots of queues, processes and dead messages. `--json` prints these fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

__all__ = ["Alerts", "BrokerStatistics", "Death", "ProcessInfo", "QueueStatistics", "as_json"]

DeathReason = Literal["rejected", "max_deliveries", "max_deaths", "expired", "undecodable", "queue_deleted"]
ProcessState = Literal["live", "stopped", "dead"]


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """One queue at one moment. Counts are exact at rest; while others work they may lag by what is under way."""

    name: str
    ready: int  # can be received now
    unsettled: int  # with consumers
    delayed: int  # not yet due
    bytes: int  # of all of them, bodies and headers
    memory_bytes: int  # of these, resident in shared memory
    disk_bytes: int  # of these, on disk
    flowed: bool  # part of it lies on disk
    oldest_age: float | None  # seconds, of the oldest ready entry
    first_position: int | None  # of the oldest entry
    next_position: int  # of the next newcomer
    consumers: int
    producers_waiting: int
    shut_down: bool
    # since the queue exists
    put: int
    delivered: int
    acked: int
    redelivered: int
    deaths: int  # deliveries that ended with their process
    dead_lettered: int
    expired: int
    dropped: int  # by overflow, or replaced by a last value


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One process that uses the broker."""

    pid: int
    name: str
    started_at: float  # POSIX seconds
    state: ProcessState
    unsettled: int  # messages that it holds
    pinned_bytes: int  # by its loans and views


@dataclass(frozen=True, slots=True)
class BrokerStatistics:
    """One broker at one moment. Sizes in bytes."""

    path: str | None  # None: anonymous
    version: str
    memory: int  # budget
    memory_reserved: int
    memory_used: int
    disk_used: int
    log_bytes: int
    processes: tuple[ProcessInfo, ...]
    queues: Mapping[str, QueueStatistics]


@dataclass(frozen=True, slots=True)
class Death:
    """Why a message is dead: `Message.death` of what lies in a dead-letter queue."""

    queue: str  # where it died
    reason: DeathReason
    error: str | None  # text or traceback
    at: float  # POSIX seconds
    pids: tuple[int, ...]  # processes that died with it
    signal: int | None  # that ended the last of them, where it is known


@dataclass(frozen=True, slots=True)
class Alerts:
    """Thresholds of a queue, logged to "shmq.alert" at most once per `repeat` seconds. None: no such threshold."""

    messages: int | None = None
    bytes: int | None = None
    message_bytes: int | None = None
    age: float | None = None
    repeat: float = 30.0


def as_json(value: object) -> dict[str, Any]:
    """The snapshot as plain dicts and lists, in the order of its fields, ready for `json.dumps`.

    Arguments:
        value: an instance of one of the dataclasses of this module.

    Raises TypeError for anything else.

    Example:
        >>> as_json(Alerts(messages=10))
        {'messages': 10, 'bytes': None, 'message_bytes': None, 'age': None, 'repeat': 30.0}
    """
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"as_json() takes a snapshot such as QueueStatistics, not {type(value).__name__}")
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def _plain(value: object) -> Any:
    if is_dataclass(value):
        return as_json(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise TypeError(f"a snapshot holds {type(value).__name__}, which has no form in JSON")
