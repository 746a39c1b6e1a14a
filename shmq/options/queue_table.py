"""Options of a queue: their types, defaults and ranges. Written by tools/options from tools/options.toml."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypedDict

from shmq.alerts import Alerts
from shmq.options.option import Option
from shmq.options.value import NEVER, Size

__all__ = ["QUEUE_TABLE", "QueueOptions", "QueueSettings", "SettingValues"]


class Named(Protocol):
    """A Queue or Exchange, as far as options look at it."""

    @property
    def name(self) -> str: ...


class QueueOptions(TypedDict, total=False):
    """Belong to the queue, kept with it, the same for every process: options of Broker.queue() and Queue.alter().

    Those marked "fixed" are settled when the queue is made; the others can be altered while it is in use, by alter() or
    `shmq declare`.

    maxsize: messages at most, in whatever state, in memory and on disk. Default 0: as many as there is room for. The
        slots in memory are fixed when the queue is made.
    slot_size: bytes of a slot, fixed; 128 to 4,096, a multiple of 64. Small bodies lie in it. Default 192.
    temporary: fixed; true: deleted when the process that made it ends or closes its broker. Default false.
    max_attempts: attempts; after so many that failed (retry) a message is dead. 0: never. Default 20.
    max_deaths: processes; after it was with so many that died a message is dead. 0: never. Default 3.
    checksum: fixed; true: a CRC-32C of each body is checked on delivery. Default true.
    dead_letter: a queue's name, in Python also a Queue; where dead messages go. Default "NAME.dead", made when needed,
        from which nothing dies further.
    max_bytes: bytes of bodies and headers at most, such as "64MiB". Default 0: no limit.
    overflow: what a put does at maxsize or max_bytes: "wait" (up to its timeout), "reject" or "drop_oldest". Default
        "wait".
    priorities: levels, fixed; 2 to 10, larger goes first. Default 1: without priorities.
    groups: fixed; "shared": a group is with one consumer at a time; "sticky": for that consumer's life. Default None.
    retry_delay: seconds before the next attempt; several: by attempt, the last one repeats, such as (1, 10, 60).
        Default 0.
    max_ttl: seconds; upper bound of every message's time to live, also of those without one. Default None.
    dead_letter_expired: true: expired messages go to the dead letters; false: they are counted and dropped. Default
        false.
    lease: seconds that a consumer may have a message, which is then taken from it. Default None: for as long as the
        consumer lives.
    live_consumers: consumers that are served; the others stand by. Default None: all.
    expires: seconds without a consumer after which the queue is deleted; 0: when its last one has gone. Default None:
        never.
    max_memory: headers and bodies that the queue keeps in memory; what exceeds them goes to disk, and comes back in its
        order. None (the default): as much as the broker has memory for.
    alerts: an Alerts with thresholds, or None (the default). "shmq.alert" logs that one is reached. It always logs that
        the queue flows to disk, and that it has recovered.

    One that shmq does not know is a TypeError, one of a stage that is not built yet a ValueError that says so.

    Example:
        >>> jobs = broker.queue("jobs", max_attempts=5)
        >>> jobs.options["max_attempts"], jobs.options["max_deaths"]
        (5, 3)
    """

    maxsize: int
    slot_size: Size
    temporary: bool
    max_attempts: int
    max_deaths: int
    checksum: bool
    dead_letter: str | Named
    max_bytes: Size
    overflow: Literal["wait", "reject", "drop_oldest"]
    priorities: int
    groups: Literal["shared", "sticky"] | None
    retry_delay: float | Sequence[float]
    max_ttl: float | None
    dead_letter_expired: bool
    lease: float | None
    live_consumers: int | None
    expires: float | None
    max_memory: Size | None
    alerts: Alerts | None


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Options of a queue, checked. None: not given; what a user gives as None is its default here."""

    maxsize: int | None = None
    slot_size: int | None = None  # bytes
    temporary: bool | None = None
    max_attempts: int | None = None
    max_deaths: int | None = None
    checksum: bool | None = None
    dead_letter: str | None = None  # of the queue
    max_bytes: int | None = None  # bytes
    overflow: str | None = None  # of its choices
    priorities: int | None = None
    groups: str | None = None  # of its choices
    retry_delay: tuple[float, ...] | None = None  # seconds
    max_ttl: float | None = None  # seconds, or NEVER
    dead_letter_expired: bool | None = None
    lease: float | None = None  # seconds, or NEVER
    live_consumers: int | None = None
    expires: float | None = None  # seconds, or NEVER
    max_memory: int | None = None  # bytes
    alerts: tuple[float, ...] | None = None  # its fields


