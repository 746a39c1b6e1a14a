"""Options of brokers, queues and messages: their types, and the checks that every entrance makes."""

from __future__ import annotations

import math
import numbers
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, Protocol, TypedDict, cast

from shmq.headers import Header
from shmq.names import check_queue_name
from shmq.statistics import Alerts

__all__ = [
    "BROKER_DEFAULTS",
    "CORE_QUEUE_OPTIONS",
    "DEFAULTS",
    "BrokerSettings",
    "Durability",
    "PutOptions",
    "QueueOptions",
    "QueueSettings",
    "Size",
    "check_broker_options",
    "check_put_options",
    "check_queue_options",
    "check_timeout",
    "parse_size",
]

Size = int | str  # 67108864 or "64MiB"
Durability = Literal["none", "os", "sync"]  # survives: processes; the loss of the segment; power loss


class Named(Protocol):
    """A Queue or Exchange, as far as options look at it."""

    @property
    def name(self) -> str: ...


class QueueOptions(TypedDict, total=False):
    """Belong to the queue, kept with it, the same for every process. (f) = fixed at creation, others: Queue.alter().

    Example:
        >>> jobs = broker.queue("jobs", max_deliveries=5)
        >>> jobs.options["max_deliveries"], jobs.options["max_deaths"]
        (5, 3)
    """

    # The ring's slots are fixed at creation: maxsize rounded up to a power of two, at least 1,024; for 0 what takes an
    # eighth of the budget, at most 65,536. What exceeds them: Full
    maxsize: int  # most entries, in whatever state; 0 (default): as many as memory (and disk) hold
    slot_size: Size  # (f) bytes, 128 to 4096; small bodies lie in the slot itself
    temporary: bool  # (f) False; True: deleted when the process that made it ends or closes its broker
    max_deliveries: int  # 20; after so many failed attempts (retry) a message is dead. 0: never
    max_deaths: int  # 3; after it was with so many processes that died. 0: never
    checksum: bool  # (f) True; CRC-32C of each body, checked on delivery
    # default: the queue "<name>.dead", made when needed, from which nothing dies further
    dead_letter: str | Named  # where dead messages go, a Queue or its name
    # Stage "semantics"
    max_bytes: Size  # most bytes of bodies and headers; 0: no limit
    overflow: Literal["wait", "reject", "drop_oldest"]  # at maxsize or max_bytes; default "wait" (up to the timeout)
    priorities: int  # (f) 1; number of levels, 2 to 10; larger goes first
    groups: Literal["shared", "sticky"] | None  # (f) None; a group is with one consumer at a time, or for its life
    last_value: str | None  # (f) None; header whose newest value replaces the older message
    sort_by: str | None  # (f) None; header by which the queue is ordered, ascending
    retry_delay: float | Sequence[float]  # seconds, 0; by attempt, the last one repeats: (1, 10, 60)
    max_ttl: float | None  # seconds, None; upper bound of every message's time to live, also of those without one
    dead_letter_expired: bool  # False: expired messages are dropped and counted
    lease: float | None  # None: for as long as the consumer lives; else seconds, then it is taken from a live one
    live_consumers: int | None  # None; so many are served, the others stand by
    expires: float | None  # seconds, None; deleted after so long without a consumer; 0: when its last one has gone
    # Stage "flow"
    max_memory: Size | None  # None: the broker's budget alone decides; else what exceeds it flows to disk
    alerts: Alerts | None  # None; thresholds that are logged
    # Stage "log"
    durability: Durability  # (f) the broker's


class PutOptions(TypedDict, total=False):
    """Belong to one message. An option of a stage that is not built yet is a ValueError that says so, never ignored.

    Example:
        >>> queue.put("a", headers={"source": "web"})
        1
        >>> with queue.receive() as m:
        ...     m.headers["source"]
        'web'
    """

    headers: Mapping[str, Header] | None
    # Stage "semantics"
    priority: int  # 4; 0 to 9. On a queue without priorities, by put(): ValueError
    group: str | None  # None; on a queue without groups, by put(): ValueError
    ttl: float | None  # None; seconds until it expires
    delay: float  # 0; seconds until it can be received
    immediate: bool | float  # False; True or seconds: taken by a consumer by then, or withdrawn: Returned
    # Stage "log"
    durability: Durability | None  # None: the queue's; never more than the queue's


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Options of a queue, checked. None: not given."""

    maxsize: int | None = None
    slot_size: int | None = None  # bytes
    temporary: bool | None = None
    max_deliveries: int | None = None
    max_deaths: int | None = None
    checksum: bool | None = None
    dead_letter: str | None = None  # name of the queue


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Options of a broker, checked. None: not given."""

    memory: int | None = None  # bytes
    mode: int | None = None
    patience: float | None = None  # seconds


CORE_QUEUE_OPTIONS: Final = tuple(field.name for field in fields(QueueSettings))
CORE_PUT_OPTIONS: Final = ("headers",)
LATER_QUEUE_OPTIONS: Final = tuple(name for name in QueueOptions.__annotations__ if name not in CORE_QUEUE_OPTIONS)
LATER_PUT_OPTIONS: Final = tuple(name for name in PutOptions.__annotations__ if name not in CORE_PUT_OPTIONS)

