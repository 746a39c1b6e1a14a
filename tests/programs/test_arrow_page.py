"""The programs of docs/arrow.md print what the page shows; frames of other libraries come with tools/test --spark."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.programs.test_shown_output import Shown, shown

PROGRAMS = shown("docs/arrow.md")


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_the_page_shows_what_its_program_prints(tmp_path: Path, program: Shown) -> None:
    for name in ("duckdb", "polars"):
        if f"import {name}" in program.text and find_spec(name) is None:
            pytest.skip(f"no {name}: tools/test --spark installs it")
    (tmp_path / program.name).write_text(program.text)
    command = [sys.executable, program.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, program.output), done.stderr
