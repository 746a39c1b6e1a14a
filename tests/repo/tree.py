"""The files of the checkout, as the tests about the tree see them."""

import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Files that tools and builds leave behind are no part of the tree.
GENERATED = {".git", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__", "build", "dist"}


def files(folder: str = ".", *suffixes: str) -> Iterator[Path]:
    """Yields the files below a folder, in order; with suffixes only those that end so."""
    for directory, folders, names in os.walk(ROOT / folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in GENERATED and not name.startswith(".venv") and not name.endswith(".egg-info")
        )
        for name in sorted(names):
            path = Path(directory, name)
            if name in GENERATED:  # .git is a file where the tree is a worktree of another checkout
                continue
            if path.is_file() and (not suffixes or path.suffix in suffixes):
                yield path


def name_of(path: Path) -> str:
    """Returns the path as it is written in messages and tables: from the root of the checkout, with slashes."""
    return path.relative_to(ROOT).as_posix()
