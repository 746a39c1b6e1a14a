"""Options of a queue as `shmq declare` takes them."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from shmq.alerts import Alerts

if TYPE_CHECKING:
    from shmq.options.queue import QueueOptions

__all__ = ["as_written"]


def as_written(options: QueueOptions) -> list[str]:
    """NAME=VALUE for each of them."""
    return [f"{name}={_written(value)}" for name, value in options.items()]


def _written(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Alerts):
        given = {field.name: getattr(value, field.name) for field in fields(value)}
        return ",".join(f"{name}:{_written(each)}" for name, each in given.items() if each is not None)
    if isinstance(value, tuple):
        return ",".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
