"""The C tests of native/tests under the sanitizers, and with a second compiler."""

from collections.abc import Callable
from pathlib import Path

import pytest

from builds.native_build import CLANG, SANITIZED, Variant
from tests.native.c_programs import PROGRAMS, run_program


@pytest.mark.timeout(1800)  # the first test of a variant builds it, or waits for the worker that does
@pytest.mark.parametrize("variant", [SANITIZED, CLANG], ids=lambda variant: variant.name)
@pytest.mark.parametrize("program", PROGRAMS)
def test_c_program_passes(variant: Variant, program: str, tool: Callable[[str], str], tmp_path: Path) -> None:
    if variant.compiler is not None:
        tool(variant.compiler)
    run_program(variant, program, tmp_path)
