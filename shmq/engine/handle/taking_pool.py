"""The pool that takes by a queue's handle, as the handle knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from shmq.core.queue import Delivery

__all__ = ["FailureReason", "TakingPool"]

FailureReason = Literal["rejected", "max_attempts", "max_deaths"]  # those of which the log tells


class TakingPool(Protocol):
    """A pool of workers, as far as the queue's handle by which it takes knows of it."""

    def fails(self, delivery: Delivery) -> None:
        """An attempt has failed, and the message is about to go back or to die."""

    def dies(self, delivery: Delivery, reason: FailureReason) -> None:
        """A message is about to die."""

    def died(self, delivery: Delivery, reason: FailureReason, error: str | None) -> None:
        """It has; the pool tells of it in the log."""

    def retry_delay_ns(self, failed: int) -> int:
        """Where the queue names no retry_delay: until the next attempt of what had failed so often before."""
