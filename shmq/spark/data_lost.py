"""The error of a range of entries that is not there any more."""

from __future__ import annotations

from shmq.errors import ShmqError

__all__ = ["DataLost"]


class DataLost(ShmqError):
    """Entries that Spark has planned to read, or staged to publish, are gone.

    Somebody purged or deleted the queue that held them, or the host was restarted. Nothing is skipped silently: the
    query fails. With the option failOnDataLoss=false it goes on with what there is.

    Example:
        >>> issubclass(DataLost, shmq.ShmqError)
        True
    """
