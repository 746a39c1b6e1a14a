"""Whether worker processes can import the program that starts them, and what helps where they cannot."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.context import BaseContext
from typing import Any

__all__ = ["check_importable", "remedy_at_the_start"]

_GUARD = 'if __name__ == "__main__":'


def check_importable(context: BaseContext, calls: list[Callable[..., object] | None]) -> None:
    """Before a pool starts workers that are not forked.

    Arguments:
        context: how they are started.
        calls: what they are to import; None: nothing.

    Raises RuntimeError in a worker that imports a program which starts its pool unguarded; TypeError where there is no
    file to import.
    """
    if context.get_start_method() == "fork" or getattr(sys, "frozen", False):
        return  # of one that is frozen into an executable its tool takes care
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(f"a worker imports this program, which starts a pool again; put that behind {_GUARD}")
    main: Any = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if file is None:
        lost = any(getattr(call, "__module__", None) == "__main__" for call in calls)
    else:
        lost = getattr(main, "__spec__", None) is None and not os.path.exists(file)
    if lost:
        raise TypeError(
            "workers cannot import this program: it has no file, as with stdin, a REPL, a notebook or python -c; save "
            f'it as a file with its {_GUARD}, or use processes=0, or mp_context="fork"'
        )


def remedy_at_the_start(context: BaseContext, what: str, text: str) -> str:
    """For workers that die before their first message.

    Arguments:
        context: how they are started.
        what: how the last one ended.
        text: its error; "": it told none.
    """
    plain = "call initializer and handler in a plain process to see what is wrong; no message is lost"
    if context.get_start_method() != "fork" and not text and what == "ended with exit code 1":
        return f"put what starts the pool behind {_GUARD}, for workers import the program; else {plain}"
    return plain
