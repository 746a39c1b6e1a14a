"""The token by which a gateway knows its callers: the first line of a file."""

from __future__ import annotations

import hmac
import os
import stat
from collections.abc import Mapping
from typing import Any, Final

import pyarrow.flight as flight

__all__ = ["BearerToken", "TokenCheck", "read_token"]

_LEAST: Final = 16  # characters; fewer can be guessed


def read_token(path: str, *, private: bool = True) -> str:
    """Reads the token from a file.

    Arguments:
        path: of the file.
        private: it must not be readable for others.

    Raises ValueError that names the file and the remedy, OSError.
    """
    with open(path, encoding="utf-8") as file:
        mode = os.fstat(file.fileno()).st_mode
        if private and stat.S_IMODE(mode) & 0o077:
            raise ValueError(
                f"the token in {path} can be read by others (mode {stat.S_IMODE(mode):04o}); chmod 600 {path}"
            )
        token = file.readline().strip()
    if len(token) < _LEAST or not token.isascii() or not token.isprintable():
        raise ValueError(
            f"{path} holds no token: {_LEAST} printable ASCII characters are the least; make one: "
            f"python3 -c 'import secrets; print(secrets.token_urlsafe())' > {path}"
        )
    return token


class TokenCheck(flight.ServerMiddlewareFactory):
    """Refuses every call without the token."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    def start_call(self, info: Any, headers: Mapping[str, list[Any]]) -> None:
        found = headers.get("authorization") or [""]
        given = found[0] if isinstance(found[0], bytes) else str(found[0]).encode()
        if not hmac.compare_digest(given, self._expected):
            raise flight.FlightUnauthenticatedError("no token, or a wrong one")


class BearerToken(flight.ClientMiddlewareFactory):
    """Sends the token with every call."""

    def __init__(self, token: str) -> None:
        self._token = token

    def start_call(self, info: Any) -> flight.ClientMiddleware:
        return _Bearer(self._token)


class _Bearer(flight.ClientMiddleware):
    def __init__(self, token: str) -> None:
        self._token = token

    def sending_headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._token}"}
