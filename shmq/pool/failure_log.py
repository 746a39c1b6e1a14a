"""Failed attempts, in the log of the process that owns the pool."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from shmq.pool.report import Dead, Failed

__all__ = ["FailureLog"]

_LOG: Final = logging.getLogger("shmq.pool")
_KNOWN: Final = 10_000  # messages whose traceback was shown


class FailureLog:
    """Of each message: the first traceback, then a line for each further attempt, then one that says it is dead.

    Arguments:
        queue: whose messages, for people.
    """

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._shown: dict[int, None] = {}  # the oldest is forgotten first, and shown once more

    def tell(self, pid: int, failed: Failed) -> None:
        """Logs one.

        pid: the process in which it failed.
        """
        first = failed.message_id not in self._shown
        of = f" of {failed.limit}" if failed.limit else ""
        attempt = f"attempt {failed.attempt}{of}, pid {pid}"
        last_line = failed.text.rpartition("\n")[2]
        if first:
            self._error(pid, failed, f"failed ({attempt})\n{failed.text}")
        elif failed.fate is None:
            self._error(pid, failed, f"failed again ({attempt}): {last_line}")
        if failed.fate is not None:
            self._error(pid, failed, f"is dead now ({attempt}): {last_line}; {failed.fate}")
            self._shown.pop(failed.message_id, None)
        elif first:
            self._shown[failed.message_id] = None
            if len(self._shown) > _KNOWN:
                del self._shown[next(iter(self._shown))]

    def tell_dead(self, pid: int, dead: Dead) -> None:
        """Logs one that died of what no handler could report.

        pid: the process that has found it.
        """
        self._shown.pop(dead.message_id, None)
        self._log(f"is dead now ({dead.why}); {dead.fate}", {"message_id": dead.message_id, "pid": pid})

    def _error(self, pid: int, failed: Failed, text: str) -> None:
        self._log(text, {"message_id": failed.message_id, "attempt": failed.attempt, "pid": pid})

    def _log(self, text: str, extra: dict[str, int]) -> None:
        _LOG.error(
            "message %d of queue %r %s", extra["message_id"], self._queue, text, extra={"queue": self._queue, **extra}
        )
