"""Sends the library's log records from a worker to the process that owns the pool: workers print nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from shmq.pool.report import Logged

if TYPE_CHECKING:
    from shmq.pool.report import Reports

__all__ = ["LogReport", "tell_of_logs"]

_FIELDS: Final = ("queue", "message_id", "reason", "error")


class LogReport(logging.Handler):
    """Sends records as reports.

    Arguments:
        reports: the worker's end of the pipe.
    """

    def __init__(self, reports: Reports) -> None:
        super().__init__()
        self._reports = reports

    def emit(self, record: logging.LogRecord) -> None:
        """Sends a record to the pool. It is lost if the pool does not listen any more."""
        extra = {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        self._reports.send(Logged(record.name, record.levelno, record.getMessage(), extra))


def tell_of_logs(reports: Reports) -> None:
    """Begins to send records, unless the program has set up logging in its workers, by initializer or before a fork."""
    logger = logging.getLogger("shmq")
    if not logger.hasHandlers():
        logger.addHandler(LogReport(reports))
