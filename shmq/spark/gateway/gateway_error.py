"""The error for a gateway that does not answer, or refuses the call."""

from __future__ import annotations

from shmq.errors import ShmqError

__all__ = ["GatewayError"]


class GatewayError(ShmqError):
    """A gateway does not answer, refuses the token, or has lost the session.

    Entries that it had in hand are as after a process's death: nothing is lost, and the query can be started again.

    Example:
        >>> issubclass(GatewayError, shmq.ShmqError)
        True
    """
