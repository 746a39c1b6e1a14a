"""The programs of the documentation, and what is said of types, under mypy --strict."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo.tree import ROOT

FOLDER = Path(__file__).parent
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


# The settings of the tree stay out: programs end where they please. pyarrow comes without types; what pages show beside
# Spark need not be installed.
SETTINGS = """
[mypy]
strict = True
[mypy-pyarrow.*]
ignore_missing_imports = True
[mypy-deltalake.*,duckdb.*,polars.*,pyiceberg.*,pyspark.*]
follow_imports = skip
ignore_missing_imports = True
"""


def mypy(*paths: Path) -> str:
    """The findings of mypy --strict."""
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=/dev/stdin", *map(str, paths)],
        input=SETTINGS,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=110,
        check=False,
    )
    return result.stdout if result.returncode else ""


def test_every_program_type_checks() -> None:
    programs = sorted(path for path in (ROOT / "tests" / "programs").glob("*.py") if not path.name.startswith("test_"))
    assert len(programs) >= 4
    assert mypy(*programs) == ""


def test_bodies_keep_their_types_and_wrong_calls_are_errors() -> None:
    assert mypy(FOLDER / "inference.py", FOLDER / "in_place_of_multiprocessing.py") == ""


@pytest.fixture
def pages(tmp_path: Path) -> list[Path]:
    """Each program of README.md and of docs/, in a file of its own."""
    programs = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for number, program in enumerate(PROGRAM.findall(page.read_text())):
            programs.append(tmp_path / f"{page.stem.replace('-', '_')}_{number}.py")
            programs[-1].write_text(program)
    assert len(programs) >= 18
    return programs


def test_the_programs_of_all_pages_type_check(pages: list[Path]) -> None:
    assert mypy(*pages) == ""


def test_pyright_finds_nothing_in_the_programs_of_all_pages(pages: list[Path], tmp_path: Path) -> None:
    """With its own settings, as an editor shows it."""
    if shutil.which("node") is None:  # without one pyright would fetch it
        pytest.skip("pyright needs node, which is not on this machine")
    settings = {"extraPaths": [str(ROOT)], "pythonVersion": "3.11", "reportMissingImports": False}  # no Spark: unknown
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    shutil.copy(FOLDER / "in_place_of_multiprocessing.py", tmp_path)
    found = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout


def test_a_wrong_program_is_found(tmp_path: Path) -> None:
    program = tmp_path / "wrong.py"
    program.write_text('import shmq\nn: int = shmq.open().queue("a", codec="bytes").get()\n')
    assert 'Incompatible types in assignment (expression has type "bytes"' in mypy(program)
