"""Words of memory that a worker and its pool share, also after the worker was killed."""

from __future__ import annotations

import mmap
import os
from multiprocessing.reduction import DupFd
from typing import Any

__all__ = ["SharedWords"]

_BYTES = 4096
_HALF = 256


class SharedWords:
    """Unsigned words of 64 bits, zero at first. Goes to a process that is being started, by each start method.

    Attributes:
        tally, hand: for Tally and for Hand.

    Not in /dev/shm, which may be full. Reserved at once: a write never fails. Raises OSError without memory.
    """

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("shmq-pool", os.MFD_CLOEXEC)
        try:
            os.posix_fallocate(self._descriptor, 0, _BYTES)
            self._map()
        except BaseException:
            os.close(self._descriptor)
            raise

    def __getstate__(self) -> Any:
        return DupFd(self._descriptor)

    def __setstate__(self, descriptor: Any) -> None:
        self._descriptor = descriptor.detach()
        self._map()
        self.sent()

    def _map(self) -> None:
        words = memoryview(mmap.mmap(self._descriptor, _BYTES)).cast("Q")
        self.tally, self.hand = words[:_HALF], words[_HALF:]

    def sent(self) -> None:
        """Closes the descriptor, once the process has its own; the memory stays. A second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
