"""Real processes for the tests: a program in an interpreter of its own, spoken to line by line."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE = 120.0  # seconds; a machine under load is slow, a hang lasts for ever
HEAD = """
import os, sys, time, threading, signal
import shmq
def say(*words):
    print(*words, flush=True)
def listen():
    return sys.stdin.readline().strip()
"""


def eventually(condition: Callable[[], object], what: str = "the condition") -> None:
    """Waits until the condition holds; a test that needs it to hold fails if it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {PATIENCE} s")
        time.sleep(0.002)


def is_asleep(pid: int) -> bool:
    """True while the main thread of the process sleeps in the kernel."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] == "S"


class Child:
    """Runs `program` with the given arguments in sys.argv, in `folder`; `say()` and `listen()` speak with the test.

    As a context manager: killed at the end if it still runs, so that no test leaves one behind.
    """

    def __init__(self, program: str, *arguments: object, folder: Path | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", HEAD + program, *map(str, arguments)],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._seen = b""

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        """The next line that it says."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self._seen:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(descriptor, 65536) if ready else b""
            if not piece:
                self.process.kill()
                _, errors = self.process.communicate(timeout=PATIENCE)
                raise AssertionError(f"the child said no more ({'end' if ready else 'timeout'}):\n{errors.decode()}")
            self._seen += piece
        line, _, self._seen = self._seen.partition(b"\n")
        return line.decode()

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word.encode() + b"\n")
        self.process.stdin.flush()

    def sleeps(self) -> None:
        """Waits until it sleeps in the kernel: after its last word, in the call that it announced."""
        eventually(lambda: is_asleep(self.pid), f"process {self.pid} asleep")

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def end(self) -> str:
        """Its last words; fails if it did not end well."""
        output, errors = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, errors.decode()
        return (self._seen + output).decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=PATIENCE)
