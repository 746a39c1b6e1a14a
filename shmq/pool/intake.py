"""Takes messages until a signal or another thread asks to stop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from shmq.core.handles import was_closed
from shmq.errors import Closed

if TYPE_CHECKING:
    from shmq.engine.message.message import Message
    from shmq.engine.queue.queue import Queue

__all__ = ["Intake"]


class _Stopped(BaseException):
    """Raised by a signal handler, and only while the thread waits for a message: it ends that wait."""


class Intake:
    """A consumer whose wait can be ended from outside. The message in hand is never disturbed.

    Belongs to the thread that made it; stop() may be called by any thread, and by a signal handler of that thread.
    """

    def __init__(self, queue: Queue[Any], selector: str | None) -> None:
        self._consumer = queue.consumer(selector=selector)
        self._thread = threading.get_ident()
        self._lock = threading.Lock()  # never taken by the signal handler
        self._waiting = False
        self.stopping = False

    def stop(self) -> None:
        """Stops the intake: it takes no more messages, and a wait for one ends."""
        self.stopping = True
        if threading.get_ident() == self._thread:
            if self._waiting:
                self._waiting = False
                raise _Stopped
            return
        with self._lock:
            if self._waiting:
                self._consumer.close()  # a message that came in this very moment goes back, uncounted

    def next(self, timeout: float | None) -> Message[Any] | None:
        """Returns the next message; None: stopped. Raises Empty after `timeout` seconds, ShutDown, NotFound."""
        consumer = self._consumer
        try:
            with self._lock:
                if self.stopping:
                    return None
                self._waiting = True
            try:
                message = consumer.receive(timeout=timeout)
            finally:
                with self._lock:
                    self._waiting = False
        except _Stopped:
            return None
        except Closed:
            if not consumer.closed or not self._is_stopping():
                raise
            return None
        return None if was_closed(consumer) else message

    def _is_stopping(self) -> bool:
        return self.stopping

    def close(self) -> None:
        """Closes the consumer. A second call does nothing."""
        self._consumer.close()
