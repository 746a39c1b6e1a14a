"""Builds the C tests of native/tests and runs each one."""

from pathlib import Path

import pytest

from builds.native_build import PLAIN, built
from tests.native.c_programs import PROGRAMS, RUN_SECONDS, run_program, said_by


@pytest.mark.timeout(1800)  # the first test builds them all, or waits for the worker that does
@pytest.mark.parametrize("program", PROGRAMS)
def test_c_program_passes(program: str, tmp_path: Path) -> None:
    run_program(PLAIN, program, tmp_path)


@pytest.mark.timeout(1800)
def test_the_program_of_the_pages_gets_a_message_again_when_its_worker_was_killed(tmp_path: Path) -> None:
    result = said_by([built(PLAIN) / "example"], RUN_SECONDS, cwd=tmp_path)
    assert result.stdout.splitlines() == [
        "worker: print order 7, 0 deaths before",
        "parent: print order 7, 1 deaths before",
    ]
    assert result.returncode == 0


def test_the_core_has_c_tests() -> None:
    assert PROGRAMS, "native/tests holds no test_*.c"
