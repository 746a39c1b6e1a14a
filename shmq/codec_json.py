"""JSON bodies, strict: only what comes back equal and of the same types is taken.

The quick pass asks for the set of types in each container. Only when it or the encoder objects, a slow pass looks for
the place, for the error text.
"""

from __future__ import annotations

import json
import json.scanner
import math
import sys
from typing import Any, Final, NoReturn

from shmq.errors import DecodeError
from shmq.quantity import quantity

__all__ = ["SCANNER", "decode_finite_json", "decode_json", "encode_json", "encode_text", "refuse"]

# Python's own limit for int from and to text, by default. Not the one in force here: the reader's process has its own.
_MAX_INT_DIGITS: Final = 4_300
_INT_LIMIT: Final = 10**_MAX_INT_DIGITS
# The decoder recurses, and the reader may stand deep in its own calls. A cycle shows as depth, too.
_MAX_DEPTH: Final = 256

_LEAVES: Final = frozenset({str, int, float, bool, type(None)})
_CONTAINERS: Final = frozenset({list, dict})
_KEYS: Final = frozenset({str})
_PICKLE: Final = 'open the queue with codec="pickle"'

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode


def encode_json(body: Any) -> bytes:
    """The body as compact JSON in UTF-8.

    Raises TypeError naming place and remedy for what would not come back equal.
    """
    if not _is_plain(body):
        _refuse_body(body)
    try:
        text = _encode(body).encode()
    except ValueError:  # NaN, infinity, an int of too many digits, a lone surrogate
        _refuse_body(body)
    if len(text) > _MAX_INT_DIGITS and not 0 < sys.get_int_max_str_digits() <= _MAX_INT_DIGITS:
        _look(body, "body", 1)  # the limit is off or higher here, so the encoder took what a reader may not take
    return text


def encode_text(body: str) -> bytes:
    """The text in UTF-8; TypeError for a lone surrogate."""
    try:
        return body.encode()
    except UnicodeEncodeError:
        _refuse_body(body)


def decode_json(data: memoryview) -> Any:
    """The value that the JSON text stands for.

    Raises DecodeError for anything that is no JSON in UTF-8.
    """
    return _decoded(data, _DECODER)


def decode_finite_json(data: memoryview) -> Any:
    """The same for JSON that somebody wrote: Python reads 1e999 as infinity, which no JSON could be written of again.

    Slower for floats than decode_json. Raises DecodeError.
    """
    return _decoded(data, _FINITE_DECODER)


def _decoded(data: memoryview, decoder: json.JSONDecoder) -> Any:
    try:
        return decoder.decode(str(data, "utf-8"))
    except (ValueError, RecursionError) as error:
        raise DecodeError(
            "the body is not JSON, as its content type says",
            figures=f"{error}, {quantity(len(data), 'byte')}",
            remedy="m.view() gives its bytes; look at the program that put it",
        ) from error


def refuse(place: str, what: str, remedy: str) -> NoReturn:
    """Raises the TypeError for a body that the codec does not take."""
    raise TypeError(f"{place} is {what} and would not come back equal; {remedy}")


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text:.40} is beyond all floats")
    return number


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)
# The part of it that is written in C, for the native core: it reads bodies with it, without a frame of Python.
SCANNER: Final[Any] = vars(_DECODER)["scan_once"] if getattr(json.scanner, "c_make_scanner", None) else None
_FINITE_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def _is_plain(value: Any, depth: int = 1) -> bool:
    """Whether all types in it are JSON's very own; their values are left to the encoder."""
    kind = type(value)
    if kind is dict:
        if not _KEYS.issuperset(map(type, value)):
            return False
        items = value.values()
    elif kind is list:
        items = value
    else:
        return kind in _LEAVES
    if depth > _MAX_DEPTH:
        return False
    kinds = set(map(type, items)) - _LEAVES
    if not kinds:
        return True
    if not kinds <= _CONTAINERS:
        return False
    # No all(): its generator would take a second frame of Python's stack at each level.
    for item in items:  # noqa: SIM110
        if type(item) in _CONTAINERS and not _is_plain(item, depth + 1):
            return False
    return True


# ---- the slow pass ---------------------------------------------------------------------------------------------


def _refuse_body(body: Any) -> NoReturn:
    _look(body, "body", 1)
    raise TypeError(f"the body cannot be written as JSON; {_PICKLE}")  # it changed under way, or a limit was set lower


def _look(value: Any, place: str, depth: int) -> None:
    """Raises the TypeError for the first fault, if there is one."""
    kind = type(value)
    if kind is list or kind is dict:
        if depth > _MAX_DEPTH:
            place = f"{place[:40]}..."
            refuse(place, f"nested deeper than {_MAX_DEPTH} levels, or in itself,", f"make it flatter, or {_PICKLE}")
        items = enumerate(value) if kind is list else list(value.items())
        for key, item in items:
            if kind is dict:
                _look_at_key(key, place)
            _look(item, f"{place}[{_shown(key)}]", depth + 1)
    elif kind is str:
        _look_at_text(value, place, "")
    elif kind is float:
        if not math.isfinite(value):
            refuse(place, f"{value}, which JSON does not have,", f"use None, or {_PICKLE}")
    elif kind is int:
        if not -_INT_LIMIT < value < _INT_LIMIT:
            refuse(place, f"an int of more than {_MAX_INT_DIGITS:,} digits", f"use bytes or hex(), or {_PICKLE}")
    elif value is not None and kind is not bool:
        refuse(place, f"of the type {_name(kind)}", f"use {_instead(value)}, or {_PICKLE}")


def _look_at_key(key: Any, place: str) -> None:
    if type(key) is not str:
        fault = f"a dict with a key of the type {_name(type(key))} ({_shown(key)})"
        refuse(place, fault, f"use str keys, or {_PICKLE}")
    _look_at_text(key, place, "a dict with a key that is ")


def _look_at_text(text: str, place: str, prefix: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        fault = f"{prefix}a str with the lone surrogate U+{ord(text[error.start]):04X} at {error.start}"
        refuse(place, fault, f'use bytes (s.encode("utf-8", "surrogateescape")), or {_PICKLE}')


def _shown(key: Any) -> str:
    text = ascii(key)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _instead(value: Any) -> str:
    """Names a form of this value that JSON has."""
    if isinstance(value, (tuple, set, frozenset, range)):
        return "a list"
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "item"):
        return "tolist()" if hasattr(value, "ndim") and value.ndim else "item()"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "base64 text, or put the bytes alone"
    for kind in (str, int, float, list, dict):
        if isinstance(value, kind):
            return f"a plain {kind.__name__}"
    return "dict, list, str, int, float, bool or None"
