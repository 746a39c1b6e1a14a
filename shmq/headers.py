"""The block of headers that stands before a body: what the user gave, and two fields of shmq's own.

A block is one compact JSON object in UTF-8, b"" if there is nothing to say. User headers lie in it by name, bytes as
{"b": base64}. Names that start with "shmq-" are refused at put, so shmq's own fields lie beside them:

    "shmq-content-type": text                                        of a body whose content code is 255
    "shmq-death": [queue, reason, error, at, [pid, ...], signal]     of a dead message
"""

from __future__ import annotations

import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, get_args

from shmq.errors import DecodeError
from shmq.quantity import quantity
from shmq.statistics import Death, DeathReason

__all__ = [
    "MAX_BLOCK_BYTES",
    "MAX_USER_BYTES",
    "Header",
    "HeaderBlock",
    "check_content_type",
    "decode_headers",
    "encode_headers",
]

Header = str | int | float | bool | bytes | None

MAX_BLOCK_BYTES: Final = 65_535  # the slot's length of it has 16 bits
DEATH_RESERVE: Final = 1_024
MAX_USER_BYTES: Final = MAX_BLOCK_BYTES - DEATH_RESERVE  # so that a message that could be put can also be buried

_MAX_NAME_BYTES = 255
_MAX_ERROR_BYTES = 16_384
_MAX_PIDS = 16
_CONTENT_TYPE = "shmq-content-type"
_DEATH = "shmq-death"
_INT_LIMIT = 1 << 63
_REASONS = frozenset(get_args(DeathReason))

_encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class HeaderBlock:
    """A block decoded: the user's headers, read-only, and shmq's own fields."""

    user: Mapping[str, Header]
    content_type: str | None = None
    death: Death | None = None


_NOTHING = HeaderBlock(MappingProxyType({}))


def check_content_type(content_type: str) -> str:
    """The content type of a codec, if it can be kept in a header: 1 to 255 printable ASCII characters.

    Raises TypeError for anything but a str, ValueError for an unfit one.
    """
    if not isinstance(content_type, str):
        raise TypeError(f"a content type is a str, not {type(content_type).__name__}; such as 'application/x-protobuf'")
    if not 1 <= len(content_type) <= _MAX_NAME_BYTES or not (content_type.isascii() and content_type.isprintable()):
        raise ValueError(
            f"the content type {content_type[:40]!r} is unfit: {len(content_type)} characters, 1 to {_MAX_NAME_BYTES} "
            f"printable ASCII ones allowed; use a form such as 'application/x-protobuf'"
        )
    return content_type


def encode_headers(
    user: Mapping[str, Header] | None, *, content_type: str | None = None, death: Death | None = None
) -> bytes:
    """The block for these headers; b"" if there are none.

    Arguments:
        user: names (1 to 255 bytes, not starting with "shmq-" or "JMS") and values: str, int of 64 bits, finite float,
            bool, bytes or None, of these very types.
        content_type: of a body whose content code is 255.
        death: why the message is dead. Its error text is shortened where it does not fit, so that a message that could
            be put can always be encoded once more with a death.

    Raises TypeError for a header of another type and ValueError for a name, value or size out of range, both naming it.

    Guarantee: `decode_headers` gives back equal headers of the same types in the same order.
    """
    if not user and content_type is None and death is None:
        return b""
    fields: dict[str, Any] = {}
    if user:
        if not isinstance(user, Mapping):
            raise TypeError(f"headers are a mapping of names to values, not {type(user).__name__}; use a dict")
        for name, value in user.items():
            _check_name(name)
            fields[name] = _encode_value(name, value)
    if content_type is not None:
        fields[_CONTENT_TYPE] = check_content_type(content_type)
    block = _encode_json(fields).encode() if fields else b""
    if len(block) > MAX_USER_BYTES:
        name = max(fields, key=lambda name: len(_encode_json(fields[name])))
        raise ValueError(
            f"the headers are too large: {len(block):,} bytes encoded, at most {MAX_USER_BYTES:,}; "
            f"put what is long into the body, first of all {_shown(name)}"
        )
    return block if death is None else _with_death(fields, len(block), death)


