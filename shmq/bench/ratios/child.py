"""A process beside the measured one, which works when it is told to."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from shmq.bench.contestant import CONTEXT
from shmq.errors import Empty, Full
from shmq.pool.interruption import no_ctrl_c

__all__ = ["Child"]

_SECONDS = 120.0  # no work of a row takes longer


def _serve(work: Callable[[], Any], orders: Any) -> None:
    try:
        while True:
            orders.recv()
            orders.send((work(), None))
    except EOFError:
        pass  # its parent has gone
    except BaseException as error:
        orders.send((None, error if isinstance(error, Empty | Full) else f"{type(error).__name__}: {error}"))


class Child:
    """Forked at once; `work` runs in it each time that the child is called, which answers what it returned.

    Raises Empty and Full as `work` does, RuntimeError for any other failure, a death and a hang.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self._orders, theirs = CONTEXT.Pipe()
        self._process: Any = CONTEXT.Process(target=_serve, args=(work, theirs), daemon=True)  # type: ignore[attr-defined]
        with no_ctrl_c():  # amid a fork Python would drop it; the child keeps it blocked
            self._process.start()
        theirs.close()

    def start(self) -> None:
        """Lets it work without waiting for the end."""
        self._orders.send(None)

    def __call__(self) -> Any:
        self.start()
        if not self._orders.poll(_SECONDS):
            raise RuntimeError(f"a process of the measurement did not answer within {_SECONDS:.0f} s")
        try:
            answer, fault = self._orders.recv()
        except EOFError:
            raise RuntimeError("a process of the measurement died") from None
        if isinstance(fault, Empty | Full):
            raise fault
        if fault is not None:
            raise RuntimeError(f"a process of the measurement failed: {fault}")
        return answer

    def cpu(self) -> float:
        """Seconds of CPU time that it has taken so far, all threads: the kernel's clock of that process."""
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def close(self) -> None:
        with no_ctrl_c():
            self._process.kill()
            self._process.join()
            self._orders.close()
