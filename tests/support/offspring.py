"""Forked children of a test: quick to make, spoken to by lines, ended by their pid."""

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

LIMIT = 120.0  # seconds; a machine under load is slow, a hang lasts for ever

Say = Callable[[object], object]


class Offspring:
    """Runs `work(*arguments, say)` in a forked child. Its words arrive at the parent line by line, in order.

    As a context manager: killed at the end if it still runs, so that no test leaves one behind.
    """

    def __init__(self, work: Callable[..., None], *arguments: object) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._read, write = os.pipe()
        self._text = b""
        self._code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.close(self._read)
                work(*arguments, lambda line: os.write(write, f"{line}\n".encode()))
                code = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
                sys.stderr.flush()
            finally:
                os._exit(code)
        os.close(write)

    def line(self, limit: float = LIMIT) -> str:
        """The next line; AssertionError when the child ends or says nothing for so long."""
        deadline = time.monotonic() + limit
        while b"\n" not in self._text:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise AssertionError(f"child {self.pid} said nothing for {limit} s (so far {self._text!r})")
            chunk = os.read(self._read, 65536)
            if not chunk:
                raise AssertionError(f"child {self.pid} ended instead of speaking (so far {self._text!r})")
            self._text += chunk
        line, self._text = self._text.split(b"\n", 1)
        return line.decode()

    def expect(self, word: str) -> None:
        line = self.line()
        assert line == word, f"child {self.pid} said {line!r}, not {word!r}"

    def signal(self, number: int) -> None:
        if self._code is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, and waits until it is dead."""
        self.signal(signal.SIGKILL)
        self.wait()

    def wait(self, limit: float = LIMIT) -> int:
        """Its exit code, negative for a signal; AssertionError if it does not end."""
        deadline = time.monotonic() + limit
        while self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid != 0:
                self._code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                raise AssertionError(f"child {self.pid} does not end")
            else:
                time.sleep(0.001)
        return self._code

    def close(self) -> None:
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        os.close(self._read)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextlib.contextmanager
def family() -> Iterator[list[Offspring]]:
    """A list for children; all that are in it at the end are killed, and their pipes closed."""
    members: list[Offspring] = []
    try:
        yield members
    finally:
        for member in members:
            with contextlib.suppress(OSError):
                member.close()


def eventually(condition: Callable[[], object], what: str, limit: float = LIMIT) -> None:
    """Waits until the condition holds, or fails."""
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit} s: {what}")
        time.sleep(0.002)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]


def falls_asleep(child: Offspring) -> None:
    """It has said what it had to say, and calls nothing else that blocks."""
    eventually(lambda: state_of(child.pid) == "S", "it sleeps")
