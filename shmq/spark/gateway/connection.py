"""Connections of a gateway: how many calls there are at once, and how one is ended whose caller is silent.

Flight gives each call a thread, also one that waits for its caller, and has no way to end a call from this side.
"""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

import pyarrow.flight as flight

__all__ = ["MOST_CALLS", "CallLimit", "hang_up"]

MOST_CALLS: Final = 256  # at once: sessions of planners, and tasks that read and write
_PEER: Final = re.compile(r"ipv[46]:\[?([^\]]*)\]?:(\d+)")


class CallLimit(flight.ServerMiddlewareFactory):
    """Refuses a call beside MOST_CALLS others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls = 0

    def start_call(self, info: Any, headers: Mapping[str, list[Any]]) -> flight.ServerMiddleware:
        with self._lock:
            if self._calls >= MOST_CALLS:
                raise flight.FlightUnavailableError(
                    f"the gateway has {MOST_CALLS} calls in hand, which are the most; try again later"
                )
            self._calls += 1
        return _Call(self)

    def end_call(self) -> None:
        with self._lock:
            self._calls -= 1


class _Call(flight.ServerMiddleware):
    def __init__(self, limit: CallLimit) -> None:
        self._limit = limit

    def call_completed(self, exception: Any) -> None:
        self._limit.end_call()


def hang_up(peer: str) -> None:
    """Ends the connection with a peer, and so the calls that wait for it.

    Arguments:
        peer: as Flight tells it, such as ipv4:10.0.0.7:41234.
    """
    found = _PEER.fullmatch(unquote(peer))
    if found is None:
        return
    address = found[1], int(found[2])
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(name))) as connection:
                if connection.family in (socket.AF_INET, socket.AF_INET6) and _plain(connection) == address:
                    connection.shutdown(socket.SHUT_RDWR)
        except OSError:  # closed meanwhile, or not connected
            continue


def _plain(connection: socket.socket) -> tuple[str, int]:
    host, port, *_ = connection.getpeername()
    return host.removeprefix("::ffff:"), port
