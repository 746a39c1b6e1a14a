"""The programs on the pages of docs/ run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    "docs/broker.md",
    "docs/consumers.md",
    "docs/dead-letters.md",
    "docs/event-loops.md",
    "docs/groups.md",
    "docs/limits.md",
    "docs/pipelines.md",
    "docs/priorities.md",
    "docs/selectors.md",
    "docs/time.md",
]
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page_run(page: str, tmp_path: Path) -> None:
    programs = PROGRAM.findall((ROOT / page).read_text())
    assert programs, f"{page} has no program"
    for number, program in enumerate(programs):
        folder = tmp_path / str(number)
        folder.mkdir()
        command = [sys.executable, "-c", program]
        if "def test_" in program:
            (folder / "test_program.py").write_text(program)
            command = [sys.executable, "-m", "pytest", "-q", "test_program.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, f"{page}:\n{program}\n{done.stdout}{done.stderr}"
