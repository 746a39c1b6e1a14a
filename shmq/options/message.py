"""Options of one message, given to put(), put_many(), loan() and loan_array()."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict

from shmq.headers import Header
from shmq.options.stage import LATER_PUT_OPTIONS, NOT_BUILT, not_built, unknown
from shmq.options.value import NEVER, check_int, check_seconds, shown

__all__ = ["PUT_OPTIONS", "PutOptions", "PutSettings", "check_put_options", "delay_in_ns"]


class PutOptions(TypedDict, total=False):
    """Belong to one message: options of put(), put_many(), loan() and loan_array().

    headers: {name: value}; names are text, values str, int, float, bool, bytes or None. Selectors ask for them.
        Default None: no headers.
    priority: 0 to 9, larger goes first; default 4. On a queue without priorities a ValueError.
    group: text; messages of one group are with one consumer at a time. On a queue without groups a ValueError.
        Default None: of no group.
    ttl: seconds until it expires, counted from the put; 0: at once. Default None: never.
    delay: seconds until it can be received; it keeps its place meanwhile. Default 0.
    immediate: True, or seconds: taken by a consumer by then, or withdrawn, and Returned is raised. Only of put().
        Default False.

    One that shmq does not know is a TypeError, one of a stage that is not built yet a ValueError that says so.

    Example:
        >>> queue.put("a", headers={"source": "web"})
        1
        >>> with queue.receive() as m:
        ...     m.headers["source"]
        'web'
    """

    headers: Mapping[str, Header] | None
    priority: int
    group: str | None
    ttl: float | None
    delay: float
    immediate: bool | float


@dataclass(frozen=True, slots=True)
class PutSettings:
    """Options of a message, checked."""

    headers: Mapping[str, Header] | None = None  # what is in them is checked by encode_headers
    priority: int | None = None  # None: not given, which is DEFAULT_PRIORITY
    group: str | None = None
    ttl: float | None = None  # seconds
    delay: float = 0.0  # seconds
    immediate: float | None = None  # seconds, 0: by a consumer that waits now; None: not immediate


DEFAULT_PRIORITY: Final = 4
MAX_GROUP_BYTES: Final = 255


def _check_headers(value: object, name: str) -> Mapping[str, Header] | None:
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{name}={shown(value)} is of the type {type(value).__name__}; give a dict, or None")
    return value or None


def _check_priority(value: object, name: str) -> int:
    return check_int(value, name, 0, 9, "give 0 to 9, larger goes first, or leave it out for 4")


def _check_group(value: object, name: str) -> str | None:
    if value is None:
        return None
    remedy = f"give a text of 1 to {MAX_GROUP_BYTES} bytes of UTF-8, or None"
    if not isinstance(value, str):
        raise TypeError(f"{name}={shown(value)} is of the type {type(value).__name__}; {remedy}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{name}={shown(value)} is not Unicode text; {remedy}") from None
    if not 1 <= size <= MAX_GROUP_BYTES:
        raise ValueError(f"{name}={shown(value)} has {size:,} bytes; {remedy}")
    return value


def _check_ttl(value: object, name: str) -> float | None:
    if value is None:
        return None
    seconds = check_seconds(value, name, "give seconds >= 0, or None for ever")
    return None if seconds == NEVER else seconds


def _check_delay(value: object, name: str) -> float:
    remedy = "give seconds from 0 to less than 1e9: a delay has an end"
    seconds = check_seconds(value, name, remedy)
    if seconds == NEVER:
        raise ValueError(f"{name}={shown(value)} is out of range; {remedy}")
    return seconds


def delay_in_ns(delay: float) -> int:
    """Seconds, as checked for a put, in nanoseconds; the smallest one above 0 is 1."""
    seconds = _check_delay(delay, "delay")
    return max(round(seconds * 1e9), 1) if seconds else 0


def _check_immediate(value: object, name: str) -> float | None:
    if value is True or value is False:
        return 0.0 if value else None
    remedy = "give True, False, or seconds from 0 to less than 1e9"
    seconds = check_seconds(value, name, remedy)
    if seconds == NEVER:
        raise ValueError(f"{name}={shown(value)} is out of range; {remedy}")
    return seconds


_CHECKS: Final[Mapping[str, Callable[[object, str], Any]]] = {
    "headers": _check_headers,
    "priority": _check_priority,
    "group": _check_group,
    "ttl": _check_ttl,
    "delay": _check_delay,
    "immediate": _check_immediate,
}
PUT_OPTIONS: Final = tuple(PutOptions.__annotations__)
_PLAIN: Final = PutSettings()


def check_put_options(options: Mapping[str, object] | PutOptions) -> PutSettings:
    """Options of a put, each checked for type and range.

    Raises TypeError for an unknown option or a wrong type, ValueError for one out of range or of a later stage.
    """
    if not options:
        return _PLAIN
    given: dict[str, Any] = {}
    for name, value in options.items():
        if name in NOT_BUILT and name in LATER_PUT_OPTIONS:
            raise not_built(name)
        check = _CHECKS.get(name)
        if check is None:
            raise unknown(name, "a message", PUT_OPTIONS)
        given[name] = check(value, name)
    return PutSettings(**given)
