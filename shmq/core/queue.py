"""Queues as the native core has them: the handle that Queue is built on, the directory, and the reaper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, cast

import shmq.core.status  # noqa: F401  - so that what fails below raises the right exception
from shmq._native import (
    NAME_MAX,
    OBITUARY_MOVER,
    OBITUARY_PROCESS,
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
    browsed,
    column_heads,
    do_due,
    ending_queues,
    head_columns,
    if_free,
    obituaries,
    obituary_signal,
    peek_any,
    peek_pass_on,
    queue_declare,
    queue_names,
    reap,
    release_all,
)
from shmq.options import PutSettings, QueueSettings
from shmq.options.message import DEFAULT_PRIORITY
from shmq.options.queue import GROUPINGS, OVERFLOWS
from shmq.options.value import NEVER

if TYPE_CHECKING:
    from shmq._native import Settings

__all__ = [
    "Browsed",
    "CODEC_BYTES",
    "CODEC_DEFAULT",
    "CODEC_OTHER",
    "CODEC_PICKLE",
    "DEAD",
    "EXPIRED",
    "MOVED",
    "NAME_MAX",
    "OBITUARY_MOVER",
    "OBITUARY_PROCESS",
    "SETTINGS",
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
    "obituaries",
    "obituary_signal",
    "peek_any",
    "peek_pass_on",
    "queue_names",
    "reap",
    "release_all",
]

# How a handle's codec looks to the fast path in C.
CODEC_DEFAULT: Final = 0
CODEC_BYTES: Final = 1
CODEC_OTHER: Final = 2
CODEC_PICKLE: Final = 3  # as DEFAULT for exact bytes and str, OTHER for all else

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

# In the order of enum shmq_setting.
SETTINGS: Final = tuple(field.name for field in fields(QueueSettings))
_NEVER_NS: Final = (1 << 64) - 1
_SWITCHES: Final = ("temporary", "checksum", "dead_letter_expired")
_TIMES: Final = ("max_ttl", "lease", "expires")
_CHOICES: Final[Mapping[str, Sequence[str]]] = {"overflow": OVERFLOWS, "groups": GROUPINGS}


def _nanoseconds(seconds: float) -> int:
    return _NEVER_NS if seconds == NEVER else max(round(seconds * 1e9), 1 if seconds else 0)


def _encoded(name: str, value: Any) -> int | bytes | tuple[int, ...] | None:
    if value is None:
        return None
    if name == "dead_letter":
        return cast(str, value).encode()
    if name == "retry_delay":
        return tuple(map(_nanoseconds, value))
    if name in _CHOICES:
        return _CHOICES[name].index(value)
    return _nanoseconds(value) if name in _TIMES else int(value)


def _decoded(name: str, value: Any) -> Any:
    if name == "dead_letter":
        return value.decode(errors="replace") or None
    if name == "retry_delay":
        return tuple(step / 1e9 for step in value)
    if name in _CHOICES:
        return _CHOICES[name][value]
    if name in _TIMES:
        return NEVER if value == _NEVER_NS else value / 1e9
    return bool(value) if name in _SWITCHES else value


def encode_settings(settings: QueueSettings) -> tuple[int | bytes | tuple[int, ...] | None, ...]:
    """As the core takes them."""
    return tuple(_encoded(name, getattr(settings, name)) for name in SETTINGS)


def decode_settings(found: Settings) -> QueueSettings:
    """From what the core answers: all of them, as in force; dead_letter None: nobody gave one."""
    return QueueSettings(**{name: _decoded(name, cast("dict[str, Any]", found)[name]) for name in SETTINGS})


def encode_extras(put: PutSettings) -> Extras | None:
    """The options of a put besides its headers, as the core takes them; None: all are as by default."""
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
