"""Logs dead messages: of each queue the first one at once, then once a second how many more."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import Final

from shmq.core import clock
from shmq.error_text import last_line
from shmq.quantity import quantity
from shmq.wait_time import DEAD_LETTERS_TOLD

__all__ = ["DeathLog"]

_LOG: Final = logging.getLogger("shmq.broker")

_Dead = tuple[str, int, str, str | None, str, Exception | None]  # what tell() is given


@dataclass(slots=True)
class _Told:
    """The state of one queue in the log: its last line, and the deaths since."""

    at: float
    more: int = 0
    last: _Dead | None = None


class DeathLog:
    """The log of this process about dead messages: a line a second of each queue, however many die."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, bool], _Told] = {}
        self._lock = threading.RLock()  # reentrant: the handler of a signal may settle messages

    def tell(
        self, queue: str, message_id: int, reason: str, error: str | None, target: str, full: Exception | None = None
    ) -> None:
        """Logs the death of a message: in a line of its own, or as a part of the next count.

        Arguments:
            queue: where.
            message_id: of the message.
            reason: as in Death.
            error: as in Death.
            target: the queue for the dead.
            full: why it is not there yet; such ones are told and counted by themselves.
        """
        if not _LOG.isEnabledFor(logging.WARNING):
            return
        key, now, dead = (queue, full is None), clock.monotonic(), (queue, message_id, reason, error, target, full)
        with self._lock:
            told = self._told.get(key)
            if told is not None and (told.more or now < told.at + DEAD_LETTERS_TOLD):
                told.more += 1
                told.last = dead
                if now < told.at + DEAD_LETTERS_TOLD:
                    return
            self._told[key] = _Told(now)
        _say(dead, told.more if told is not None else 0, now - told.at if told is not None else 0)

    def tell_rest(self, *, now: bool = False) -> None:
        """Logs the counts whose second is over; now: logs all counts."""
        due: list[tuple[_Dead, int, float]] = []
        with self._lock:
            at = clock.monotonic()
            over = [key for key, told in self._told.items() if now or at >= told.at + DEAD_LETTERS_TOLD]
            for key, told in [(key, self._told.pop(key)) for key in over]:
                if told.last is not None:
                    due.append((told.last, told.more, at - told.at))
                    self._told[key] = _Told(at)
        for one in due:
            _say(*one)

    def forget(self) -> None:
        """Forgets the counts: in a forked child they are the parent's to log."""
        self._told, self._lock = {}, threading.RLock()


def _say(dead: _Dead, more: int, seconds: float) -> None:
    """Writes a line about one message; or (more) about so many, of which this one is the last."""
    queue, message_id, reason, error, target, full = dead
    why = f"({reason}: {last_line(error)})" if error else f"({reason})"
    if more:
        died = f"{quantity(more, 'more message')} of queue {queue!r} died in {seconds:.1f} s, the last one"
        text = f"{died} message {message_id} {why}"
    else:
        text = f"message {message_id} of queue {queue!r} is dead {why}"
    fate = f", but it cannot go among the dead: {full}; it is tried again" if full else f"; it went to queue {target!r}"
    extra = {"queue": queue, "message_id": message_id, "reason": reason, "error": error, "count": more or 1}
    _LOG.warning("%s%s", text, fate, extra=extra)
