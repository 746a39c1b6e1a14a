"""The key of what a broker writes to disk: where it comes from, and how far it travels."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

__all__ = ["KEY_BYTES", "EncryptionKey", "check_encryption_key"]

KEY_BYTES: Final = 32
_FILE_MAX: Final = 4096
_REMEDY: Final = f"give {KEY_BYTES} random ones, such as secrets.token_bytes({KEY_BYTES})"


class EncryptionKey:
    """A key that was given. Never printed.

    It is pickled for a child that multiprocessing starts, through the pipe between the two. Otherwise only the name of
    its file is pickled. If it has none, None comes out.

    Arguments:
        value: the key; None: the file is read when the key is needed.
        path: of the file that it was read from, absolute; None: it was given as bytes.
    """

    def __init__(self, value: bytes | None, path: str | None = None) -> None:
        self._value = value
        self.path = path

    @property
    def value(self) -> bytes:
        """The key. Raises OSError, ValueError for a file that cannot be read, or holds none."""
        if self._value is None:
            assert self.path is not None
            self._value = _of_path(self.path)
        return self._value

    def __repr__(self) -> str:
        return f"<EncryptionKey{f' of {self.path}' if self.path else ''}>"

    def __reduce__(self) -> tuple[Any, ...]:
        starting = sys.modules.get("multiprocessing.context")
        if starting is not None and starting.get_spawning_popen() is not None:
            with suppress(OSError, ValueError):  # a file that was never read, and is not there any more
                return EncryptionKey, (self.value, self.path)  # the file may hold another key by now
        return (_left_behind, ()) if self.path is None else (EncryptionKey, (None, self.path))


def _left_behind() -> None:
    """A key becomes None in a pickle, which may lie anywhere."""


def check_encryption_key(given: bytes | str | os.PathLike[str] | Callable[[], bytes]) -> EncryptionKey:
    """The key.

    Arguments:
        given: the bytes; the path of a file that holds them, or 64 hexadecimal digits; a function that returns them.

    Raises TypeError, ValueError for what is no key, OSError for a file that cannot be read.
    """
    if isinstance(given, str | os.PathLike):
        path = os.path.abspath(os.fspath(given))
        return EncryptionKey(_of_path(path), path)
    if callable(given):
        given = given()
    if not isinstance(given, bytes | bytearray | memoryview):
        raise TypeError(
            f"encryption_key is of the type {type(given).__name__}; give bytes, the path of a file, or a function "
            "that returns bytes"
        )
    value = bytes(given)
    if len(value) != KEY_BYTES:
        raise ValueError(f"encryption_key has {len(value)} bytes, not {KEY_BYTES}; {_REMEDY}")
    return EncryptionKey(value)


def _of_path(path: str) -> bytes:
    with open(path, "rb") as file:
        return _of_file(file.read(_FILE_MAX), path)


def _of_file(content: bytes, path: str) -> bytes:
    if len(content) == KEY_BYTES:
        return content
    try:
        value = bytes.fromhex(content.decode("ascii"))
    except ValueError:
        value = b""
    if len(value) != KEY_BYTES:
        raise ValueError(
            f"the file {path} holds no key: {len(content)} bytes; it has to hold {KEY_BYTES} random bytes, or "
            f"{2 * KEY_BYTES} hexadecimal digits, as of: openssl rand -hex {KEY_BYTES}"
        )
    return value
