"""Modules that are not imported with shmq, since most programs need few of them: each is whole before anybody sees it.

A signal handler runs amid an import of its own thread, where the module is half-made. So the main thread has them
imported by another one. A child that is forked amid another thread's import inherits a lock that nobody gives back; so
forks wait.
"""

from __future__ import annotations

import _thread
import importlib
import logging  # noqa: F401  - its lock is taken across a fork, too: behind ours, since what is imported may need it
import os
import sys
import threading
from typing import Final

from shmq.wait_time import IMPORT_END

__all__ = ["import_whole"]

_LOCK: Final = threading.RLock()  # reentrant: an import may fork


def import_whole(*names: str) -> None:
    """Afterwards an import of each takes nothing, and gives all of it. Raises what the import raises."""
    for name in names:
        if not _is_whole(name):
            _import(name)


def _is_whole(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not getattr(module.__spec__, "_initializing", False)


def _import(name: str) -> None:
    if threading.current_thread() is not threading.main_thread():
        return _import_here(name)
    failed: list[BaseException] = []
    ended = _thread.allocate_lock()
    ended.acquire()

    def work() -> None:
        try:
            _import_here(name)
        except BaseException as error:
            failed.append(error)
        finally:
            ended.release()

    try:
        _thread.start_new_thread(work, ())
    except RuntimeError:  # no thread can be started: the process is at its end
        return _import_here(name)
    ended.acquire()  # handlers run meanwhile, and wait here as well if they need the same
    if failed:
        raise failed[0]


def _import_here(name: str) -> None:
    with _LOCK:
        importlib.import_module(name)


_FORKS: Final = threading.local()


def _before_fork() -> None:
    # Not for ever: a handler that runs before this one may have taken what the import waits for.
    _FORKS.waited = _LOCK.acquire(timeout=IMPORT_END)


def _after_fork() -> None:
    if _FORKS.waited:
        _LOCK.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
