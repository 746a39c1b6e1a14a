"""What multiprocessing needs of the temporary directory to start processes, in words that say what helps."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["sockets_fit"]


@contextmanager
def sockets_fit() -> Iterator[None]:
    """Around the start of a process by a server, whose socket has its name below the temporary directory.

    Raises OSError (ENAMETOOLONG) with that directory where a name of 107 bytes (unix(7)) does not hold its path.
    """
    try:
        yield
    except OSError as error:
        if str(error) != "AF_UNIX path too long":  # of Python itself, without a number
            raise
        from tempfile import gettempdir

        text = "path too long for a socket; let TMPDIR name a directory with a shorter one"
        raise OSError(errno.ENAMETOOLONG, text, gettempdir()) from None