# In force where nobody gave another. dead_letter has none: it is made from the queue's name; memory has none: it is
# made from the size of /dev/shm. A slot of 192 bytes has 128 for headers and body: small tasks need no block.
DEFAULTS: Final = QueueSettings(
    maxsize=0, slot_size=192, temporary=False, max_deliveries=20, max_deaths=3, checksum=True, dead_letter=None
)
BROKER_DEFAULTS: Final = BrokerSettings(memory=None, mode=0o700, patience=0.1)

MAX_MAXSIZE: Final = 1 << 24
MAX_COUNT: Final = 65_535  # deliveries and deaths have 16 bits in the slot
MIN_MEMORY: Final = 8 << 20  # what the core's fixed tables and a few queues need; the core has the same limits
MAX_MEMORY: Final = 256 << 30
FOREVER: Final = 1e9  # seconds, 31 years; longer ones would leave the 64-bit nanoseconds of the core

_UNITS: Final = {
    "": 1,
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
_SIZE: Final = r"([0-9]{1,19})(?:\.([0-9]{1,9}))?\s*([A-Za-z]{0,3})"  # compiled by re when first needed


# ---- single values ---------------------------------------------------------------------------------------------


def parse_size(value: Size, name: str) -> int:
    """A size in bytes, from an int or a text such as "64MiB".

    Arguments:
        value: an int >= 0, or a number with a unit: B, kB or KB, MB, GB, TB (decimal), KiB, MiB, GiB, TiB (binary). A
            fraction must make whole bytes ("1.5GiB").
        name: of the option, for the error text.

    Raises ValueError for a text that is no size, or one out of range; TypeError for another type.

    Example:
        >>> parse_size("64MiB", "memory")
        67108864
    """
    if isinstance(value, str):
        number = _parse_size_text(value, name)
    elif isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f'{name} is of the type {type(value).__name__}; give bytes as int, or text such as "64MiB"')
    else:
        number = operator.index(value)
    if not 0 <= number < 1 << 63:
        raise ValueError(f'{name}={_shown(value)} is out of range; give 0 to 2**63 - 1 bytes, such as "64MiB"')
    return number


def _parse_size_text(text: str, name: str) -> int:
    match = re.fullmatch(_SIZE, text.strip()) if len(text) < 64 else None
    scale = _UNITS.get(match[3]) if match else None
    if match is None or scale is None:
        raise ValueError(
            f'{name}={_shown(text)} is no size; give bytes as int, or text such as "64MiB" '
            f"(units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)"
        )
    fraction = match[2] or ""
    scaled, divisor = int(match[1] + fraction) * scale, int(10 ** len(fraction))
    number, rest = divmod(scaled, divisor)
    if rest:
        raise ValueError(f"{name}={_shown(text)} is no whole number of bytes; give a smaller unit, or bytes as int")
    return number


def check_timeout(timeout: float | None, name: str = "timeout") -> float | None:
    """A duration in seconds as a float >= 0, or None: wait for ever.

    Durations of 1e9 s (31 years) and more, infinity too, become None.

    Raises ValueError for a negative one or NaN, TypeError for anything that is no number; a bool is none.
    """
    if timeout is None:
        return None
    number: object = timeout
    if type(number) is not float and (isinstance(number, bool) or not isinstance(number, numbers.Real)):
        raise TypeError(
            f"{name} is of the type {type(timeout).__name__}; give seconds, 0 not to wait, or None to wait for ever"
        )
    if timeout >= FOREVER:  # before float(): an int may be too large for it
        return None
    if not timeout >= 0:  # so also for NaN
        raise ValueError(f"{name}={_shown(timeout)} is out of range; give seconds >= 0, or None to wait for ever")
    return float(timeout)


def _shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an int of {value.bit_length():,} bits"  # repr() of a very long one is an error of its own
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _check_bool(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name}={_shown(value)} is of the type {type(value).__name__}; give True or False")
    return value


def _check_int(value: object, name: str, low: int, high: int, remedy: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}={_shown(value)} is of the type {type(value).__name__}; {remedy}")
    number = operator.index(value)
    if not low <= number <= high:
        raise ValueError(f"{name}={_shown(number)} is out of range, {low:,} to {high:,}; {remedy}")
    return number


# ---- queues ----------------------------------------------------------------------------------------------------


def _check_maxsize(value: object, name: str) -> int:
    return _check_int(value, name, 0, MAX_MAXSIZE, "give a number of messages, or 0 for as many as memory holds")


def _check_slot_size(value: object, name: str) -> int:
    size = parse_size(cast(Size, value), name)
    if not 128 <= size <= 4096 or size % 64:
        raise ValueError(f"{name}={_shown(value)} is out of range; give 128 to 4,096 bytes, a multiple of 64")
    return size


