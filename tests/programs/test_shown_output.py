"""The programs of these pages are saved, started twice as the page shows it, and print what stands there."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
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
    "docs/flow-to-disk.md",
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


def run_twice(folder: Path, program: Shown) -> Iterator[tuple[str, subprocess.CompletedProcess[str]]]:
    """A user runs a program again in the same directory, with all that the first run has left there."""
    name = program.name or "test_program.py"
    (folder / name).write_text(program.text)
    command = [sys.executable, *(["-m", "pytest", "-q"] if "def test_" in program.text else []), name]
    environment = {**os.environ, "NO_COLOR": "1"}  # from 3.13 on a traceback may have color
    for run in ("first", "second"):
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, f"the {run} run of:\n{program.text}\n{done.stdout}{done.stderr}"
        yield run, done


def prints_the_same_twice(folder: Path, program: Shown, view: Callable[[str], list[str]] = plain) -> None:
    for run, done in run_twice(folder, program):
        assert view(done.stderr + done.stdout) == view(program.output), f"the {run} run of:\n{program.text}"


@pytest.mark.parametrize("page", PAGES)
def test_the_page_shows_what_its_programs_print(page: str, tmp_path: Path) -> None:
    programs = shown(page)
    assert any(program.name for program in programs), f"{page} shows no output"
    for number, program in enumerate(programs):
        folder = tmp_path / str(number)
        folder.mkdir()
        prints_the_same_twice(folder, program)


@pytest.mark.parametrize("rest", ["print(jobs.qsize())", "assert jobs.qsize() == 1\nprint(1)"])
def test_a_program_that_leaves_a_message_behind_is_found(tmp_path: Path, rest: str) -> None:
    text = f"import shmq\njobs = shmq.open('left.shmq').queue('jobs')\njobs.put('left')\n{rest}\n"
    with pytest.raises(AssertionError, match="the second run"):
        prints_the_same_twice(tmp_path, Shown(text, "left.py", "1\n"))


@pytest.mark.parametrize("page", PAGES)
def test_each_program_that_prints_has_its_output_on_the_page(page: str) -> None:
    assert [program.text for program in shown(page) if "print(" in program.text and not program.name] == []
