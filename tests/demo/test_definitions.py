"""The counts of a file, and the choice of files."""

from pathlib import Path

import pytest

from shmq.demo.definitions import Definitions
from shmq.demo.sources import SourceTree, standard_library

SOURCE = b"""import os, sys
from a import b
class C:
    def f(self):
        async def g(): pass
def h(): return lambda: 0"""


def test_functions_classes_imports_and_lines_are_counted() -> None:
    assert Definitions.of(SOURCE) == Definitions(functions=3, classes=1, imports=2, lines=6, parsed=True)


@pytest.mark.parametrize("source", [b"def f(:\n", b"x = '\xff'\n", b"# coding: no-such-thing\nx = 1\n", b"x = 1\0\n"])
def test_what_does_not_parse_is_counted_as_that(source: bytes) -> None:
    assert Definitions.of(source) == Definitions(0, 0, 0, source.count(b"\n"), False)


def test_an_empty_file_is_a_file_without_lines() -> None:
    assert Definitions.of(b"") == Definitions(0, 0, 0, 0, True)


def test_a_source_that_warns_does_so_silently(recwarn: pytest.WarningsRecorder) -> None:
    assert Definitions.of(b"x = '\\d'\n").parsed
    assert not recwarn.list


def test_files_of_a_tree_are_found_without_what_is_installed_beside_it(tmp_path: Path) -> None:
    for name in ("a.py", "b/c.py", "b/notes.txt", "site-packages/d.py", "__pycache__/e.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x\n")
    tree = SourceTree.found_in(tmp_path, seed=1)
    assert (sorted(tree.names), tree.size, tree.read("b/c.py")) == (["a.py", "b/c.py"], 4, b"x\n")


def test_the_order_of_files_depends_on_the_seed_alone() -> None:
    root = standard_library() / "json"
    names = SourceTree.found_in(root, seed=3).names
    assert names == SourceTree.found_in(root, seed=3).names
    assert sorted(names) == sorted(SourceTree.found_in(root, seed=4).names)
    assert "decoder.py" in names
