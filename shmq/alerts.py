"""Alerts that the users of a queue ask for: an option of a queue."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Alerts"]


@dataclass(frozen=True, slots=True)
class Alerts:
    """Thresholds of a queue, the option `alerts`. A value that reaches one is logged to "shmq.alert", as a warning.

    One process of the broker tells: one whose logger has a handler, at its next call, or while it waits. Each kind is
    told at most once in `repeat` seconds, and again for as long as it is so. Processes look once a second; what is over
    sooner is not told, but for `message_bytes`.

    Arguments:
        messages: that are in the queue, in whatever state.
        bytes: of their bodies and headers.
        message_bytes: of one message that is put, body and headers; one that fits into its slot is never told of.
        age: seconds since the oldest message that is ready was put.
        repeat: seconds between two alerts of a kind.

    None: no such threshold.

    Example:
        >>> lines = broker.queue("lines", alerts=shmq.Alerts(messages=100_000, age=60))
        >>> lines.options["alerts"]
        Alerts(messages=100000, bytes=None, message_bytes=None, age=60.0, repeat=30.0)
    """

    messages: int | None = None
    bytes: int | None = None
    message_bytes: int | None = None
    age: float | None = None
    repeat: float = 30.0
