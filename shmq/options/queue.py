"""Options of a queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, Protocol, TypedDict, cast

from shmq.names import check_queue_name
from shmq.options.stage import LATER_QUEUE_OPTIONS, NOT_BUILT, not_built, unknown
from shmq.options.value import NEVER, Size, check_bool, check_choice, check_int, check_seconds, parse_size, shown

__all__ = [
    "DEFAULTS",
    "FIXED_QUEUE_OPTIONS",
    "GROUPINGS",
    "OVERFLOWS",
    "QUEUE_OPTIONS",
    "QueueOptions",
    "QueueSettings",
    "as_given",
    "check_queue_options",
]


class Named(Protocol):
    """A Queue or Exchange, as far as options look at it."""

    @property
    def name(self) -> str: ...


class QueueOptions(TypedDict, total=False):
    """Belong to the queue, kept with it, the same for every process: options of Broker.queue() and Queue.alter().

    Those marked "fixed" are settled when the queue is made; the others can be altered while it is in use, by alter() or
    `shmq declare`.

    maxsize: messages at most, in whatever state. Default 0: as many as its slots and memory hold. The slots are fixed
        when the queue is made.
    slot_size: bytes of a slot, fixed; 128 to 4,096, a multiple of 64. Small bodies lie in it. Default 192.
    temporary: fixed; true: deleted when the process that made it ends or closes its broker. Default false.
    max_deliveries: attempts; after so many that failed (retry) a message is dead. 0: never. Default 20.
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

    One that shmq does not know is a TypeError, one of a stage that is not built yet a ValueError that says so.

    Example:
        >>> jobs = broker.queue("jobs", max_deliveries=5)
        >>> jobs.options["max_deliveries"], jobs.options["max_deaths"]
        (5, 3)
    """

    # The ring's slots are fixed at creation: maxsize rounded up to a power of two, at least 1,024; for 0 what fits
    # into a sixteenth of the budget, at most 65,536. What exceeds them: Full
    maxsize: int
    slot_size: Size
    temporary: bool
    max_deliveries: int
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


OVERFLOWS: Final = ("wait", "reject", "drop_oldest")  # the core's numbers are their places
GROUPINGS: Final = ("none", "shared", "sticky")


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Options of a queue, checked. None: not given; what a user gives as None is NEVER, "none" or 0 here."""

    maxsize: int | None = None
    slot_size: int | None = None  # bytes
    temporary: bool | None = None
    max_deliveries: int | None = None
    max_deaths: int | None = None
    checksum: bool | None = None
    dead_letter: str | None = None  # name of the queue
    max_bytes: int | None = None
    overflow: str | None = None  # of OVERFLOWS
    priorities: int | None = None
    groups: str | None = None  # of GROUPINGS
    retry_delay: tuple[float, ...] | None = None  # seconds
    max_ttl: float | None = None  # seconds, or NEVER
    dead_letter_expired: bool | None = None
    lease: float | None = None  # seconds, or NEVER
    live_consumers: int | None = None  # 0: all
    expires: float | None = None  # seconds, or NEVER


# In force where nobody gave another. dead_letter has none: it is made from the queue's name. A slot of 192 bytes has
# 128 for headers and body: small tasks need no block.
DEFAULTS: Final = QueueSettings(
    maxsize=0,
    slot_size=192,
    temporary=False,
    max_deliveries=20,
    max_deaths=3,
    checksum=True,
    dead_letter=None,
    max_bytes=0,
    overflow="wait",
    priorities=1,
    groups="none",
    retry_delay=(0.0,),
    max_ttl=NEVER,
    dead_letter_expired=False,
    lease=NEVER,
    live_consumers=0,
    expires=NEVER,
)
FIXED_QUEUE_OPTIONS: Final = ("slot_size", "temporary", "checksum", "priorities", "groups")

MAX_MAXSIZE: Final = 1 << 24
MAX_BYTES: Final = 256 << 30  # of the largest broker
MAX_COUNT: Final = 65_535  # deliveries and deaths have 16 bits in the slot
MAX_PRIORITIES: Final = 10
MAX_RETRY_STEPS: Final = 8
MAX_CONSUMERS: Final = 1_023


def _check_maxsize(value: object, name: str) -> int:
    return check_int(value, name, 0, MAX_MAXSIZE, "give a number of messages, or 0 for as many as memory holds")


def _check_slot_size(value: object, name: str) -> int:
    size = parse_size(cast(Size, value), name)
    if not 128 <= size <= 4096 or size % 64:
        raise ValueError(f"{name}={shown(value)} is out of range; give 128 to 4,096 bytes, a multiple of 64")
    return size


