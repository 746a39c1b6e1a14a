"""The block of headers that stands before a body: what the user gave, and fields of shmq's own.

Bytes, little endian; b"" if there is nothing to say (docs/headers.md has an example, native/src/base/headers.h is
the other reader):

    version 1, U 2, U bytes of user headers, own fields to the end
    user header   length of the name 1, name, value
    value         kind 1, then: none 0, false 1, true 2: nothing; ints 3: 1, 4: 2, 5: 4, 6: 8; float 7: 8;
                  text 8, bytes 9: length 2, content
    own field     number 1, length 2, content: 1 content type (ASCII), 2 death (values: queue, reason, error, at,
                  signal, pid ...), 3 group (UTF-8), 4 routing key

Own fields stand apart, so no name of a user's header is in their way; a number that is not known is passed over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from struct import Struct
from struct import error as StructError
from types import MappingProxyType
from typing import Any, Final, NamedTuple, get_args

from shmq.death import Death, DeathReason
from shmq.errors import DecodeError
from shmq.quantity import quantity

__all__ = [
    "MAX_BLOCK_BYTES",
    "MAX_USER_BYTES",
    "Header",
    "HeaderBlock",
    "check_content_type",
    "decode_headers",
    "encode_headers",
    "encode_value",
    "with_death",
]

Header = str | int | float | bool | bytes | None

MAX_BLOCK_BYTES: Final = 65_535  # the slot's length of it has 16 bits
DEATH_RESERVE: Final = 1_024
MAX_USER_BYTES: Final = MAX_BLOCK_BYTES - DEATH_RESERVE  # so that a message that could be put can also be dead-lettered

_VERSION: Final = 1
_FIXED: Final = 3  # bytes before the first header
_NONE, _FALSE, _TRUE, _INT8, _INT16, _INT32, _INT64, _FLOAT, _TEXT, _BYTES = range(10)
_CONTENT_TYPE, _DEATH, _GROUP = 1, 2, 3
_NUMBERS: Final = {
    _INT8: Struct("<b"),
    _INT16: Struct("<h"),
    _INT32: Struct("<i"),
    _INT64: Struct("<q"),
    _FLOAT: Struct("<d"),
}
_PACK_INT8, _PACK_INT16 = Struct("<Bb").pack, Struct("<Bh").pack
_PACK_INT32, _PACK_INT64 = Struct("<Bi").pack, Struct("<Bq").pack
_PACK_FLOAT, _PACK_LENGTH = Struct("<Bd").pack, Struct("<BH").pack  # a kind or number, and what follows
_EMPTY: Final = _PACK_LENGTH(_VERSION, 0)  # a block without headers

_MAX_NAME_BYTES = 255
_MAX_ERROR_BYTES = 16_384
_MAX_PIDS = 16
_INT_LIMIT = 1 << 63
_RESERVED = ("shmq-", "JMS")
_REASONS = frozenset(get_args(DeathReason))


class HeaderBlock(NamedTuple):
    """A block decoded: the user's headers, read-only, and shmq's own fields."""

    user: Mapping[str, Header]
    content_type: str | None = None
    death: Death | None = None
    group: str | None = None


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
    user: Mapping[str, Header] | None,
    *,
    content_type: str | None = None,
    group: str | None = None,
    death: Death | None = None,
) -> bytes:
    """The block for these headers; b"" if there are none.

    Arguments:
        user: names (1 to 255 bytes, not starting with "shmq-" or "JMS") and values: str, int of 64 bits, finite float,
            bool, bytes or None, of these very types.
        content_type: of a body whose content code is 255.
        group: that the message belongs to, 1 to 255 bytes of UTF-8.
        death: why the message is dead. Its error text is shortened where it does not fit. So a message that could be
            put can always be encoded once more with a death.

    Raises TypeError for a header of another type and ValueError for a name, value or size out of range, both naming it.

    Guarantee: `decode_headers` gives back equal headers of the same types in the same order.
    """
    if not user and content_type is None and group is None and death is None:
        return b""
    headers: dict[str, bytes] = {}
    if user:
        if not isinstance(user, Mapping):
            raise TypeError(f"headers are a mapping of names to values, not {type(user).__name__}; use a dict")
        for name, value in user.items():
            headers[name] = _encode_name(name) + _encode_header(name, value)
    parts = [*headers.values()]
    size = sum(map(len, parts))
    if content_type is not None:
        parts.append(_own(_CONTENT_TYPE, check_content_type(content_type).encode()))
    if group is not None:
        parts.append(_own(_GROUP, _encode_group(group)))
    block = b"".join((_PACK_LENGTH(_VERSION, size & 0xFFFF), *parts))  # what has more bits is too large, see below
    if len(block) > MAX_USER_BYTES:
        name = max(headers, key=lambda name: len(headers[name]))
        raise ValueError(
            f"the headers are too large: {len(block):,} bytes encoded, at most {MAX_USER_BYTES:,}; "
            f"put long values into the body, first of all {_shown(name)}"
        )
    if death is None:
        return block
    where, why, error, at, pids, number = death.queue, death.reason, death.error, death.at, death.pids, death.signal
    return block + _encode_death(where, why, error, at, pids, number, MAX_BLOCK_BYTES - len(block))


def decode_headers(data: bytes | bytearray | memoryview) -> HeaderBlock:
    """The headers in a block.

    Raises DecodeError for a block that `encode_headers` cannot have made; whatever the bytes are, nothing else.
    """
    block = bytes(data)  # own copy first: what is shared may change between two looks
    if not block:
        return _NOTHING
    if len(block) > MAX_BLOCK_BYTES:
        raise _damaged(f"{len(block):,} bytes, at most {MAX_BLOCK_BYTES:,}")
    if block[0] != _VERSION or len(block) < _FIXED:
        raise _damaged(f"{quantity(len(block), 'byte')} that are no headers of version {_VERSION}")
    end = _FIXED + (block[1] | block[2] << 8)
    if end > len(block):
        raise _damaged(f"{end:,} bytes announced, {len(block):,} there")
    try:
        user = MappingProxyType(_decode_user(block, end))
        return HeaderBlock(user) if end == len(block) else HeaderBlock(user, **_decode_own(block, end))
    except (IndexError, StructError, UnicodeDecodeError) as error:
        raise _damaged(f"{quantity(len(block), 'byte')} that make no sense") from error


def with_death(
    block: bytes,
    queue: str,
    reason: str,
    error: str | None,
    at: float,
    pids: tuple[int, ...] = (),
    signal: int | None = None,
) -> bytes:
    """The same block with this death, whose fields are those of Death, in place of one that it has.

    Raises DecodeError for a damaged block, ValueError for one that is too large for a death.
    """
    if block:
        found = decode_headers(block)
        if found.death is not None:
            block = encode_headers(found.user, content_type=found.content_type, group=found.group)
    block = block or _EMPTY
    return block + _encode_death(queue, reason, error, at, pids, signal, MAX_BLOCK_BYTES - len(block))


def encode_value(value: Header) -> bytes:
    """One value that a header can have, as it stands in a block; the programs of selectors have such, too."""
    if isinstance(value, str):
        content = value.encode()
        return _PACK_LENGTH(_TEXT, len(content) & 0xFFFF) + content  # what has more bits is refused as a whole
    if value is None or isinstance(value, bool):
        return b"\0" if value is None else b"\2" if value else b"\1"
    if isinstance(value, int):
        if -0x80 <= value < 0x80:
            return _PACK_INT8(_INT8, value)
        if -0x8000 <= value < 0x8000:
            return _PACK_INT16(_INT16, value)
        if -0x8000_0000 <= value < 0x8000_0000:
            return _PACK_INT32(_INT32, value)
        return _PACK_INT64(_INT64, value)
    if isinstance(value, float):
        return _PACK_FLOAT(_FLOAT, value)
    return _PACK_LENGTH(_BYTES, len(value) & 0xFFFF) + value


# ---- user headers ----------------------------------------------------------------------------------------------


def _shown(name: str) -> str:
    return ascii(name) if len(name) <= 60 else f"{name[:60]!a}..."


@lru_cache(maxsize=512, typed=True)  # names are few, and the same in most messages
def _encode_name(name: object) -> bytes:
    if type(name) is not str:
        raise TypeError(f"the name of a header is a str, not {type(name).__name__}: {name!r:.60}; use str()")
    if name.startswith(_RESERVED):
        raise ValueError(f'the header {_shown(name)} has a reserved name, "shmq-..." or "JMS..."; choose another')
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        fault = f"the header {_shown(name)} has a lone surrogate in its name; use text that UTF-8 can hold"
        raise ValueError(fault) from None
    if not 1 <= (size := len(encoded)) <= _MAX_NAME_BYTES:
        raise ValueError(
            f"the header {_shown(name)} has a name of {size:,} bytes, 1 to {_MAX_NAME_BYTES} allowed; choose another"
        )
    return bytes((size,)) + encoded


def _encode_header(name: str, value: object) -> bytes:
    # Exact types: a subclass (an IntEnum, a numpy scalar) would come back as something else than what went in.
    kind = type(value)
    if isinstance(value, str) and kind is str:
        try:
            return encode_value(value)
        except UnicodeEncodeError:
            fault = f"the header {_shown(name)} has a lone surrogate; give bytes, or text that UTF-8 can hold"
            raise ValueError(fault) from None
    if isinstance(value, int) and kind is int:
        if -_INT_LIMIT <= value < _INT_LIMIT:
            return encode_value(value)
        raise ValueError(f"the header {_shown(name)} is beyond the integers of 64 bits, -2**63 to 2**63 - 1; use str()")
    if isinstance(value, float) and kind is float:
        if math.isfinite(value):
            return encode_value(value)
        raise ValueError(f"the header {_shown(name)} is {value}, only finite numbers are allowed; use None or str()")
    if value is None or kind is bool or kind is bytes:
        return encode_value(value)  # type: ignore[arg-type]
    raise TypeError(
        f"the header {_shown(name)} is of the type {kind.__module__}.{kind.__qualname__}; "
        f"use str, int, float, bool, bytes or None"
    )


@lru_cache(maxsize=512)
def _decode_name(content: bytes) -> str:
    name = str(content, "utf-8")
    if not name or name.startswith(_RESERVED):
        raise _damaged(f"a reserved name, {_shown(name)}")
    return name


def _decode_user(block: bytes, end: int) -> dict[str, Header]:
    user: dict[str, Header] = {}
    at = _FIXED
    value: Header
    while at < end:
        begin = at + 1
        at = begin + block[at]
        name = _decode_name(block[begin:at])
        if block[at] == _TEXT:  # the usual one, without a call
            begin = at + 3
            at = begin + (block[at + 1] | block[at + 2] << 8)
            value = str(block[begin:at], "utf-8")
        else:
            value, at = _decode_value(block, at)
        if at > end or name in user:
            raise _damaged(f"a header that is cut off or doubled, {_shown(name)}")
        user[name] = value
    return user


def _decode_value(block: bytes, at: int) -> tuple[Header, int]:
    """The value there, and where the next thing begins, which may be behind the end: then it was cut off."""
    kind = block[at]
    if kind >= _TEXT:
        begin = at + 3
        end = begin + (block[at + 1] | block[at + 2] << 8)
        content = block[begin:end]
        if kind > _BYTES:
            raise _damaged(f"no kind of value is {kind}")
        return (str(content, "utf-8") if kind == _TEXT else content), end
    if kind <= _TRUE:
        return (None if kind == _NONE else kind == _TRUE), at + 1
    number = _NUMBERS[kind]
    (value,) = number.unpack_from(block, at + 1)
    if kind == _FLOAT and not math.isfinite(value):
        raise _damaged(f"a header that is {value}")
    return value, at + 1 + number.size


# ---- shmq's own fields -----------------------------------------------------------------------------------------


def _own(number: int, content: bytes) -> bytes:
    return _PACK_LENGTH(number, len(content)) + content


def _encode_group(group: str) -> bytes:
    if type(group) is not str:
        raise TypeError(f"a group is a str, not {type(group).__name__}; use str()")
    try:
        content = group.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the group {_shown(group)} has a lone surrogate; use text that UTF-8 can hold") from None
    if not 1 <= len(content) <= _MAX_NAME_BYTES:
        raise ValueError(
            f"the group {_shown(group)} has {len(content):,} bytes, 1 to {_MAX_NAME_BYTES} allowed; shorten it"
        )
    return content


@lru_cache(maxsize=64)  # few queues, and few reasons
def _encode_where(queue: str, reason: str) -> bytes:
    return encode_value(queue) + encode_value(reason)


def _encode_death(
    queue: str, reason: str, error: str | None, at: float, pids: tuple[int, ...], signal: int | None, room: int
) -> bytes:
    """Encodes the field of a death in at most so many bytes."""
    before = _encode_where(queue, reason)
    after = _PACK_FLOAT(_FLOAT, at) + encode_value(signal)
    if pids:
        after += b"".join(map(encode_value, pids[-_MAX_PIDS:]))
    bare = _own(_DEATH, before + encode_value(None) + after)
    if len(bare) > room:  # a queue's name has at most 200 bytes: only a field that is no Death gets here
        raise ValueError(f"the death is too large: {len(bare):,} bytes encoded; {DEATH_RESERVE:,} are kept for it")
    if error is None:
        return bare
    # Tracebacks quote what was in the files; a surrogate in them must not keep the message from the dead letters.
    text = error.encode("utf-8", "backslashreplace").decode()
    shown = _shortened(text, min(_MAX_ERROR_BYTES, room - len(bare)))
    return _own(_DEATH, before + encode_value(shown) + after)


def _shortened(text: str, room: int) -> str | None:
    """The text, or its beginning and end, in at most `room` bytes as a value; None if not even a few words fit."""
    keep = min(len(text), room)  # a character takes a byte or more: megabytes need not be encoded to see it
    shown = text if keep == len(text) else _ends(text, keep)
    while len(shown.encode()) + 3 > room:
        keep = keep * 3 // 4
        if keep < 16:
            return None
        shown = _ends(text, keep)
    return shown


def _ends(text: str, keep: int) -> str:
    # The end has the exception itself, the beginning says where it came from.
    head = keep // 4
    return f"{text[:head]} ... {text[-max(keep - head - 5, 1) :]}"


def _decode_own(block: bytes, at: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    while at < len(block):
        number, begin = block[at], at + 3
        at = begin + (block[at + 1] | block[at + 2] << 8)
        if at > len(block):
            raise _damaged(f"the field {number} is cut off")
        name, decode = _OWN.get(number, (None, None))
        if name is None or decode is None:
            continue
        if name in fields:
            raise _damaged(f"a doubled {name}")
        fields[name] = decode(block[begin:at])
    return fields


def _decode_content_type(content: bytes) -> str:
    try:
        return check_content_type(str(content, "utf-8"))
    except ValueError as error:
        raise _damaged("an unfit content type") from error


def _decode_group(content: bytes) -> str:
    if not 1 <= len(content) <= _MAX_NAME_BYTES:
        raise _damaged(f"a group of {quantity(len(content), 'byte')}")
    return str(content, "utf-8")


def _decode_death(content: bytes) -> Death:
    values: list[Any] = []
    at = 0
    while at < len(content):
        value, at = _decode_value(content, at)
        values.append(value)
    if at > len(content) or len(values) < 5:
        raise _damaged("a death that is incomplete")
    queue, reason, error, when, signal, *pids = values
    sound = (
        type(queue) is str
        and type(reason) is str
        and reason in _REASONS
        and (error is None or type(error) is str)
        and type(when) is float
        and all(type(pid) is int and pid >= 0 for pid in pids)
        and (signal is None or (type(signal) is int and signal >= 0))
    )
    if not sound:
        raise _damaged("a death with unfit fields")
    return Death(queue, reason, error, when, tuple(pids), signal)


_OWN: Final = {
    _CONTENT_TYPE: ("content_type", _decode_content_type),
    _DEATH: ("death", _decode_death),
    _GROUP: ("group", _decode_group),
}


def _damaged(figures: str) -> DecodeError:
    return DecodeError(
        "the headers of the message are damaged",
        figures=figures,
        remedy="m.view() gives the body; `shmq check` looks for more damage",
    )
