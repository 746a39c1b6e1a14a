"""The core's clocks, in seconds. They run on where a test has frozen the clocks of the module time."""

from __future__ import annotations

from shmq._native import monotonic_ns, wall_ns

__all__ = ["monotonic", "monotonic_ns", "wall"]


def monotonic() -> float:
    """Returns the time for deadlines and durations."""
    return monotonic_ns() / 1e9


def wall() -> float:
    """Returns the time of day in POSIX seconds."""
    return wall_ns() / 1e9
