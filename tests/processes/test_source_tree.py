"""A Python that is started in a checkout that is not built for it says so."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import shmq

SOURCE = Path(shmq.__file__).parent


def refused(folder: Path, *arguments: str) -> str:
    """Python's last line in this folder. With -S an editable install does not find the native core elsewhere."""
    done = subprocess.run([sys.executable, "-S", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    return done.stderr.splitlines()[-1]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(SOURCE, tmp_path / "shmq", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return tmp_path


@pytest.mark.parametrize("arguments", [["-c", "import shmq"], ["-m", "shmq"], ["-m", "shmq", "ls"]])
def test_the_source_tree_says_what_it_is_and_where_to_go(tree: Path, arguments: list[str]) -> None:
    (tree / "pyproject.toml").touch()
    text = refused(tree, *arguments)
    assert text.startswith(f"ImportError: {tree} is the source tree of shmq, and is not built")
    assert f"use {tree}/.venv/bin/python" in text
    assert "circular" not in text


def test_an_installation_without_its_native_core_says_so(tree: Path) -> None:
    assert refused(tree, "-c", "import shmq") == f"ImportError: shmq in {tree} has no native core; install shmq again"
