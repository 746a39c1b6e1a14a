"""Gives the engine the core's queues: the handle that Queue is built on, the directory, and the reaper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import shmq.core.status  # noqa: F401  - so that what fails below raises the right exception
from shmq._native import (
    ALERT_AGE,
    ALERT_BYTES,
    ALERT_MESSAGES,
    DEATH_RECORD_MOVER,
    DEATH_RECORD_PROCESS,
    NAME_MAX,
    ConsumerHandle,
    Delivery,
    Drop,
    LoanBuffer,
    Member,
    MessageHandle,
    QueueHandle,
    Row,
    Subscription,
    View,
    alert_queues,
    browsed,
    column_heads,
    death_record_signal,
    death_records,
    do_due,
    ending_queues,
    head_columns,
    if_free,
    peek_any,
    peek_pass_on,
    queue_declare,
    queue_names,
    reap,
    release_all,
)
from shmq.options import QUEUE_OPTIONS, PutSettings, QueueSettings
from shmq.options.message import DEFAULT_PRIORITY
from shmq.options.option import Option
from shmq.options.queue_table import QUEUE_TABLE
from shmq.options.value import NEVER

if TYPE_CHECKING:
    from shmq._native import Census, Settings

__all__ = [
    "ALERT_AGE",
    "ALERT_BYTES",
    "ALERT_MESSAGES",
    "Browsed",
    "CODEC_BYTES",
    "CODEC_DEFAULT",
    "CODEC_OTHER",
    "CODEC_PICKLE",
    "DEAD",
    "DRAINING",
    "EXPIRED",
    "MOVED",
    "NAME_MAX",
    "DEATH_RECORD_MOVER",
    "DEATH_RECORD_PROCESS",
    "OPEN",
    "SETTINGS",
    "STOPPED",
    "ConsumerHandle",
    "Delivery",
    "Drop",
    "Extras",
    "LoanBuffer",
    "MessageHandle",
    "Part",
    "QueueHandle",
    "Row",
    "Subscription",
    "View",
    "alert_queues",
    "browsed",
    "column_heads",
    "declare",
    "decode_settings",
    "do_due",
    "encode_extras",
    "encode_settings",
    "ending_queues",
    "head_columns",
    "if_free",
    "oldest_ready",
    "death_records",
    "death_record_signal",
    "peek_any",
    "peek_pass_on",
    "queue_names",
    "reap",
    "release_all",
]

# Codes by which the fast path in C knows a handle's codec.
CODEC_DEFAULT: Final = 0
CODEC_BYTES: Final = 1
CODEC_OTHER: Final = 2
CODEC_PICKLE: Final = 3  # as DEFAULT for exact bytes and str, OTHER for all else

# Whether a queue is in service: puts are refused while it drains, takers too once it is stopped.
OPEN: Final = 0
DRAINING: Final = 1
STOPPED: Final = 2

# Why a message is moved, as its queue counts it.
MOVED: Final = 0
DEAD: Final = 1
EXPIRED: Final = 2

# priority, ttl in ns, delay in ns, group, immediate in ns; 2**64 - 1 for a time that was not given
Extras = tuple[int, int, int, bytes | None, int]

# queue, row of a consumer, what it takes
Part = tuple[QueueHandle, int, Subscription | None]

# position, id, enqueued_ns, content, delivery, deaths, redelivered, priority, head, body, expires_ns
Browsed = tuple[int, int, int, int, int, int, int, int, bytes, bytes, int, int]

SETTINGS: Final = QUEUE_OPTIONS  # in the order of enum shmq_setting
_NEVER_NS: Final = (1 << 64) - 1


def _nanoseconds(seconds: float) -> int:
    return _NEVER_NS if seconds == NEVER else max(round(seconds * 1e9), 1 if seconds else 0)


def _encoded(option: Option, value: Any) -> int | bytes | tuple[int, ...] | None:
    if value is None:
        return None
    match option.kind:
        case "name":
            return cast(str, value).encode()
        case "delays":
            return tuple(map(_nanoseconds, value))
        case "alerts":
            return (*map(int, value[:3]), _nanoseconds(value[3]), _nanoseconds(value[4]))
        case "choice":
            return option.choices.index(value)
        case "seconds":
            return _nanoseconds(value)
        case "count" | "size" | "switch":
            return int(value)


def _decoded(option: Option, value: Any) -> Any:
    match option.kind:
        case "name":
            return value.decode(errors="replace") or None
        case "delays":
            return tuple(step / 1e9 for step in value)
        case "alerts":
            return (*value[:3], value[3] / 1e9, NEVER if value[4] == _NEVER_NS else value[4] / 1e9)
        case "choice":
            return option.choices[value]
        case "seconds":
            return NEVER if value == _NEVER_NS else value / 1e9
        case "switch":
            return bool(value)
        case "count" | "size":
            return value


def encode_settings(settings: QueueSettings) -> tuple[int | bytes | tuple[int, ...] | None, ...]:
    """Converts settings into the form that the core takes."""
    return tuple(_encoded(option, getattr(settings, option.name)) for option in QUEUE_TABLE)


def decode_settings(found: Settings) -> QueueSettings:
    """Converts the core's answer into all settings in force; dead_letter None: none was given."""
    values = cast("dict[str, Any]", found)
    return QueueSettings(**{option.name: _decoded(option, values[option.name]) for option in QUEUE_TABLE})


def encode_extras(put: PutSettings) -> Extras | None:
    """Converts the options of a put, except headers, into the core's form; None: all have their defaults."""
    if put.priority is None and put.group is None and put.ttl is None and not put.delay and put.immediate is None:
        return None
    return (
        DEFAULT_PRIORITY if put.priority is None else put.priority,
        _NEVER_NS if put.ttl is None else _nanoseconds(put.ttl),
        _nanoseconds(put.delay),
        None if put.group is None else put.group.encode(),
        _NEVER_NS if put.immediate is None else _nanoseconds(put.immediate),
    )


def declare(member: Member, name: bytes, settings: QueueSettings, create: bool) -> tuple[int, int, str | None]:
    """Finds or makes a queue: (directory index, incarnation, None), or (0, 0, name of the setting that differs).

    Raises NotFound (create False and no such queue), Full (no memory for a ring), OutOfSpace, BrokerError (too many).
    """
    index, incarnation, differs = queue_declare(member, name, encode_settings(settings), create)
    return index, incarnation, None if differs is None else SETTINGS[differs]


def oldest_ready(queue: QueueHandle, census: Census) -> int:
    """When the oldest ready message was put, in ns of the machine's clock; 0: none is ready. Of each level on disk the
    first one counts.
    """
    on_disk = queue._oldest_on_disk() if census["on_disk"] else 0
    return min(filter(None, (census["oldest_ns"], on_disk)), default=0)