def decode_headers(data: bytes | bytearray | memoryview) -> HeaderBlock:
    """The headers in a block.

    Raises DecodeError for a block that `encode_headers` cannot have made; whatever the bytes are, nothing else.
    """
    block = bytes(data)  # own copy first: what is shared may change between two looks
    if not block:
        return _NOTHING
    if len(block) > MAX_BLOCK_BYTES:
        raise _damaged(f"{len(block):,} bytes, at most {MAX_BLOCK_BYTES:,}")
    try:
        fields = _DECODER.decode(block.decode())
    except (ValueError, RecursionError) as error:
        raise _damaged(f"no JSON in {quantity(len(block), 'byte')}") from error
    if not isinstance(fields, _Pairs):
        raise _damaged("no JSON object")
    user: dict[str, Header] = {}
    content_type: str | None = None
    death: Death | None = None
    for name, value in fields.pairs:
        if name in user or not _is_text(name):
            raise _damaged(f"a name that is doubled or no text, {_shown(name)}")
        if name == _CONTENT_TYPE:
            content_type = _decode_content_type(value, content_type)
        elif name == _DEATH:
            death = _decode_death(value, death)
        elif name.startswith("shmq-"):
            raise _damaged(f"an unknown field {_shown(name)}")
        else:
            user[name] = _decode_value(name, value)
    return HeaderBlock(MappingProxyType(user), content_type, death)


# ---- user headers ----------------------------------------------------------------------------------------------


def _shown(name: str) -> str:
    return ascii(name) if len(name) <= 60 else f"{name[:60]!a}..."


def _is_text(text: object) -> bool:
    """Whether it is a str that UTF-8 can hold."""
    if type(text) is not str:
        return False
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _check_name(name: object) -> None:
    if type(name) is not str:
        raise TypeError(f"the name of a header is a str, not {type(name).__name__}: {name!r:.60}; use str()")
    if name.startswith(("shmq-", "JMS")):
        raise ValueError(f'the header {_shown(name)} has a reserved name, "shmq-..." or "JMS..."; choose another')
    if not _is_text(name):
        raise ValueError(f"the header {_shown(name)} has a lone surrogate in its name; use text that UTF-8 can hold")
    if not 1 <= (size := len(name.encode())) <= _MAX_NAME_BYTES:
        raise ValueError(
            f"the header {_shown(name)} has a name of {size:,} bytes, 1 to {_MAX_NAME_BYTES} allowed; choose another"
        )


def _encode_value(name: str, value: object) -> Any:
    # Exact types: a subclass (an IntEnum, a numpy scalar) would come back as something else than what went in.
    kind = type(value)
    if kind is str:
        if not _is_text(value):
            raise ValueError(f"the header {_shown(name)} has a lone surrogate; give bytes, or text that UTF-8 can hold")
        return value
    if value is None or kind is bool:
        return value
    if isinstance(value, int) and kind is int:
        if not -_INT_LIMIT <= value < _INT_LIMIT:
            raise ValueError(
                f"the header {_shown(name)} is an int of {value.bit_length()} bits, 64 allowed with the sign; use str()"
            )
        return value
    if isinstance(value, float) and kind is float:
        if not math.isfinite(value):
            raise ValueError(
                f"the header {_shown(name)} is {value}, only finite numbers are allowed; use None or str()"
            )
        return value
    if isinstance(value, bytes) and kind is bytes:
        return {"b": binascii.b2a_base64(value, newline=False).decode("ascii")}
    raise TypeError(
        f"the header {_shown(name)} is of the type {kind.__module__}.{kind.__qualname__}; "
        f"use str, int, float, bool, bytes or None"
    )


