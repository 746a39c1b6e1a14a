"""The programs of these pages are saved, started as the page shows it, and print what stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.repo.tree import ROOT

PAGES = [
    "docs/messages.md",
    "docs/faq.md",
    "docs/worker-pool.md",
    "docs/drop-in.md",
    "docs/recipes.md",
    "docs/time.md",
]
PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n\$ python (\S+)\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
PID, FOLDER = re.compile(r"\b(pid|worker) \d+"), re.compile(r'File ".*/')


class Shown(NamedTuple):
    """A program, and what the page says of it."""

    text: str
    name: str  # of its file; "": the page does not show it being started
    output: str


def shown(page: str) -> list[Shown]:
    return [Shown(*found) for found in PROGRAM.findall((ROOT / page).read_text())]


def plain(text: str) -> list[str]:
    """Without what is another one each time."""
    return [PID.sub(r"\1 N", FOLDER.sub('File "', line)) for line in text.splitlines()]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_shows_what_its_programs_print(page: str, tmp_path: Path) -> None:
    programs = shown(page)
    assert any(program.name for program in programs), f"{page} shows no output"
    for number, program in enumerate(programs):
        folder = tmp_path / str(number)
        folder.mkdir()
        name = program.name or "program.py"
        (folder / name).write_text(program.text)
        # Without color: from 3.13 on a traceback may have it.
        environment = {**os.environ, "NO_COLOR": "1"}
        done = subprocess.run(
            [sys.executable, name],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, f"{page}:\n{program.text}\n{done.stderr}"
        assert plain(done.stderr + done.stdout) == plain(program.output), f"{page}:\n{program.text}"


@pytest.mark.parametrize("page", PAGES)
def test_each_program_that_prints_has_its_output_on_the_page(page: str) -> None:
    assert [program.text for program in shown(page) if "print(" in program.text and not program.name] == []
