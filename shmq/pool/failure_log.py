"""Logs failed attempts in the process that owns the pool."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from shmq.pool.report import Dead, Failed

__all__ = ["FailureLog"]

_LOG: Final = logging.getLogger("shmq.pool")


class FailureLog:
    """Logs each failed attempt: a line of warning while more attempts follow, an error with the traceback for the last.

    Arguments:
        queue: whose messages, for people.
        tracebacks: of all failed attempts.
    """

    def __init__(self, queue: str, tracebacks: bool) -> None:
        self._queue = queue
        self._tracebacks = tracebacks

    def tell(self, pid: int, failed: Failed) -> None:
        """Logs one.

        pid: the process in which it failed.
        """
        of = f" of {failed.limit}" if failed.limit else ""
        attempt = f"(attempt {failed.attempt}{of}, pid {pid})"
        extra = {"message_id": failed.message_id, "attempt": failed.attempt, "pid": pid}
        trace = f"\n{failed.text}" if (failed.final or self._tracebacks) and failed.text != failed.line else ""
        if failed.fate is None:
            level = logging.ERROR if failed.final else logging.WARNING
            self._log(level, f"failed {attempt}: {failed.line}{trace}", extra)
        else:
            self._log(logging.ERROR, f"is dead now {attempt}: {failed.line}; {failed.fate}{trace}", extra)

    def tell_dead(self, pid: int, dead: Dead) -> None:
        """Logs one that died of what no handler could report.

        pid: the process that has found it.
        """
        extra = {"message_id": dead.message_id, "pid": pid}
        self._log(logging.ERROR, f"is dead now ({dead.why}); {dead.fate}", extra)

    def _log(self, level: int, text: str, extra: dict[str, int]) -> None:
        words = (extra["message_id"], self._queue, text)
        _LOG.log(level, "message %d of queue %r %s", *words, extra={"queue": self._queue, **extra})
