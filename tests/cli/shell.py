"""The command as a user meets it: a process with arguments, pipes, signals, or a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.cli.forked import Forks

SHMQ = [sys.executable, "-m", "shmq"]
TIMEOUT = 240  # seconds; only a test that has gone wrong waits so long


@dataclass(frozen=True)
class Outcome:
    """The exit code of a command, its output, and its words on stderr."""

    code: int
    out: str
    words: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Shell:
    """A shell whose $SHMQ_DIR is a broker of this test."""

    def __init__(self, directory: Path, folder: Path, forks: Forks | None = None) -> None:
        self.directory = directory
        self.folder = folder
        self.forks = forks
        self.environment = {**os.environ, "SHMQ_DIR": str(directory), "PYTHONPATH": str(folder)}
        self.environment.pop("NO_COLOR", None)

    def __call__(
        self, *arguments: str, given: str | bytes = b"", expected: int | None = 0, program: Sequence[str] | None = None
    ) -> Outcome:
        """Runs a command to its end, from a cold start if a `program` is named; `expected` None takes any exit code."""
        given = given.encode() if isinstance(given, str) else given
        if self.forks is not None and program is None:
            code, out, words = self.forks.run(arguments, given, self.environment, self.folder, TIMEOUT)
        else:
            done = subprocess.run(
                [*(program or SHMQ), *arguments],
                input=given,
                capture_output=True,
                env=self.environment,
                cwd=self.folder,
                timeout=TIMEOUT,
                check=False,
            )
            code, out, words = done.returncode, done.stdout, done.stderr
        outcome = Outcome(code, out.decode(errors="replace"), words.decode(errors="replace"))
        assert expected is None or outcome.code == expected, outcome
        return outcome

    def bytes_of(self, *arguments: str) -> bytes:
        """The output of a command, unchanged."""
        done = subprocess.run(
            [*SHMQ, *arguments], capture_output=True, env=self.environment, timeout=TIMEOUT, check=True
        )
        return done.stdout

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A command that goes on; the test ends it."""
        return subprocess.Popen(
            [*SHMQ, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.folder,
        )

    def script(self, text: str) -> subprocess.CompletedProcess[str]:
        """Lines for bash, in which `shmq` is the command."""
        shmq = f'shmq() {{ "{sys.executable}" -m shmq "$@"; }}\n'
        return subprocess.run(
            ["bash", "-c", shmq + text],
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.folder,
            timeout=TIMEOUT,
            check=False,
        )

    def on_terminal(
        self, *arguments: str, typed: str = "", stdin: IO[bytes] | None = None, program: Sequence[str] = SHMQ
    ) -> Outcome:
        """Runs a command on a terminal of its own; `out` has what appears there, stdout and stderr as one."""
        controller, terminal = pty.openpty()
        attributes = termios.tcgetattr(terminal)
        attributes[1] &= ~termios.OPOST  # no \r before each \n
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(terminal, termios.TCSANOW, attributes)
        process = subprocess.Popen(
            [*program, *arguments],
            stdin=terminal if stdin is None else stdin,
            stdout=terminal,
            stderr=terminal,
            env={**self.environment, "TERM": "xterm", "COLUMNS": "120"},
            cwd=self.folder,
        )
        os.close(terminal)
        os.write(controller, typed.encode())
        shown = b""
        deadline = time.monotonic() + TIMEOUT
        try:
            while select.select([controller], [], [], max(0.0, deadline - time.monotonic()))[0]:
                chunk = os.read(controller, 65536)
                if not chunk:
                    break
                shown += chunk
        except OSError:
            pass  # EIO: the last process has closed the terminal
        finally:
            os.close(controller)
        return Outcome(process.wait(timeout=TIMEOUT), shown.decode(), "")


def end(process: subprocess.Popen[str]) -> None:
    """Ends a command that a failed test has left."""
    if process.poll() is None:
        process.kill()
    process.communicate(timeout=TIMEOUT)


def rest_of(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The rest of a command's output, and of its words; communicate() would lose what readline() has read ahead."""
    assert process.stdout is not None
    assert process.stderr is not None
    said = process.stdout.read(), process.stderr.read()
    process.wait(timeout=TIMEOUT)
    return said
