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
        """Tells the pool that an attempt has failed, before the message goes back or dies."""

    def dies(self, delivery: Delivery, reason: FailureReason) -> None:
        """Tells the pool that a message is about to die."""

    def died(self, delivery: Delivery, reason: FailureReason, error: str | None) -> None:
        """Tells the pool that a message has died, so that it logs this."""

    def retry_delay_ns(self, failed: int) -> int:
        """Returns the delay before the next attempt, for a queue without retry_delay: it grows with failed attempts."""
