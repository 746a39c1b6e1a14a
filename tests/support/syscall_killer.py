"""A process that is killed at a chosen system call: before it, or right behind it."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

__all__ = ["killed_at"]

_TRACEME: Final = 0
_SYSCALL: Final = 24
_SETOPTIONS: Final = 0x4200
_EXITKILL: Final = 0x100000
_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request: int, pid: int, data: int = 0) -> None:
    if _libc.ptrace(request, pid, None, data) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def killed_at(stop: int, work: Callable[[], object]) -> bool:
    """Runs the work in a forked child, and kills it at this stop: each system call has one before and one behind it.

    False: the work was done before. It may have one thread only. An exception of the work is an AssertionError here.
    """
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _ptrace(_TRACEME, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            work()
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSTOPPED(status), status
    _ptrace(_SETOPTIONS, pid, _EXITKILL)
    for _ in range(stop):
        _ptrace(_SYSCALL, pid)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            assert os.waitstatus_to_exitcode(status) == 0, "the work has failed"
            return False
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return True
