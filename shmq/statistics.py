"""Statistics of a broker: frozen snapshots of queues and processes. `--json` prints these fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

from shmq.alerts import Alerts
from shmq.death import DeathReason

__all__ = ["Alerts", "BrokerStatistics", "PoolCounts", "ProcessInfo", "QueueStatistics", "as_json"]

ProcessState = Literal["live", "stopped", "dead"]


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """One queue at one moment. Counts are exact at rest; while others work they may lag by what is under way.

    Attributes:
        name: of the queue.
        ready: messages that can be received now.
        unsettled: messages that are with consumers.
        delayed: messages that are not yet due.
        bytes: of all of them, bodies and headers.
        memory_bytes: of messages in shared memory, each with its slot.
        reserved_bytes: of shared memory that the queue has for its slots, whether messages are in them or not.
        disk_bytes: that the queue takes on disk.
        flowed: whether part of it lies on disk.
        oldest_age: seconds since the oldest ready message was put, also those asleep (suspend); None: none is ready.
        first_position: of the oldest message; while the queue is on disk, of that one or one before; None: no message.
        next_position: of the next newcomer.
        consumers: that are open, in all processes.
        producers_waiting: threads that wait for room.
        shut_down: whether shutdown() was called, and reopen() not.
        put, delivered, acked, redelivered, dead_lettered, expired, dropped: messages since the queue exists. One that
            has expired and went to the dead is counted in both.
        deaths: deliveries that ended with their process, since the queue exists.

    Example:
        >>> queue.put("a")
        1
        >>> statistics = queue.statistics()
        >>> statistics.ready, statistics.put, statistics.acked
        (1, 1, 0)
    """

    name: str
    ready: int  # can be received now
    unsettled: int  # with consumers
    delayed: int  # not yet due
    bytes: int  # of all of them, bodies and headers
    memory_bytes: int  # of messages in shared memory, each with its slot
    reserved_bytes: int  # of shared memory, for its slots
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
    """One process that uses the broker.

    Attributes:
        pid: in its own pid namespace.
        name: of the program.
        started_at: POSIX seconds.
        state: "live", "stopped" (by SIGSTOP or a debugger) or "dead" (and not yet reaped).
        unsettled: messages that it holds.
        pinned_bytes: of its loans and views.

    Example:
        >>> (process,) = broker.statistics().processes
        >>> process.state, process.unsettled
        ('live', 0)
    """

    pid: int
    name: str
    started_at: float  # POSIX seconds
    state: ProcessState
    unsettled: int  # messages that it holds
    pinned_bytes: int  # by its loans and views


@dataclass(frozen=True, slots=True)
class BrokerStatistics:
    """One broker at one moment. Sizes in bytes.

    Attributes:
        path: of the directory; None: anonymous.
        version: of shmq in this process.
        memory: the budget.
        memory_reserved: what was taken from /dev/shm so far.
        memory_used: of it, in use.
        disk_used: bytes on disk, of all queues.
        log_bytes: 0 in this stage.
        processes: a ProcessInfo for each.
        queues: a QueueStatistics for each, by name.

    Example:
        >>> statistics = broker.statistics()
        >>> statistics.memory_used <= statistics.memory_reserved <= statistics.memory
        True
    """

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
class PoolCounts:
    """The outcomes of the messages of one run of a WorkerPool, also of those whose worker was killed.

    Attributes:
        handled: messages whose handler returned, or acked them itself.
        retried: failed attempts after which the message was to be tried again.
        dead: messages that died, by reason: "rejected", "max_attempts", "max_deaths". Expired ones are not in it.

    Example:
        >>> queue.put_many(["a", "b", "bad"])
        >>> pool = shmq.WorkerPool(queue, lambda m: m.reject() if m.body == "bad" else None, processes=0)
        >>> counts = pool.run(until_empty=True)
        >>> counts
        PoolCounts(handled=2, retried=0, dead={'rejected': 1})
        >>> counts.died
        1
    """

    handled: int
    retried: int  # attempts, not messages
    dead: Mapping[DeathReason, int]  # only reasons that there were

    @property
    def died(self) -> int:
        """How many messages died, for whatever reason."""
        return sum(self.dead.values())


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
