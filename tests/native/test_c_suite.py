"""Builds the C tests of native/tests and runs each one."""

from pathlib import Path

import pytest

from builds.native_build import PLAIN
from tests.native.c_programs import PROGRAMS, run_program


@pytest.mark.timeout(1800)  # the first test builds them all, or waits for the worker that does
@pytest.mark.parametrize("program", PROGRAMS)
def test_c_program_passes(program: str, tmp_path: Path) -> None:
    run_program(PLAIN, program, tmp_path)


def test_the_core_has_c_tests() -> None:
    assert PROGRAMS, "native/tests holds no test_*.c"
