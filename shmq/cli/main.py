"""The way in, and the way out: exit codes, errors as one line on stderr, silence on a closed pipe."""

from __future__ import annotations

import errno
import logging
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from shmq.cli.interruption import loading
from shmq.errors import (
    BrokerNotFound,
    CorruptionError,
    Empty,
    Full,
    NotFound,
    OptionsMismatch,
    OutOfSpace,
    SelectorError,
    ShmqError,
    ShutDown,
    Timeout,
)
from shmq.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DONE", "EMPTY", "FAILED", "INTERRUPTED", "NOT_FOUND", "USAGE", "main"]

DONE, FAILED, USAGE, NOT_FOUND, EMPTY, INTERRUPTED = 0, 1, 2, 3, 4, 130

# The word for an error at the beginning of its line, and the exit code; the first that fits.
_WORDS: tuple[tuple[type[ShmqError], str, int], ...] = (
    (Empty, "empty", EMPTY),
    (Timeout, "timed out", EMPTY),
    (BrokerNotFound, "not found", NOT_FOUND),
    (NotFound, "not found", NOT_FOUND),
    (OptionsMismatch, "mismatch", USAGE),
    (SelectorError, "selector", USAGE),
    (Full, "full", FAILED),
    (OutOfSpace, "out of space", FAILED),
    (CorruptionError, "damage", FAILED),
    (ShutDown, "shut down", FAILED),
    (ShmqError, "failed", FAILED),
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs one command and exits."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    closed = _open_what_is_closed()
    try:
        code = _run(given, closed)
    except KeyboardInterrupt:  # while the command was still being loaded
        code = INTERRUPTED
    sys.exit(code)


def _open_what_is_closed() -> list[str]:
    """The names of the standard streams that the caller has closed (`shmq ls >&-`).

    Python has None for them, and the next file that is opened gets their number. So the output of a handler would go
    into the broker's lock file. So the numbers are taken by what can be neither read nor written; words go nowhere.
    """
    closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:
        number = os.open(os.devnull, os.O_RDONLY if name == "stdout" else os.O_WRONLY)
        setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False))
    return closed


def _run(arguments: Sequence[str], closed: Sequence[str]) -> int:
    if arguments == ["--version"]:  # asked by scripts, often: without click
        try:
            print(f"shmq {__version__}", flush=True)
        except OSError as error:
            error.filename = "stdout"
            return _failed(error, closed)
        return DONE
    with loading():
        import click

        from shmq.cli.root import root
        from shmq.cli.session import to_stdout

    if "_SHMQ_COMPLETE" in os.environ:  # the shell asks what could come next
        root.main(args=list(arguments), prog_name="shmq")
    _log_to_stderr()
    try:
        # Not root.main(): it has a word of its own for Ctrl-C, and calls a closed pipe a failure.
        with root.make_context("shmq", list(arguments)) as context:
            root.invoke(context)
        with to_stdout():
            sys.stdout.flush()
        return DONE
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except ShmqError as error:
        word, code = next((word, code) for kind, word, code in _WORDS if isinstance(error, kind))
        return _say(f"{word}: {_in_words_of_the_shell(error)}", code)
    except OSError as error:
        return _failed(error, closed)


def _failed(error: OSError, closed: Sequence[str]) -> int:
    if isinstance(error, BrokenPipeError):
        _give_up_stdout()
        return DONE  # the reader has seen enough
    if closed and error.errno == errno.EBADF:
        _give_up_stdout()
        return _say(f"failed: {' and '.join(closed)} closed", FAILED)
    if error.errno == errno.ENOSPC and error.filename is None:
        error.filename = "stdout"  # click's own help; whatever is done with a file names it
    if error.filename == "stdout":
        _give_up_stdout()
    text = error.strerror or str(error)
    where = f": {error.filename}" if error.filename is not None and str(error.filename) not in text else ""
    return _say(f"failed: {text}{where}", FAILED)


def _in_words_of_the_shell(error: ShmqError) -> ShmqError:
    """The library's remedy is a method; here it is a command."""
    if isinstance(error, ShutDown):
        return ShutDown(error.what, figures=error.figures, remedy="shmq reopen takes it back into service")
    return error


def _say(text: str, code: int) -> int:
    from shmq.cli.text import escaped

    try:
        print(escaped(text), file=sys.stderr, flush=True)
    except OSError:
        pass  # nobody listens
    return code


def _give_up_stdout() -> None:
    """Sends buffered output nowhere, so that the interpreter does not complain about it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _log_to_stderr() -> None:
    """Warnings of the library are words of the command."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    handler.setLevel(logging.WARNING)
    logging.getLogger("shmq").addHandler(handler)
