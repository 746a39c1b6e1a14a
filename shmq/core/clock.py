"""The core's clocks, in seconds: also where a test has frozen those of the module time."""

from __future__ import annotations

from shmq._native import monotonic_ns, wall_ns

__all__ = ["monotonic", "monotonic_ns", "wall"]


def monotonic() -> float:
    """Of deadlines and durations."""
    return monotonic_ns() / 1e9


def wall() -> float:
    """POSIX seconds."""
    return wall_ns() / 1e9