def _check_count(value: object, name: str) -> int:
    return _check_int(value, name, 0, MAX_COUNT, "give a number of attempts, or 0 for no limit")


def _check_dead_letter(value: object, name: str) -> str:
    target = value if isinstance(value, str) else getattr(value, "name", None)
    if not isinstance(target, str) or isinstance(value, type):
        raise TypeError(
            f"{name}={_shown(value)} is of the type {type(value).__name__}; give a Queue or its name, "
            f'or leave it out for "<name>.dead"'
        )
    try:
        check_queue_name(target)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return target


_QUEUE_CHECKS: Final[Mapping[str, Callable[[object, str], Any]]] = {
    "maxsize": _check_maxsize,
    "slot_size": _check_slot_size,
    "temporary": _check_bool,
    "max_deliveries": _check_count,
    "max_deaths": _check_count,
    "checksum": _check_bool,
    "dead_letter": _check_dead_letter,
}


def check_queue_options(options: Mapping[str, object] | QueueOptions) -> QueueSettings:
    """Options of a queue, each checked for type and range; those not given stay None.

    Raises TypeError for an unknown option or a wrong type, ValueError for one out of range or of a later stage.
    """
    if not options:
        return _NOTHING_GIVEN
    given: dict[str, Any] = {}
    for name, value in options.items():
        check = _QUEUE_CHECKS.get(name)
        if check is None:
            raise _refusal(name, "a queue", CORE_QUEUE_OPTIONS, LATER_QUEUE_OPTIONS)
        given[name] = check(value, name)
    return QueueSettings(**given)


_NOTHING_GIVEN: Final = QueueSettings()


def _refusal(name: object, of: str, known: Sequence[str], later: Sequence[str]) -> Exception:
    if name in later:
        return _not_built(name)
    return TypeError(f"{of} has no option {name!r:.60}; known are {', '.join(known)}")


def _not_built(name: object) -> ValueError:
    return ValueError(f"{name} belongs to a later stage of shmq and is not built yet; leave it out")


# ---- messages --------------------------------------------------------------------------------------------------


def check_put_options(options: Mapping[str, object] | PutOptions) -> Mapping[str, Header] | None:
    """The headers among the options of a put; None if there are none. `encode_headers` checks what is in them.

    Raises TypeError for an unknown option or headers that are no mapping, ValueError for an option of a later stage.
    """
    if not options:
        return None
    for name in options:
        if name not in CORE_PUT_OPTIONS:
            raise _refusal(name, "a message", CORE_PUT_OPTIONS, LATER_PUT_OPTIONS)
    headers = options["headers"]
    if headers is not None and not isinstance(headers, Mapping):
        raise TypeError(f"headers={_shown(headers)} is of the type {type(headers).__name__}; give a dict, or None")
    return headers or None


# ---- brokers ---------------------------------------------------------------------------------------------------


def check_broker_options(
    *,
    memory: Size | None = None,
    mode: int | None = None,
    patience: float | None = None,
    disk: Size | None = None,
    durability: Durability | None = None,
    encryption_key: bytes | Callable[[], bytes] | None = None,
) -> BrokerSettings:
    """Options of a broker, each checked for type and range; those not given stay None.

    Arguments:
        memory: budget of the segment in bytes, 8 MiB to 256 GiB.
        mode: permissions of the directory, with all of the owner's, at most 0o777.
        patience: seconds that a stopped process may delay others, 0.001 to 60.
        disk, durability, encryption_key: of later stages; None only.

    Raises TypeError for a wrong type, ValueError for one out of range or of a later stage.
    """
    for name, value in ("disk", disk), ("durability", durability), ("encryption_key", encryption_key):
        if value is not None:
            raise _not_built(name)
    return BrokerSettings(
        memory=None if memory is None else _check_memory(memory),
        mode=None if mode is None else _check_mode(mode),
        patience=None if patience is None else _check_patience(patience),
    )


def _check_memory(memory: Size) -> int:
    size = parse_size(memory, "memory")
    if not MIN_MEMORY <= size <= MAX_MEMORY:
        raise ValueError(f'memory={_shown(memory)} is out of range; give 8 MiB to 256 GiB, such as "64MiB"')
    return size


def _check_mode(mode: int) -> int:
    if isinstance(mode, bool) or not hasattr(mode, "__index__"):
        raise TypeError(f"mode={_shown(mode)} is of the type {type(mode).__name__}; give permissions, such as 0o770")
    number = operator.index(mode)
    if not 0 <= number <= 0o777 or number & 0o700 != 0o700:
        shown = oct(number) if 0 <= number < 1 << 32 else _shown(number)
        raise ValueError(f"mode={shown} is out of range; give 0o700 for yourself, 0o770 for a group, with 0o in front")
    return number


def _check_patience(patience: float) -> float:
    seconds = check_timeout(patience, "patience")
    if seconds is None or not 0.001 <= seconds <= 60 or not math.isfinite(seconds):
        raise ValueError(f"patience={_shown(patience)} is out of range; give 0.001 to 60 seconds, 0.1 is the default")
    return seconds
