"""The driver and all that it starts: a Java virtual machine, which starts Python processes, which fork workers.

They are one session of processes, in the sense of setsid(), of which the driver is the leader. Some make process groups
of their own, and those whose parent dies get another one; the session stays.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple

from shmq.demo.spark_driver import Job

__all__ = ["PROGRAM", "Driver"]

PROGRAM = ("-m", "shmq.demo.spark_driver")  # what Python runs
_STOP_LOOKS = 1000
_END_SECONDS = 60.0  # a process that was killed is gone, but for what the kernel still has to do


class _Stat(NamedTuple):
    state: str
    session: int


def _stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    words = text.rpartition(")")[2].split()
    return _Stat(words[0], int(words[3]))


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


class Driver:
    """A driver that runs.

    Arguments:
        job: what it is told.
        log: takes what it and Spark write.
    """

    def __init__(self, job: Job, log: IO[bytes]) -> None:
        job.scratch.mkdir(exist_ok=True)
        # In a session of its own it hears no Ctrl-C: the demo ends it.
        self._process = subprocess.Popen(
            [sys.executable, *PROGRAM, *job.words()],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=job.scratch,
            env={**os.environ, "TMPDIR": str(job.scratch), "SPARK_LOCAL_DIRS": str(job.scratch)},
            start_new_session=True,
        )
        self.pid = self._process.pid

    def members(self) -> list[int]:
        """Pids of all of its processes that live, its own among them."""
        found = []
        for name in os.listdir("/proc"):
            stat = _stat(int(name)) if name.isdecimal() else None
            if stat is not None and stat.session == self.pid and stat.state not in "ZX":
                found.append(int(name))
        return found

    def has_ended(self) -> int | None:
        """Its exit code, negative for a signal; None: it lives. Its number stays taken until kill()."""
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def kill_if(self, pid: int, still: Callable[[], bool]) -> bool:
        """Kills one of its processes, stopped first and then looked at again: is it still as it was?"""
        stat = _stat(pid)
        if stat is None or stat.session != self.pid or not _signal(pid, signal.SIGSTOP):
            return False
        # It stops when it is next scheduled, which on a busy machine takes a while.
        stopped = any(self._has_stopped(pid) for _ in range(_STOP_LOOKS))
        killed = stopped and still()
        _signal(pid, signal.SIGKILL if killed else signal.SIGCONT)
        return killed

    def _has_stopped(self, pid: int) -> bool:
        stat = _stat(pid)
        if stat is None or stat.state != "T":
            time.sleep(0.001)
            return False
        return True

    def finish(self) -> None:
        """Asks it to end when all is done that is there."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # has_ended() tells
            self._process.stdin.write(b"finish\n")
            self._process.stdin.flush()

    def kill(self) -> int:
        """Kills it and all of its processes; how many. Repeats are harmless. Raises RuntimeError for one that stays."""
        if self._process.returncode is not None:
            return 0
        killed: set[int] = set()
        deadline = time.monotonic() + _END_SECONDS
        while members := self.members():
            for pid in members:
                if _signal(pid, signal.SIGKILL):
                    killed.add(pid)
            if time.monotonic() > deadline:
                raise RuntimeError(f"processes {members} of driver {self.pid} do not end")
            time.sleep(0.005)
        # Only now is its number free for others.
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        return len(killed)