class SettingValues(TypedDict):
    """As the core answers. Times are nanoseconds, 2**64 - 1 for never; choices are their numbers."""

    maxsize: int
    slot_size: int
    temporary: int
    max_attempts: int
    max_deaths: int
    checksum: int
    dead_letter: bytes
    max_bytes: int
    overflow: int
    priorities: int
    groups: int
    retry_delay: tuple[int, ...]
    max_ttl: int
    dead_letter_expired: int
    lease: int
    live_consumers: int
    expires: int
    max_memory: int
    alerts: tuple[int, ...]


QUEUE_TABLE: Final = (
    Option(
        "maxsize",
        "count",
        default=0,
        least=0,
        most=4_294_967_294,
        remedy="give a number of messages, or 0 for as many as there is room for",
    ),
    Option(
        "slot_size",
        "size",
        default=192,
        least=128,
        most=4_096,
        step=64,
        fixed=True,
        remedy="give 128 to 4,096 bytes, a multiple of 64",
    ),
    Option(
        "temporary",
        "switch",
        default=False,
        fixed=True,
    ),
    Option(
        "max_attempts",
        "count",
        default=20,
        least=0,
        most=65_535,
        remedy="give a number of attempts, or 0 for no limit",
    ),
    Option(
        "max_deaths",
        "count",
        default=3,
        least=0,
        most=65_535,
        remedy="give a number of attempts, or 0 for no limit",
    ),
    Option(
        "checksum",
        "switch",
        default=True,
        fixed=True,
    ),
    Option(
        "dead_letter",
        "name",
        remedy='give a Queue or its name, or leave it out for "<name>.dead"',
    ),
    Option(
        "max_bytes",
        "size",
        default=0,
        least=0,
        most=274_877_906_944,
        remedy='give 0 for no limit, or up to 256 GiB, such as "64MiB"',
    ),
    Option(
        "overflow",
        "choice",
        default="wait",
        choices=("wait", "reject", "drop_oldest"),
    ),
    Option(
        "priorities",
        "count",
        default=1,
        least=1,
        most=10,
        fixed=True,
        remedy="give 2 to 10 levels, or 1 for a queue without priorities",
    ),
    Option(
        "groups",
        "choice",
        default="none",
        choices=("none", "shared", "sticky"),
        fixed=True,
        may_be_none=True,
    ),
    Option(
        "retry_delay",
        "delays",
        default=(0.0,),
        least=1,
        most=8,
        remedy="give seconds from 0 to less than 1e9, or 1 to 8 of them, such as (1, 10, 60)",
    ),
    Option(
        "max_ttl",
        "seconds",
        default=NEVER,
        least=0,
        may_be_none=True,
        remedy="give seconds >= 0, or None for no bound",
    ),
    Option(
        "dead_letter_expired",
        "switch",
        default=False,
    ),
    Option(
        "lease",
        "seconds",
        default=NEVER,
        least=1e-09,
        may_be_none=True,
        remedy="give seconds > 0, or None for as long as the consumer lives",
    ),
    Option(
        "live_consumers",
        "count",
        default=0,
        least=1,
        most=1_023,
        may_be_none=True,
        remedy="give a number, or None for all",
    ),
    Option(
        "expires",
        "seconds",
        default=NEVER,
        least=0,
        may_be_none=True,
        remedy="give seconds >= 0, 0 for when its last consumer has gone, or None for never",
    ),
    Option(
        "max_memory",
        "size",
        default=0,
        least=1,
        most=274_877_906_944,
        may_be_none=True,
        remedy="give a size, or None for as much as the broker has",
    ),
    Option(
        "alerts",
        "alerts",
        default=(0, 0, 0, 0.0, 30.0),
        most=5,
        may_be_none=True,
        remedy="give shmq.Alerts(messages=..., bytes=..., message_bytes=..., age=...), each a number above 0, or None",
    ),
)