def _check_count(value: object, name: str) -> int:
    return check_int(value, name, 0, MAX_COUNT, "give a number of attempts, or 0 for no limit")


def _check_dead_letter(value: object, name: str) -> str:
    target = value if isinstance(value, str) else getattr(value, "name", None)
    if not isinstance(target, str) or isinstance(value, type):
        raise TypeError(
            f"{name}={shown(value)} is of the type {type(value).__name__}; give a Queue or its name, "
            f'or leave it out for "<name>.dead"'
        )
    try:
        check_queue_name(target)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return target


def _check_max_bytes(value: object, name: str) -> int:
    size = parse_size(cast(Size, value), name)
    if size > MAX_BYTES:
        raise ValueError(
            f'{name}={shown(value)} is out of range; give 0 for no limit, or up to 256 GiB, such as "64MiB"'
        )
    return size


def _check_overflow(value: object, name: str) -> str:
    return check_choice(value, name, OVERFLOWS)


def _check_priorities(value: object, name: str) -> int:
    return check_int(value, name, 1, MAX_PRIORITIES, "give 2 to 10 levels, or 1 for a queue without priorities")


def _check_groups(value: object, name: str) -> str:
    return check_choice(value, name, GROUPINGS[1:], none=GROUPINGS[0])


def _check_retry_delay(value: object, name: str) -> tuple[float, ...]:
    remedy = f"give seconds from 0 to less than 1e9, or 1 to {MAX_RETRY_STEPS} of them, such as (1, 10, 60)"
    steps = value if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray) else (value,)
    if not 1 <= len(steps) <= MAX_RETRY_STEPS:
        raise ValueError(f"{name}={shown(value)} has {len(steps)} steps; {remedy}")
    delays = tuple(check_seconds(step, name, remedy) for step in steps)
    if NEVER in delays:
        raise ValueError(f"{name}={shown(value)} is out of range; {remedy}")
    return delays


def _check_max_ttl(value: object, name: str) -> float:
    return NEVER if value is None else check_seconds(value, name, "give seconds >= 0, or None for no bound")


def _check_lease(value: object, name: str) -> float:
    remedy = "give seconds > 0, or None for as long as the consumer lives"
    return NEVER if value is None else check_seconds(value, name, remedy, positive=True)


def _check_live_consumers(value: object, name: str) -> int:
    return 0 if value is None else check_int(value, name, 1, MAX_CONSUMERS, "give a number, or None for all")


def _check_expires(value: object, name: str) -> float:
    remedy = "give seconds >= 0, 0 for when its last consumer has gone, or None for never"
    return NEVER if value is None else check_seconds(value, name, remedy)


_CHECKS: Final[Mapping[str, Callable[[object, str], Any]]] = {
    "maxsize": _check_maxsize,
    "slot_size": _check_slot_size,
    "temporary": check_bool,
    "max_deliveries": _check_count,
    "max_deaths": _check_count,
    "checksum": check_bool,
    "dead_letter": _check_dead_letter,
    "max_bytes": _check_max_bytes,
    "overflow": _check_overflow,
    "priorities": _check_priorities,
    "groups": _check_groups,
    "retry_delay": _check_retry_delay,
    "max_ttl": _check_max_ttl,
    "dead_letter_expired": check_bool,
    "lease": _check_lease,
    "live_consumers": _check_live_consumers,
    "expires": _check_expires,
}
QUEUE_OPTIONS: Final = tuple(QueueOptions.__annotations__)
_NOTHING_GIVEN: Final = QueueSettings()


def check_queue_options(options: Mapping[str, object] | QueueOptions) -> QueueSettings:
    """Options of a queue, each checked for type and range; those not given stay None.

    Raises TypeError for an unknown option or a wrong type, ValueError for one out of range or of a later stage.
    """
    if not options:
        return _NOTHING_GIVEN
    given: dict[str, Any] = {}
    for name, value in options.items():
        if name in NOT_BUILT and name in LATER_QUEUE_OPTIONS:
            raise not_built(name)
        check = _CHECKS.get(name)
        if check is None:
            raise unknown(name, "a queue", QUEUE_OPTIONS)
        given[name] = check(value, name)
    return QueueSettings(**given)


def as_given(settings: QueueSettings) -> QueueOptions:
    """Settings as a user writes them; those that are None stay out."""
    options: dict[str, Any] = {}
    for field in fields(QueueSettings):
        name, value = field.name, getattr(settings, field.name)
        if value is None:
            continue
        if value == NEVER or (name == "groups" and value == GROUPINGS[0]) or (name == "live_consumers" and value == 0):
            value = None
        elif name == "retry_delay" and len(value) == 1:
            value = value[0]
        options[name] = value
    return cast(QueueOptions, options)
