"""The input: source files of Python."""

from __future__ import annotations

import os
import random
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SourceTree", "standard_library"]

_OTHERS = {"site-packages", "dist-packages", "__pycache__"}  # installed beside the standard library, not part of it


def standard_library() -> Path:
    """Where the running Python has its own modules."""
    return Path(sysconfig.get_path("stdlib"))


@dataclass(frozen=True)
class SourceTree:
    """The *.py files of a directory.

    Attributes:
        root: the directory.
        names: of the files, relative to it, in the order in which they are worked on.
        size: bytes of all of them, when they were found.
    """

    root: Path
    names: tuple[str, ...]
    size: int

    @classmethod
    def found_in(cls, root: Path, seed: int) -> SourceTree:
        """All of them, in an order that depends on the seed alone. Files whose names are not UTF-8 are left out."""
        names, size = [], 0
        for name, length in sorted(_files(root)):
            names.append(name)
            size += length
        random.Random(seed).shuffle(names)
        return cls(root, tuple(names), size)

    def read(self, name: str) -> bytes:
        """The content of a file."""
        return (self.root / name).read_bytes()


def _files(root: Path) -> Iterator[tuple[str, int]]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _OTHERS]
        for name in names:
            path = Path(folder, name)
            if name.endswith(".py") and path.is_file() and str(path.relative_to(root)).isprintable():
                yield str(path.relative_to(root)), path.stat().st_size
