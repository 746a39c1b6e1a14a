"""Starts threads of the system, even where a library (gevent, eventlet) has replaced Python's threads."""

from __future__ import annotations

import _thread
import threading
from _queue import SimpleQueue
from collections.abc import Callable
from types import BuiltinFunctionType

from shmq._native import start_thread, thread_id

__all__ = ["SimpleQueue", "start_true_thread", "thread_id"]


def start_true_thread(run: Callable[[], None], name: str) -> None:
    """Starts a daemon thread. It gets the name only if it is one of Python's own threads."""
    if isinstance(_thread.start_new_thread, BuiltinFunctionType):
        threading.Thread(target=run, name=name, daemon=True).start()
    else:
        start_thread(run)
