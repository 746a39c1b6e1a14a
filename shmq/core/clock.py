"""The clock of the core, which no test tool of a user's freezes."""

from __future__ import annotations

from shmq._native import monotonic_ns

__all__ = ["monotonic_ns"]
