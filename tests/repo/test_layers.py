"""Imports go downward: the import graph of shmq and of the packages in tools/ is compared with tools/layers.toml."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from tests.repo.tree import ROOT, files, name_of

TABLE = tomllib.loads((ROOT / "tools" / "layers.toml").read_text())
LAYERS: list[tuple[str, list[str]]] = [(layer["name"], layer["modules"]) for layer in TABLE["layer"]]
# A user gets an object of a higher room from a lower one: by file and name, the property that answers it.
ANSWERS = {
    ("shmq/engine/message/message.py", "shmq.engine.queue.queue.Queue"): "queue",
    ("shmq/engine/queue/queue.py", "shmq.engine.broker.broker.Broker"): "broker",
}
IMPORTERS: dict[str, list[str]] = TABLE["importers"]
# Packages, and where the folder with their name lies.
FOLDERS = ("builds", "checker", "checks", "generate", "instruments", "steps")
PACKAGES = {"shmq": ""} | dict.fromkeys(FOLDERS, "tools/")
MODULES = [name_of(path) for package, base in PACKAGES.items() for path in files(f"{base}{package}", ".py")]


@dataclass(frozen=True)
class Import:
    """One import: the file, the line and the full dotted name that it asks for."""

    file: str
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def matches(file: str, patterns: list[str]) -> bool:
    """`folder/**` means everything below the folder; anything else is a plain path."""
    return any(
        file.startswith(pattern.removesuffix("**")) if pattern.endswith("/**") else file == pattern
        for pattern in patterns
    )


def ranks_of(file: str) -> list[int]:
    return [rank for rank, (_, patterns) in enumerate(LAYERS) if matches(file, patterns)]


def imports_of(file: str, source: str) -> Iterator[Import]:
    """Yields every import of a module, wherever in the file it stands: a late import is a dependency as well."""
    package = PurePosixPath(file.removeprefix("tools/")).parent.parts
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            parent = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield Import(file, node.lineno, f"{parent}.{alias.name}")
        elif isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            argument = node.args[0]
            if called in {"import_module", "__import__"} and isinstance(argument, ast.Constant):
                yield Import(file, node.lineno, str(argument.value))


def file_of(module: str) -> str | None:
    """Returns the file of the tree that a dotted name leads to; a name inside a module leads to that module."""
    parts = module.split(".")
    while parts:
        stem = PACKAGES.get(parts[0], "") + "/".join(parts)
        for candidate in (f"{stem}.py", f"{stem}/__init__.py"):
            if (ROOT / candidate).is_file():
                return candidate
        parts.pop()
    return None


def upward(found: Import) -> bool:
    """True if the import leads from a lower layer to a higher one."""
    if found.module.split(".")[0] not in PACKAGES or owner_of(found) is not None:
        return False
    if (target := file_of(found.module)) is None:
        return False
    mine, theirs = ranks_of(found.file), ranks_of(target)
    return bool(mine) and bool(theirs) and max(theirs) > min(mine)


def typing_lines(source: str) -> set[int]:
    """The lines of a module that only type checkers read."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            found.update(line for inner in node.body for line in range(inner.lineno, (inner.end_lineno or 0) + 1))
    return found


def is_answer(found: Import, source: str) -> bool:
    """True if the import is for type checkers, and for what one property answers: nothing is called by it."""
    answered = ANSWERS.get((found.file, found.module))
    if answered is None or found.line not in typing_lines(source):
        return False
    name = found.module.rpartition(".")[2]
    told = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name) and node.id == name]
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == answered]
    returns = [node.returns for node in functions if node.returns is not None]
    places = [(n.lineno, n.col_offset) for one in returns for n in ast.walk(one) if isinstance(n, ast.Name)]
    return all((node.lineno, node.col_offset) in places for node in told)


def owner_of(found: Import) -> str | None:
    """Returns the entry of the importers table that an import falls under; None for ours and the standard library."""
    if found.module == "shmq._native" or found.module.startswith("shmq._native."):
        return "shmq._native"
    top = found.module.split(".")[0]
    return None if top in PACKAGES or top in sys.stdlib_module_names else top


def all_imports() -> list[Import]:
    return [found for file in MODULES for found in imports_of(file, (ROOT / file).read_text())]


def test_every_module_lies_in_exactly_one_layer() -> None:
    wrong = [f"{file} lies in {[LAYERS[rank][0] for rank in ranks_of(file)]}" for file in MODULES]
    wrong = [line for file, line in zip(MODULES, wrong, strict=True) if len(ranks_of(file)) != 1]
    assert not wrong, "give each module one layer in tools/layers.toml:\n" + "\n".join(wrong)


def test_imports_go_downward_only() -> None:
    wrong = [str(one) for one in all_imports() if upward(one) and not is_answer(one, (ROOT / one.file).read_text())]
    assert not wrong, "these imports go upward (tools/layers.toml):\n" + "\n".join(wrong)


def test_the_native_module_and_third_parties_are_imported_by_their_owners_only() -> None:
    wrong = []
    for found in all_imports():
        owner = owner_of(found)
        if owner is not None and not matches(found.file, IMPORTERS.get(owner, [])):
            wrong.append(str(found))
    assert not wrong, "not allowed by [importers] in tools/layers.toml:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import shmq.engine.queue.queue", ["shmq.engine.queue.queue"]),
        ("from shmq.core import ring", ["shmq.core.ring"]),
        ("from . import ring, slot", ["shmq.core.ring", "shmq.core.slot"]),
        ("from ..engine import queue", ["shmq.engine.queue"]),
        ("def late():\n    from shmq.cli import main", ["shmq.cli.main"]),
        ("import importlib\nimportlib.import_module('shmq.mp')", ["importlib", "shmq.mp"]),
    ],
)
def test_an_import_is_seen_in_every_spelling(source: str, expected: list[str]) -> None:
    assert [found.module for found in imports_of("shmq/core/segment.py", source)] == expected


def test_an_upward_import_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("shmq/core/ring.py", "shmq/engine/queue/queue.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert upward(Import("shmq/core/ring.py", 1, "shmq.engine.queue.queue.Queue"))
    assert not upward(Import("shmq/engine/queue/queue.py", 1, "shmq.core.ring"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    def queue(self) -> Queue[T]: ...\n", True),
        (
            "    def queue(self) -> Queue[T]: ...\n    def by(self, other: Queue[T]) -> None: ...\n",
            False,
        ),
        ("    def other(self) -> Queue[T]: ...\n", False),
    ],
)
def test_a_type_from_above_is_for_one_answer_only(body: str, expected: bool) -> None:
    (file, module) = next(iter(ANSWERS))
    head = "if TYPE_CHECKING:\n    from shmq.engine.queue.queue import Queue\nclass Message:\n"
    assert is_answer(Import(file, 2, module), head + body) is expected
    assert not is_answer(Import(file, 1, module), head.partition("\n    ")[2] + body)  # at run time
    assert not is_answer(Import("shmq/engine/message/loan.py", 2, module), head + body)


def test_the_judge_of_segments_imports_nothing_of_what_it_judges() -> None:
    judges = [file for file in MODULES if file.startswith("tools/checker/")]
    assert judges
    found = [str(found) for found in all_imports() if found.file in judges and found.module.split(".")[0] == "shmq"]
    assert not found
