"""Messages as they are printed: bodies as they are, in a line with headers, or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from shmq.cli.session import to_stdout
from shmq.cli.text import escaped
from shmq.codec import CONTENT_TYPES, JSON, PICKLE
from shmq.codec_json import decode_finite_json
from shmq.errors import DecodeError
from shmq.quantity import quantity
from shmq.statistics import as_json

if TYPE_CHECKING:
    from shmq.cli.session import Session
    from shmq.engine.message.message import Message
    from shmq.headers import Header

__all__ = ["printer", "record"]

_ARRAY = "application/x-numpy"


def _text_of(message: Message[Any], data: bytes) -> str | None:
    """The body as text; None: it is none."""
    if message.content_type in (_ARRAY, CONTENT_TYPES[PICKLE]):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _summary(message: Message[Any]) -> str:
    """The text that stands for a body that is no text."""
    if message.content_type == _ARRAY:
        array = message.array()
        shape = " x ".join(map(str, array.shape)) or "0 dimensions"
        return f"<array of {array.dtype}, {shape}, {quantity(message.size, 'byte')}>"
    return f"<{quantity(message.size, 'byte')}, {message.content_type}>"


def _headers_line(headers: Mapping[str, Header]) -> str:
    def shown(value: Header) -> str:
        text = repr(value) if isinstance(value, bytes) else str(value)
        return escaped(text, line=True)

    return " ".join(f"{escaped(name, line=True)}={shown(value)}" for name, value in headers.items())


def record(message: Message[Any]) -> dict[str, Any]:
    """The message for --json. A body that is no text, or no JSON as it says, is in `body_base64` instead of `body`."""
    data = bytes(message.view())
    fields: dict[str, Any] = {
        "queue": message.queue.name,
        "id": message.id,
        "position": message.position,
        "content_type": message.content_type,
        "size": message.size,
        "enqueued_at": message.enqueued_at,
        "redelivered": message.redelivered,
        "delivery_count": message.delivery_count,
        "priority": message.priority,
        "group": message.group,
        "expires_at": message.expires_at,
        "headers": {name: _plain(value) for name, value in message.headers.items()},
        "death": None if message.death is None else as_json(message.death),
    }
    text = _text_of(message, data)
    if text is None:
        return fields | {"body_base64": _base64(data)}
    if message.content_type != CONTENT_TYPES[JSON]:
        return fields | {"body": text}
    try:
        return fields | {"body": decode_finite_json(memoryview(data))}
    except DecodeError:  # a codec of the user's wrote it
        return fields | {"body_base64": _base64(data)}


def _plain(value: Header) -> Any:
    return {"base64": _base64(value)} if isinstance(value, bytes) else value


def _front(message: Message[Any]) -> str:
    """The text that --headers prints before the body."""
    parts = [str(message.position)]
    if message.headers:
        parts.append(_headers_line(message.headers))
    if message.death is not None:
        parts.append(f"death={message.death.reason}")
    return "  ".join(parts) + "  "


def _base64(data: bytes) -> str:
    import binascii

    return binascii.b2a_base64(data, newline=False).decode()


def printer(session: Session, *, raw: bool = False, headers: bool = False) -> Callable[[Message[Any]], None]:
    """A function that prints a message and returns when it is written."""
    if session.json:
        return lambda message: session.line(record(message))
    terminal = sys.stdout.isatty()
    out = sys.stdout.buffer

    def write(message: Message[Any]) -> None:
        data = bytes(message.view())
        front = _front(message).encode("utf-8", "backslashreplace") if headers else b""
        if not raw:
            text = _text_of(message, data)
            if text is None:
                data = _summary(message).encode()
            elif terminal:
                data = escaped(text).encode()
            data += b"\n"
        with to_stdout():
            out.write(front + data)
            out.flush()

    return write
