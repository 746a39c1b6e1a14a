"""The options with which a consumer is opened, and how much it is asked for at once."""

from __future__ import annotations

__all__ = ["check_consumer_priority", "check_limit", "check_prefetch"]

_PRIORITIES = 1 << 31


def check_limit(limit: int) -> None:
    """Raises ValueError for a number of messages below 1, TypeError for anything that is no number."""
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise TypeError(f"receive_many({limit!r}): a number of messages is expected")
    if limit < 1:
        raise ValueError(f"receive_many({limit!r}): a limit of 1 or more is expected")


def check_prefetch(prefetch: int | None) -> None:
    """Raises ValueError for a number of unsettled messages below 1, TypeError for anything that is no int."""
    if prefetch is None:
        return
    if isinstance(prefetch, bool) or not isinstance(prefetch, int):
        raise TypeError(f"prefetch={prefetch!r}: an int is expected, or None for no limit")
    if prefetch < 1:
        raise ValueError(f"prefetch={prefetch!r}: 1 or more unsettled messages, or None for no limit")


def check_consumer_priority(priority: int) -> int:
    """Raises ValueError for a priority beyond 32 bits, TypeError for anything that is no int."""
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise TypeError(f"priority={priority!r}: an int is expected, larger is served first")
    if not -_PRIORITIES <= priority < _PRIORITIES:
        raise ValueError(f"priority={priority}: -2**31 to 2**31 - 1 is expected, larger is served first")
    return priority
