"""Bodies with a number, so that a test sees their order."""

from typing import Any

import shmq

__all__ = ["number_of", "numbered", "put_numbers"]


def numbered(number: int, size: int = 50) -> bytes:
    """So many bytes behind it."""
    return b"%08d" % number + b"x" * size


def number_of(body: bytes) -> int:
    """The number that numbered() has written."""
    return int(body[:8])


def put_numbers(queue: shmq.Queue[Any], numbers: range, size: int = 50, timeout: float = 5.0) -> None:
    """One message for each."""
    for number in numbers:
        queue.put(numbered(number, size), timeout=timeout)
