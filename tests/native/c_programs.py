"""The C tests of native/tests, built in some variant and run."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from builds.native_build import Variant, built, programs

PROGRAMS = programs()
RUN_SECONDS = 900  # a hang; on a quiet machine the longest takes some seconds


def said_by(words: Sequence[str | Path], seconds: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end; all that it says is in `stdout`."""
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
        **options,
    )


def run_program(variant: Variant, program: str, directory: Path) -> None:
    """Fails with what the program said if it ends with anything but 0. `directory`: its own, for files."""
    environment = dict(
        os.environ,
        TMPDIR=str(directory),
        ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
        UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1",
    )
    result = said_by([built(variant) / program], RUN_SECONDS, cwd=directory, env=environment)
    assert result.returncode == 0, f"exit code {result.returncode}\n{result.stdout}"
