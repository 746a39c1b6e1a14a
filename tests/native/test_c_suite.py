"""Builds the C tests of native/tests and runs each one: plain, under the sanitizers, and with a second compiler."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from native_build import CLANG, PLAIN, SANITIZED, Variant, built, programs

PROGRAMS = programs()
VARIANTS = [PLAIN, SANITIZED, CLANG]
RUN_SECONDS = 900  # a hang; on a quiet machine the longest takes some seconds


@pytest.mark.timeout(1800)  # the first test of a variant builds it, or waits for the worker that does
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
@pytest.mark.parametrize("program", PROGRAMS)
def test_c_program_passes(variant: Variant, program: str, tool: Callable[[str], str], tmp_path: Path) -> None:
    if variant.compiler is not None:
        tool(variant.compiler)
    environment = dict(
        os.environ,
        TMPDIR=str(tmp_path),
        ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
        UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1",
    )
    result = subprocess.run(
        [built(variant) / program],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=RUN_SECONDS,
        check=False,
    )
    assert result.returncode == 0, f"exit code {result.returncode}\n{result.stdout}"


def test_the_core_has_c_tests() -> None:
    assert PROGRAMS, "native/tests holds no test_*.c"