def _decode_value(name: str, value: Any) -> Header:
    kind = type(value)
    if value is None or kind is bool or (kind is str and _is_text(value)):
        return value  # type: ignore[no-any-return]
    if kind is int and -_INT_LIMIT <= value < _INT_LIMIT:
        return value  # type: ignore[no-any-return]
    if kind is float and math.isfinite(value):
        return value  # type: ignore[no-any-return]
    if kind is _Pairs and len(value.pairs) == 1 and value.pairs[0][0] == "b" and type(value.pairs[0][1]) is str:
        try:
            return binascii.a2b_base64(value.pairs[0][1], strict_mode=True)
        except ValueError as error:
            raise _damaged(f"no base64 in {_shown(name)}") from error
    raise _damaged(f"no value that a header can have in {_shown(name)}")


# ---- shmq's own fields -----------------------------------------------------------------------------------------


def _with_death(fields: dict[str, Any], size: int, death: Death) -> bytes:
    row: list[Any] = [death.queue, death.reason, None, float(death.at), list(death.pids[-_MAX_PIDS:]), death.signal]
    bare = _encode_json({**fields, _DEATH: row}).encode()
    if len(bare) > MAX_BLOCK_BYTES:  # a queue's name has at most 200 bytes: only a field that is no Death gets here
        raise ValueError(
            f"the death is too large: {len(bare) - size:,} bytes encoded; {DEATH_RESERVE:,} are kept for it"
        )
    if death.error is None:
        return bare
    # Tracebacks quote what was in the files; a surrogate in them must not keep the message from being buried.
    text = death.error.encode("utf-8", "backslashreplace").decode()
    room = min(_MAX_ERROR_BYTES, MAX_BLOCK_BYTES - len(bare))
    row[2] = _shortened(text, room)
    return _encode_json({**fields, _DEATH: row}).encode()


def _shortened(text: str, room: int) -> str | None:
    """The text, or its beginning and end, in at most `room` bytes of JSON; None if not even a few words fit."""
    keep = min(len(text), room)  # a character takes a byte or more: megabytes need not be encoded to see it
    shown = text if keep == len(text) else _ends(text, keep)
    while len(_encode_json(shown).encode()) > room:
        keep = keep * 3 // 4
        if keep < 16:
            return None
        shown = _ends(text, keep)
    return shown


def _ends(text: str, keep: int) -> str:
    # The end has the exception itself, the beginning says where it came from.
    head = keep // 4
    return f"{text[:head]} ... {text[-max(keep - head - 5, 1) :]}"


def _decode_content_type(value: Any, before: str | None) -> str:
    if before is not None or type(value) is not str:
        raise _damaged("a content type that is doubled or no text")
    try:
        return check_content_type(value)
    except ValueError as error:
        raise _damaged("an unfit content type") from error


def _decode_death(row: Any, before: Death | None) -> Death:
    if before is not None or type(row) is not list or len(row) != 6:
        raise _damaged("a death that is doubled or incomplete")
    queue, reason, error, at, pids, signal = row
    sound = (
        _is_text(queue)
        and type(reason) is str
        and reason in _REASONS
        and (error is None or _is_text(error))
        and type(at) is float
        and math.isfinite(at)
        and type(pids) is list
        and all(type(pid) is int and 0 <= pid < _INT_LIMIT for pid in pids)
        and (signal is None or (type(signal) is int and 0 <= signal < _INT_LIMIT))
    )
    if not sound:
        raise _damaged("a death with unfit fields")
    return Death(queue, reason, error, at, tuple(pids), signal)


# ---- reading JSON ----------------------------------------------------------------------------------------------


class _Pairs:
    """A JSON object as it stands, so that doubled names are seen."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=_refuse_constant)


def _damaged(figures: str) -> DecodeError:
    return DecodeError(
        "the headers of the message are damaged",
        figures=figures,
        remedy="m.view() gives the body; `shmq check` looks for more damage",
    )
