"""Single values of options: sizes, durations, numbers, each checked for type and range."""

from __future__ import annotations

import math
import numbers
import operator
import re
from collections.abc import Sequence
from typing import Any, Final

__all__ = [
    "NEVER",
    "Size",
    "check_bool",
    "check_choice",
    "check_int",
    "check_seconds",
    "check_timeout",
    "parse_size",
    "shown",
    "size_as_text",
]

Size = int | str  # 67108864 or "64MiB"

FOREVER: Final = 1e9  # seconds, 31 years; longer ones would leave the 64-bit nanoseconds of the core
NEVER: Final = math.inf  # seconds; of a time that is None

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


def parse_size(value: Size, name: str) -> int:
    """A size in bytes, from an int or a text such as "64MiB".

    Arguments:
        value: an int >= 0, or a number with a unit: B, kB or KB, MB, GB, TB (decimal), KiB, MiB, GiB, TiB (binary). A
            fraction must make whole bytes ("1.5GiB").
        name: of the option, for the error text.

    Raises ValueError for a text that is not a size, or one out of range; TypeError for another type.

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
        raise ValueError(f'{name}={shown(value)} is out of range; give 0 to 2**63 - 1 bytes, such as "64MiB"')
    return number


def _parse_size_text(text: str, name: str) -> int:
    match = re.fullmatch(_SIZE, text.strip()) if len(text) < 64 else None
    scale = _UNITS.get(match[3]) if match else None
    if match is None or scale is None:
        raise ValueError(
            f'{name}={shown(text)} is not a size; give bytes as int, or text such as "64MiB" '
            f"(units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)"
        )
    fraction = match[2] or ""
    scaled, divisor = int(match[1] + fraction) * scale, int(10 ** len(fraction))
    number, rest = divmod(scaled, divisor)
    if rest:
        raise ValueError(f"{name}={shown(text)} is not a whole number of bytes; give a smaller unit, or bytes as int")
    return number


def size_as_text(number: int) -> str:
    """A size as parse_size() takes it, with the largest binary unit of which it is a multiple.

    Example:
        >>> size_as_text(64 << 20), size_as_text(100)
        ('64MiB', '100')
    """
    for unit in ("GiB", "MiB", "KiB"):
        whole, rest = divmod(number, _UNITS[unit])
        if whole and not rest:
            return f"{whole}{unit}"
    return str(number)


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
            f"{name}={shown(timeout)} is of the type {type(timeout).__name__}; "
            "give seconds, 0 not to wait, or None to wait for ever"
        )
    if timeout >= FOREVER:  # before float(): an int may be too large for it
        return None
    if not timeout >= 0:  # so also for NaN
        raise ValueError(f"{name}={shown(timeout)} is out of range; give seconds >= 0, or None to wait for ever")
    return float(timeout)


def shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an int of {value.bit_length():,} bits"  # repr() of a very long one is an error of its own
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def check_bool(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name}={shown(value)} is of the type {type(value).__name__}; give True or False")
    return value


def check_int(value: object, name: str, low: int, high: int, remedy: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}={shown(value)} is of the type {type(value).__name__}; {remedy}")
    number = operator.index(value)
    if not low <= number <= high:
        raise ValueError(f"{name}={shown(number)} is out of range, {low:,} to {high:,}; {remedy}")
    return number


def check_seconds(value: object, name: str, remedy: str, *, positive: bool = False) -> float:
    """A duration as a float >= 0 (`positive`: above 0). One of 1e9 s (31 years) and more, infinity too, becomes NEVER.

    Raises ValueError for a negative one or NaN, TypeError for anything that is no number; a bool is none.
    """
    if type(value) is not float and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
        raise TypeError(f"{name}={shown(value)} is of the type {type(value).__name__}; {remedy}")
    number: Any = value  # Real has no comparisons with float in its stub
    if number >= FOREVER:  # before float(): an int may be too large for it
        return NEVER
    if not (number > 0 if positive else number >= 0):  # so also for NaN
        raise ValueError(f"{name}={shown(value)} is out of range; {remedy}")
    return float(number)


def check_choice(value: object, name: str, choices: Sequence[str], none: str | None = None) -> str:
    """One of the texts; `none` stands for None, where that is a choice, too.

    Raises TypeError for another type, ValueError for another text.
    """
    remedy = "give " + ", ".join(map(repr, choices)) + ("" if none is None else ", or None")
    if value is None and none is not None:
        return none
    if not isinstance(value, str):
        raise TypeError(f"{name}={shown(value)} is of the type {type(value).__name__}; {remedy}")
    if value not in choices:
        raise ValueError(f"{name}={shown(value)} is none of the choices; {remedy}")
    return value
