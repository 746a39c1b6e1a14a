"""The programs of README.md are saved, started as it shows them, and print what stands there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.child import Child, eventually
from tests.programs.test_shown_output import Shown, plain, shown

SAY, HEAR, *OTHERS = shown("README.md")


def test_the_readme_shows_what_it_promises_to_show() -> None:
    assert [program.name for program in (SAY, HEAR, *OTHERS)] == ["", "hear.py", "squares.py", "swap.py"]


@pytest.mark.parametrize("hear_first", [False, True])
def test_hello_between_two_terminals(tmp_path: Path, hear_first: bool) -> None:
    if hear_first:
        with Child(HEAR.text, folder=tmp_path) as hear:
            eventually((tmp_path / "hello.shmq" / "segment").exists, "the broker")
            hear.sleeps()
            with Child(SAY.text, folder=tmp_path) as say:
                say.end()
            assert hear.end() == HEAR.output
    else:
        with Child(SAY.text, folder=tmp_path) as say:
            say.end()
        with Child(HEAR.text, folder=tmp_path) as hear:
            assert hear.end() == HEAR.output


@pytest.mark.parametrize("program", OTHERS, ids=[program.name for program in OTHERS])
def test_a_program_of_the_readme_prints_what_stands_there(tmp_path: Path, program: Shown) -> None:
    (tmp_path / program.name).write_text(program.text)
    command = [sys.executable, program.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=True)
    assert without_luck(done.stderr + done.stdout) == without_luck(program.output)


def without_luck(text: str) -> list[str]:
    """On a busy machine others have done all jobs before the pool hears of the death: nobody is replaced then."""
    return plain(text.replace("goes back, it is replaced", "goes back"))
