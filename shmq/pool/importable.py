"""Checks that worker processes can import the program that starts them, and says what helps if they cannot."""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.context import BaseContext
from multiprocessing.reduction import ForkingPickler
from types import FunctionType
from typing import Any

__all__ = [
    "UNGUARDED",
    "WORKER",
    "NotImportable",
    "WorkerPickler",
    "check_importable",
    "imports_unguarded",
    "remedy_at_the_start",
]

UNGUARDED = 86  # exit code of a worker that has come to the start of its own pool
WORKER = "shmq-worker"  # how the names of worker processes begin
_GUARD = 'if __name__ == "__main__":'
_FREEZE = f"call multiprocessing.freeze_support() first behind {_GUARD}"
_REMEDY = 'or use processes=0, or mp_context="fork"'


class NotImportable(TypeError):
    """Workers cannot import what they are to call."""


def check_importable(context: BaseContext) -> None:
    """Before a pool starts workers that are not forked. Does not return in a worker of a pool that imports a program
    which starts its pool unguarded. That worker ends with UNGUARDED, for the same would happen in each further one.

    Arguments:
        context: how they are started.

    Raises RuntimeError in another process that does so; TypeError where there is no file to import.
    """
    if context.get_start_method() == "fork":
        return
    if getattr(sys, "frozen", False):
        _check_frozen(sys.argv)
        return
    process = multiprocessing.current_process()
    if getattr(process, "_inheriting", False):
        try:
            raise RuntimeError(f"a worker imports this program, which starts a pool again; put that behind {_GUARD}")
        except RuntimeError:
            if not process.name.startswith(WORKER):
                raise
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
            os._exit(UNGUARDED)
    main: Any = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if file is not None and getattr(main, "__spec__", None) is None and not os.path.exists(file):
        raise TypeError(_no_file())


def _check_frozen(argv: list[str]) -> None:
    """Checks a program that is packed into an executable: multiprocessing starts that one in place of Python, and
    freeze_support() makes a child of it. Without that each worker is the whole program, which starts workers again.
    """
    if any(word == "--multiprocessing-fork" or word.startswith("from multiprocessing.") for word in argv[1:]):
        raise RuntimeError(f"a worker runs this packed program from its begin, which starts a pool again; {_FREEZE}")


def _no_file() -> str:
    return (
        "workers cannot import this program: it has no file, as with stdin, a REPL, a notebook or python -c; save it "
        f"as a file with its {_GUARD}, {_REMEDY}"
    )


def _why_not() -> str | None:
    """Says why a worker cannot import the main module; None: it can."""
    main: Any = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if getattr(sys, "frozen", False):
        return None
    if getattr(main, "__file__", None) is None:
        return _no_file()
    if spec is not None and (spec.name == "__main__" or spec.name.endswith(".__main__")):
        return (
            f"workers do not import the {os.path.basename(main.__file__)} of a package, a folder or an archive, as "
            f"python -m runs it; move handler and initializer to another module of it, {_REMEDY}"
        )
    return None


class WorkerPickler(ForkingPickler):
    """Pickles what a worker is to unpickle. Raises NotImportable for what it cannot import of the main module."""

    def reducer_override(self, value: Any) -> Any:
        """Called for functions and classes, too, and for those that others are made of."""
        if isinstance(value, type | FunctionType) and value.__module__ == "__main__":
            why_not = _why_not()
            if why_not is not None:
                raise NotImportable(f"{why_not} ({value.__qualname__} is needed)")
        return NotImplemented


def imports_unguarded(context: BaseContext) -> bool:
    """Workers import a program that never asks for its name: perhaps it starts its pool again in each of them."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if context.get_start_method() == "fork" or file is None:
        return False
    try:
        with open(file, "rb") as source:
            return b"__name__" not in source.read()
    except OSError:
        return False


def remedy_at_the_start(context: BaseContext, code: int, text: str) -> str:
    """Returns the remedy for workers that die before their first message.

    Arguments:
        context: how they are started.
        code: with which the last one ended.
        text: its error; "": it told none.
    """
    plain = "call initializer and handler in a plain process to see the error; no message is lost"
    begin = f"put what starts the pool behind {_GUARD}, for workers import the program"
    if code == UNGUARDED:
        return begin
    if context.get_start_method() != "fork" and not text and code == 1:
        return f"{_FREEZE if getattr(sys, 'frozen', False) else begin}; else {plain}"
    return plain
