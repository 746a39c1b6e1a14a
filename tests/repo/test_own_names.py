"""A name with an underscore is its class's own: another file uses what that class's file offers for it.

A class of the file may be of the kind of the other object: what it defines or inherits, the file may use on any object.
The classes of the native module have no file of Python; the files of shmq/core are theirs.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.repo.test_layers import MODULES as ALL
from tests.repo.test_layers import file_of
from tests.repo.tree import ROOT

# Instruments look inside of what they measure.
MODULES = [file for file in ALL if file.startswith(("shmq/", "tools/checker/"))]

NATIVE = "shmq/_native.pyi"
STANDARD = {
    "_native": "the module, which test_layers keeps to its importers",
    "_asdict": "named tuples have it, and the standard library documents it",
    "_exit": "os._exit is documented",
    "_fields": "named tuples have it, and the standard library documents it",
    "_make": "named tuples have it, and the standard library documents it",
    "_replace": "named tuples have it, and the standard library documents it",
}
WAY_TO_THE_CALLER = (
    "an attribute that C answers: behind a call, and in a frame of Python, a signal's handler could raise when the "
    "message counts as delivered and nobody has it yet"
)
# By file and name; each has a reason.
EXCEPTIONS = {
    ("shmq/whole_import.py", "_initializing"): "importlib says nowhere else that a module is half-made",
    ("shmq/engine/consumer/consumer.py", "_delivered"): WAY_TO_THE_CALLER,
    ("shmq/engine/queue/queue.py", "_delivered"): WAY_TO_THE_CALLER,
    (
        "shmq/engine/consumer/consumer.py",
        "_loop",
    ): "the number of the loop, written where each message is lent: no frame",
    ("shmq/mp/object_queue.py", "_extra_reducers"): "multiprocessing has no other way to its reducers",
    (
        "shmq/mp/process_broker.py",
        "_inheriting",
    ): "multiprocessing has no other way to say that a child is being set up",
    ("shmq/pool/importable.py", "_inheriting"): "multiprocessing has no other way to say that a child is being set up",
    ("shmq/spark/session.py", "_active_spark_context"): "PySpark has no other way to a context that is not to be made",
    ("shmq/spark/warm/function.py", "_jc"): "PySpark has no other way to the JVM's column",
    ("shmq/spark/warm/function.py", "_jdf"): "PySpark has no other way to the JVM's plan",
}


def is_own_word(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_self(node: ast.expr) -> bool:
    """self, cls or super()."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


class Sources:
    """Modules by name, and the names that their classes have."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.trees = {file: ast.parse(text) for file, text in texts.items()}
        self.classes = {
            (file, node.name): node
            for file, tree in self.trees.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
        }

    def imported(self, file: str) -> dict[str, str]:
        """By name in this file, the file of the tree that a class comes from."""
        found = {}
        for node in ast.walk(self.trees[file]):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                source = NATIVE if node.module == "shmq._native" else file_of(node.module)
                found.update({alias.asname or alias.name: source for alias in node.names if source is not None})
        return found

    def has(self, file: str, kind: str) -> set[str]:
        """The names that a class defines or inherits."""
        node = self.classes.get((file, kind))
        if node is None:  # the file has it from elsewhere
            source = self.imported(file).get(kind)
            return set() if source in (None, file) or source not in self.trees else self.has(source, kind)
        names = set(defined_in(node))
        for base in node.bases:
            names |= self.has(file, ast.unparse(base).partition("[")[0])
        return names

    def own(self, file: str) -> set[str]:
        """The names of the classes that lie in a file. A Protocol says what others have: these are not the file's."""
        kinds = {
            kind for source, kind in self.classes if source == file and not is_protocol(self.classes[source, kind])
        }
        if file.startswith("shmq/core/"):
            kinds |= {kind for kind, source in self.imported(file).items() if source == NATIVE}
        return {name for kind in kinds for name in self.has(file, kind)}

    def foreign(self, file: str) -> Iterator[tuple[int, str]]:
        """Yields line and name where a file uses what is another one's own."""
        own = self.own(file)
        for line, name in used_in(self.trees[file]):
            if name not in own and name not in STANDARD:
                yield line, name


def is_protocol(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).partition("[")[0] == "Protocol" for base in node.bases)


def defined_in(node: ast.ClassDef) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            yield inner.name
        elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and is_self(inner.value):
            yield inner.attr
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id


def used_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Own words that are asked of another object than self, also by their text, or imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_own_word(node.attr) and not is_self(node.value):
            yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, alias.name) for alias in node.names if is_own_word(alias.name))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in {
            "attrgetter",
            "delattr",
            "getattr",
            "hasattr",
            "methodcaller",
            "setattr",
        }:
            texts = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            if not is_self(node.args[0]):
                words = [word for text in texts if isinstance(text, str) for word in text.split(".")]
                yield from ((node.lineno, word) for word in words if is_own_word(word))


def sources_of_the_tree() -> Sources:
    return Sources({file: (ROOT / file).read_text() for file in [*MODULES, NATIVE]})


def test_no_file_uses_names_that_are_another_ones_own() -> None:
    sources = sources_of_the_tree()
    found = [(file, line, name) for file in MODULES for line, name in sources.foreign(file)]
    wrong = [f"{file}:{line} {name}" for file, line, name in found if (file, name) not in EXCEPTIONS]
    assert not wrong, "the file of that class has to offer a function for it:\n" + "\n".join(wrong)
    assert {(file, name) for file, _, name in found} == set(EXCEPTIONS)  # none is left that nothing needs


HOME = "shmq/engine/handle/open_queue.py"
OTHER = "shmq/engine/queue/queue.py"
HANDLE = "class OpenQueue(QueueHandle):\n    _kind = 1\n    def __init__(self) -> None:\n        self._name = ''\n"
NATIVE_HANDLE = "class QueueHandle:\n    def _settings(self) -> None: ...\n    _row: int\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("queue._name", ["_name"]),
        ("queue._name._kind", ["_name", "_kind"]),
        ("getattr(queue, '_name')", ["_name"]),
        ("attrgetter('_name')", ["_name"]),
        ("from shmq.engine.handle.open_queue import _kind_of", ["_kind_of"]),
        ("class Taker(Protocol):\n    _takers: int\ntaker._takers", ["_takers"]),
        ("class Other:\n    def f(self) -> None:\n        self._name = self._queue._name = 1", []),
        ("class Other:\n    def f(self) -> None:\n        self._queue._settings()", ["_settings"]),
        ("queue.name, queue.__class__, self._name, super()._name", []),
        ("found._asdict()", []),
        (
            "from shmq.engine.handle.open_queue import OpenQueue\nclass Queue(OpenQueue):\n    pass\n"
            "queue._name, queue._kind, queue._settings(), queue._row, queue._other",
            ["_other"],
        ),
    ],
)
def test_a_foreign_name_is_found_in_every_spelling(source: str, expected: list[str]) -> None:
    home = f"from shmq._native import QueueHandle\n{HANDLE}"
    sources = Sources({NATIVE: NATIVE_HANDLE, HOME: home, OTHER: source})
    assert sorted(name for _, name in sources.foreign(OTHER)) == sorted(expected)
    assert list(sources.foreign(HOME)) == []


def test_the_core_is_the_file_of_the_native_classes() -> None:
    source = "from shmq._native import QueueHandle\nsettings_of = QueueHandle._settings\n"
    sources = Sources({NATIVE: NATIVE_HANDLE, "shmq/core/handles.py": source, OTHER: source})
    assert list(sources.foreign("shmq/core/handles.py")) == []
    assert [name for _, name in sources.foreign(OTHER)] == ["_settings"]
