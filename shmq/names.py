"""Names of queues and places of brokers: what is allowed, and how a path becomes a URL and back."""

from __future__ import annotations

import os
import re
from typing import Final

__all__ = ["MAX_NAME_BYTES", "broker_url", "check_queue_name", "parse_broker_path"]

MAX_NAME_BYTES: Final = 200

_SCHEME: Final = "shmq:"
_SHOWN_CHARACTERS: Final = 40
# Patterns are compiled by re when first needed: importing shmq shall be quick.
_FORBIDDEN: Final = "[\x00-\x1f\x7f-\x9f/]"
_ANY_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]*://"
_ESCAPE: Final = rb"%([0-9A-Fa-f]{2})"
_BAD_ESCAPE: Final = r"%(?![0-9A-Fa-f]{2})"
_UNESCAPED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def _shown(text: str) -> str:
    """Quotes a name for an error text; abbreviates a long one."""
    if len(text) <= _SHOWN_CHARACTERS:
        return ascii(text) if not text.isprintable() else repr(text)
    return f"{_shown(text[:_SHOWN_CHARACTERS])}... ({len(text):,} characters)"


def check_queue_name(name: str, *, noun: str = "queue") -> bytes:
    """The name of a queue (or exchange) as the bytes under which the broker keeps it.

    Arguments:
        name: 1 to 200 bytes of UTF-8, no control characters, no "/".
        noun: what it is a name of, for the error text.

    Raises ValueError naming the fault, TypeError if it is no str.

    Example:
        >>> check_queue_name("orders")
        b'orders'
    """
    if not isinstance(name, str):
        raise TypeError(f"the {noun} name is a str, not {type(name).__name__}; give text, such as 'orders'")
    if not name:
        raise ValueError(f"the {noun} name is empty; give 1 to {MAX_NAME_BYTES} bytes of text")
    # Looked at first, so that a name of megabytes is not searched: a character takes a byte or more.
    if len(name) > MAX_NAME_BYTES:
        raise ValueError(
            f"the {noun} name {_shown(name)} is too long: "
            f"at most {MAX_NAME_BYTES} bytes of UTF-8; shorten it, and put the rest into headers"
        )
    if bad := re.search(_FORBIDDEN, name):
        fault = '"/"' if bad[0] == "/" else f"the control character U+{ord(bad[0]):04X}"
        raise ValueError(f'the {noun} name {_shown(name)} has {fault}; leave it out, "." is fine as a separator')
    try:
        encoded = name.encode()
    except UnicodeEncodeError as error:
        surrogate = ord(name[error.start])
        raise ValueError(
            f"the {noun} name {_shown(name)} has the lone surrogate U+{surrogate:04X}; use text that UTF-8 holds"
        ) from None
    if len(encoded) > MAX_NAME_BYTES:
        raise ValueError(
            f"the {noun} name {_shown(name)} is too long: {len(encoded)} bytes of UTF-8, "
            f"at most {MAX_NAME_BYTES}; shorten it, and put the rest into headers"
        )
    return encoded


def parse_broker_path(path: str | os.PathLike[str]) -> str:
    """The absolute directory of a broker, from a path or a URL "shmq:///abs/dir".

    A relative path is taken from the current directory; a URL must be absolute, has neither host nor query, and its
    percent escapes are decoded. The directory need not exist.

    Raises ValueError naming the fault, TypeError if it is neither str nor a path of text.

    Example:
        >>> parse_broker_path("shmq:///var/lib/my%20shop")
        '/var/lib/my shop'
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise TypeError(f"a broker's path is a str or a path of text, not {type(text).__name__}; use os.fsdecode()")
    if not text:
        raise ValueError('a broker\'s path is empty; give a directory, "." for the current one')
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError(f"the broker's path {_shown(text)} cannot be a file's name; use other characters") from None
    if text[: len(_SCHEME)].lower() == _SCHEME:
        if text is not path:
            raise ValueError(f"the path object {_shown(text)} holds a URL and has lost slashes; give the URL as str")
        text = _parse_url(text)
    elif scheme := re.match(_ANY_SCHEME, text):
        raise ValueError(f"{_shown(text)} has the scheme {scheme[0]!r}; give a directory, or shmq:///abs/dir")
    if "\0" in text:  # looked at last: a URL may have brought it as %00
        raise ValueError(f"the broker's path {_shown(text)} has a null character; leave it out")
    # abspath keeps two leading slashes, which POSIX allows to mean something else: one directory, one spelling.
    return "/" + os.path.abspath(text).lstrip("/")


def _parse_url(url: str) -> str:
    rest = url[len(_SCHEME) :]
    if not rest.startswith("//"):
        raise ValueError(f"the URL {_shown(url)} is relative; write shmq:///abs/dir, or ./shmq:... for a path")
    host, slash, directory = rest[2:].partition("/")
    if host:
        raise ValueError(f"the URL {_shown(url)} has the host {_shown(host)}; brokers are local, write shmq:///abs/dir")
    if not slash:
        raise ValueError(f"the URL {_shown(url)} has no directory; write shmq:///abs/dir")
    for mark, noun, escape in ("?", "a query", "%3F"), ("#", "a fragment", "%23"):
        if mark in directory:
            raise ValueError(
                f"the URL {_shown(url)} has {noun}; options are arguments of open(). A {mark!r} in a name is {escape}"
            )
    if re.search(_BAD_ESCAPE, directory):
        raise ValueError(f"the URL {_shown(url)} has a malformed percent escape; a '%' in a name is %25")
    return "/" + os.fsdecode(re.sub(_ESCAPE, lambda match: bytes.fromhex(match[1].decode()), os.fsencode(directory)))


def broker_url(path: str) -> str:
    """The URL of a broker's directory; `parse_broker_path` gives the directory back.

    Arguments:
        path: an absolute directory.

    Raises ValueError for a relative one.

    Example:
        >>> broker_url("/var/lib/my shop")
        'shmq:///var/lib/my%20shop'
    """
    if not path.startswith("/"):
        raise ValueError(
            f"the directory {_shown(path)} is relative; a URL needs an absolute one, use os.path.abspath()"
        )
    quoted = "".join(chr(byte) if byte in _UNESCAPED else f"%{byte:02X}" for byte in os.fsencode(path))
    return f"{_SCHEME}//{quoted}"
