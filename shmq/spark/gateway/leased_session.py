"""The gateway's side of a conversation with a planner or a publisher on another host.

It lasts as long as the stream of calls does. When the caller's process dies its connection ends, and with it the
session: what it held is free for the next one. A caller whose host has vanished without a word is silent, too; its
pings fail to come, and the session ends after LEASE seconds.
"""

from __future__ import annotations

import abc
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from shmq.spark.gateway.gateway_error import GatewayError

__all__ = ["LEASE", "PING", "LeasedSession"]

LEASE: Final = 30.0  # seconds without a word after which a session ends
PING: Final = 5.0  # seconds between two pings of a caller that has nothing to ask


class LeasedSession(abc.ABC):
    """Answers the calls of one caller, one at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = False
        self._heard = time.monotonic()

    @abc.abstractmethod
    def _answer(self, call: str, said: Mapping[str, Any]) -> Any:
        """Returns the answer for the caller. Raises the error that the caller shall raise."""

    @abc.abstractmethod
    def _end(self) -> None:
        """Gives up what the session holds."""

    def answer(self, call: str, said: Mapping[str, Any]) -> Any:
        """Raises GatewayError when the session has ended; else what the call raises."""
        with self._lock:
            if self._ended:
                raise GatewayError(
                    "the session has ended",
                    figures=f"nothing was heard of its caller for {LEASE:g} s",
                    remedy="start the query again from its checkpoint: nothing is lost",
                )
            try:
                return None if call == "ping" else self._answer(call, said)
            finally:
                self._heard = time.monotonic()

    def close(self) -> None:
        """Ends the session: what it held is free for the next caller."""
        with self._lock:
            if not self._ended:
                self._ended = True
                self._end()

    def end_if_silent(self, now: float) -> bool:
        """Ends a session of which nothing was heard for LEASE seconds; not one that is at work."""
        if now - self._heard < LEASE or self._lock.locked():
            return False
        self.close()
        return True
