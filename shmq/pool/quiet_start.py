"""Processes that take no notice of Ctrl-C, from before they import what they run."""

from __future__ import annotations

import operator
import signal
from collections.abc import Callable
from typing import Any, Generic, ParamSpec

__all__ = ["QuietStart"]

P = ParamSpec("P")


class _IgnoreCtrlC:
    """An object whose unpickling calls signal.signal, so that the process ignores Ctrl-C."""

    def __reduce__(self) -> Any:
        return signal.signal, (signal.SIGINT, signal.SIG_IGN)


class QuietStart(Generic[P]):
    """Wraps the target of a multiprocessing.Process: Ctrl-C is the affair of who started it.

    A terminal sends Ctrl-C to the whole group. A child that imports its modules then would die with a traceback on the
    terminal: it can ignore the signal only when its code runs. So the first thing unpickled in it, before the name of
    the target leads to an import, is a call that ignores the signal.

    Example:
        >>> Process(target=QuietStart(work), args=(queue,))  # doctest: +SKIP
    """

    def __init__(self, target: Callable[P, object]) -> None:
        self._target = target

    def __reduce__(self) -> Any:
        # A list is unpickled in order; what arrives in the child is the plain target.
        return operator.getitem, ([_IgnoreCtrlC(), self._target], 1)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Calls the target in a forked child, where nothing was pickled."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._target(*args, **kwargs)
