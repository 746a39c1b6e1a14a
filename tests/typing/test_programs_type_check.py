"""The programs of the documentation, and what is said of types, under mypy --strict."""

import subprocess
import sys
from pathlib import Path

from tests.repo.tree import ROOT

FOLDER = Path(__file__).parent


def mypy(*paths: Path) -> str:
    """What mypy --strict finds; the settings of the tree stay out: programs end where they please."""
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", *map(str, paths)],
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
    assert len(programs) >= 7
    assert mypy(*programs) == ""


def test_bodies_keep_their_types_and_wrong_calls_are_errors() -> None:
    assert mypy(FOLDER / "inference.py", *sorted(FOLDER.glob("*.pyi"))) == ""


def test_a_wrong_program_is_found(tmp_path: Path) -> None:
    program = tmp_path / "wrong.py"
    program.write_text('import shmq\nn: int = shmq.open().queue("a", codec="bytes").get()\n')
    assert 'Incompatible types in assignment (expression has type "bytes"' in mypy(program)
