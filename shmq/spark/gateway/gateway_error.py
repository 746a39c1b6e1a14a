"""The error of a gateway that cannot be asked."""

from __future__ import annotations

from shmq.errors import ShmqError

__all__ = ["GatewayError"]


class GatewayError(ShmqError):
    """A gateway does not answer, refuses the token, or has lost the session.

    What it had in hand is as after the death of a process: nothing is lost, and the query can be started again.

    Example:
        >>> issubclass(GatewayError, shmq.ShmqError)
        True
    """
