"""Another user, for tests that run as root: what a function does as him, and what it answers."""

import grp  # noqa: F401  - while we may read it: the interpreter may lie where he may not
import os
import pickle
import signal
from collections.abc import Callable
from typing import Any, Final

import pytest

__all__ = ["GROUP", "OTHER", "OWN_GROUP", "as_user", "needs_root"]

OTHER: Final = 65534  # nobody's uid
GROUP: Final = 54321  # shared with him; nobody else's
OWN_GROUP: Final = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


def as_user(work: Callable[[], Any], *groups: int, uid: int = OTHER, seconds: int = 60) -> Any:
    """Runs it in a forked child of this uid with these groups, and returns what it returns, or raises what it raises.

    The first of the groups is the one of files that it makes.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(seconds)  # ends it where it hangs
            os.close(read)
            own, *others = groups or (OWN_GROUP,)
            os.setgroups(others)
            os.setresgid(own, own, own)
            os.setresuid(uid, uid, uid)
            answer: tuple[Any, Exception | None]
            try:
                answer = (work(), None)
            except Exception as error:
                answer = (None, error)
            with os.fdopen(write, "wb") as file:
                file.write(pickle.dumps(answer))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        content = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert content, f"the other user's process has ended with {status}"
    value, raised = pickle.loads(content)
    if raised is not None:
        raise raised
    return value
