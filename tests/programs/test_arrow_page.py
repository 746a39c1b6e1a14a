"""The programs of docs/arrow.md print what the page shows, twice; tools/test --spark has frames of other libraries."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.programs.test_shown_output import Shown, run_twice, shown

PROGRAMS = shown("docs/arrow.md")


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_the_page_shows_what_its_program_prints(tmp_path: Path, program: Shown) -> None:
    for name in ("duckdb", "polars"):
        if f"import {name}" in program.text and find_spec(name) is None:
            pytest.skip(f"no {name}: tools/test --spark installs it")
    for run, done in run_twice(tmp_path, program):
        assert done.stdout == program.output, f"the {run} run: {done.stderr}"
