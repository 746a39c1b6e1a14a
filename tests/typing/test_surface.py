"""The package has exactly the names and signatures of the listings beside this file, as far as their stage is built."""

import ast
import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import GetSetDescriptorType

import pytest

import shmq
import shmq.errors
import shmq.mp

FOLDER = Path(__file__).parent
LISTINGS = {"shmq": shmq, "errors": shmq.errors, "mp": shmq.mp}
LATER = re.compile(r"#\s*\[(semantics|flow|log|spark|integrations)\]")
LATER_AT_END = re.compile(r"#.*\[(semantics|flow|log|spark|integrations)\][\s-]*$")
TYPE_VARIABLES = {"T", "R"}
# A protocol instead of the class: options lie at the bottom and import no queues.
OTHERWISE = {"QueueOptions.dead_letter": "str | Named"}

Definition = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Entry:
    """One class or function of a listing, by its dotted name."""

    name: str
    nodes: tuple[Definition, ...]  # several: overloads
    later: bool


class Listing:
    """A stub with stage marks in its comments."""

    def __init__(self, name: str) -> None:
        self.lines = (FOLDER / f"{name}_surface.pyi").read_text().splitlines()
        self.tree = ast.parse("\n".join(self.lines))
        for argument in (node for node in ast.walk(self.tree) if isinstance(node, ast.arg) and node.annotation):
            if LATER.search(self.lines[argument.lineno - 1]):  # type checkers refuse what is not built
                argument.annotation = ast.Constant(None)

    def _is_later(self, node: Definition) -> bool:
        own = self.lines[(node.lineno if isinstance(node, ast.ClassDef) else node.end_lineno or 0) - 1]
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        above = self.lines[first - 2].strip()
        section = next((line for line in reversed(self.lines[:first]) if line.startswith("# ----")), "")
        heading = above if above.startswith("#") and node.col_offset else ""
        return bool(LATER.search(own) or LATER_AT_END.search(heading) or LATER_AT_END.search(section.rstrip("-")))

    def entries(self) -> Iterator[Entry]:
        yield from self._below(self.tree.body, "")

    def _below(self, body: list[ast.stmt], prefix: str) -> Iterator[Entry]:
        found: dict[str, list[Definition]] = {}
        for node in body:
            if isinstance(node, Definition):
                found.setdefault(node.name, []).append(node)
        for name, nodes in found.items():
            entry = Entry(prefix + name, tuple(nodes), any(map(self._is_later, nodes)))
            yield entry
            if isinstance(nodes[0], ast.ClassDef) and not entry.later:
                yield from self._below(nodes[0].body, f"{entry.name}.")

    def variables(self) -> set[str]:
        targets = [n.targets[0] for n in self.tree.body if isinstance(n, ast.Assign)]
        targets += [n.target for n in self.tree.body if isinstance(n, ast.AnnAssign)]
        return {t.id for t in targets if isinstance(t, ast.Name)} - TYPE_VARIABLES


ENTRIES = {(name, entry.name): entry for name in LISTINGS for entry in Listing(name).entries()}
FUNCTIONS = [k for k, e in ENTRIES.items() if isinstance(e.nodes[0], ast.FunctionDef) and not e.later]
CLASSES = [k for k, e in ENTRIES.items() if isinstance(e.nodes[0], ast.ClassDef) and not e.later]


def has_fields(key: tuple[str, str]) -> bool:
    return any(isinstance(node, ast.AnnAssign) for node in ENTRIES[key].nodes[0].body)


def resolve(listing: str, dotted: str) -> object:
    found: object = LISTINGS[listing]
    for part in dotted.split("."):
        found = inspect.getattr_static(found, part) if isinstance(found, type) else getattr(found, part)
    return found


def tree_of(thing: type | types.FunctionType) -> ast.Module:
    return ast.parse(Path(inspect.getsourcefile(thing) or "").read_text())


def definitions(module: ast.Module, scope: str | None, name: str) -> list[ast.FunctionDef]:
    """The definitions of this name in a source: the overloads, or the one; also within `if TYPE_CHECKING`."""
    body = module.body
    if scope is not None:
        body = next(node for node in body if isinstance(node, ast.ClassDef) and node.name == scope).body
    body = [inner for node in body for inner in (node.body if isinstance(node, ast.If) else [node])]
    found = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    overloads = [node for node in found if "overload" in map(ast.unparse, node.decorator_list)]
    return overloads or found


def in_source(listing: str, dotted: str) -> list[ast.FunctionDef]:
    scope, _, name = dotted.rpartition(".")
    if not scope:
        function = getattr(LISTINGS[listing], name)
        return definitions(tree_of(function), None, name)
    kind = resolve(listing, scope)
    assert isinstance(kind, type)
    for base in kind.__mro__:
        if base.__module__.startswith("shmq") and base.__module__ != "shmq._native":
            found = definitions(tree_of(base), base.__name__, name)
            if found:
                return found
    return []


def spelled(annotation: ast.expr | None) -> str:
    """An annotation without the quotes that only the order of a source asks for, and without names of modules."""
    text = ast.unparse(annotation).replace("'", "").replace('"', "") if annotation is not None else "-"
    return re.sub(r"\b[a-z_]+\.(?=[A-Z])", "", text)


def signature(node: ast.FunctionDef) -> str:
    given = node.args
    parts = []
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    for argument, default in zip(plain, defaults, strict=True):
        parts.append((argument, default, ""))
    if given.vararg:
        parts.append((given.vararg, None, "*"))
    elif given.kwonlyargs:
        parts.append((ast.arg("*"), None, ""))
    parts += [(a, d, "") for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    if given.kwarg:
        parts.append((given.kwarg, None, "**"))
    texts = [
        f"{star}{argument.arg}: {spelled(argument.annotation)}" + (f" = {ast.unparse(default)}" if default else "")
        for argument, default, star in parts
    ]
    decorators = sorted({ast.unparse(d) for d in node.decorator_list} & {"property", "overload"})
    return f"{decorators} ({', '.join(texts)}) -> {spelled(node.returns)}"


@pytest.mark.parametrize("key", FUNCTIONS, ids=".".join)
def test_a_function_has_the_signature_of_the_listing(key: tuple[str, str]) -> None:
    built = in_source(*key)
    assert [signature(node) for node in built] == [
        signature(node) for node in ENTRIES[key].nodes if isinstance(node, ast.FunctionDef)
    ]


@pytest.mark.parametrize("key", [key for key in FUNCTIONS if len(ENTRIES[key].nodes) == 1], ids=".".join)
def test_a_function_takes_at_run_time_what_its_types_say(key: tuple[str, str]) -> None:
    (node,) = ENTRIES[key].nodes
    assert isinstance(node, ast.FunctionDef)
    found = resolve(*key)
    if isinstance(found, property | GetSetDescriptorType):
        assert "property" in map(ast.unparse, node.decorator_list)
        return
    assert callable(found)
    parameters = inspect.signature(found).parameters.values()
    kinds = {p.name: (p.kind.name.replace("_ONLY", ""), p.default is p.empty) for p in parameters}
    given = node.args
    optional = dict.fromkeys(a.arg for a in given.args[len(given.args) - len(given.defaults) :])
    expected = {a.arg: ("POSITIONAL", True) for a in given.posonlyargs}  # none of them has a default
    expected |= {a.arg: ("POSITIONAL_OR_KEYWORD", a.arg not in optional) for a in given.args}
    if given.vararg:
        expected[given.vararg.arg] = ("VAR_POSITIONAL", True)
    expected |= {a.arg: ("KEYWORD", d is None) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True)}
    if given.kwarg:
        expected[given.kwarg.arg] = ("VAR_KEYWORD", True)
    if not isinstance(found, types.FunctionType | type):  # C takes its arguments by place
        kinds = {n: ("POSITIONAL_OR_KEYWORD" if k == "POSITIONAL" else k, r) for n, (k, r) in kinds.items()}
    assert kinds == expected


@pytest.mark.parametrize("key", [key for key in CLASSES if has_fields(key)], ids=".".join)
def test_a_class_has_the_fields_of_the_listing(key: tuple[str, str]) -> None:
    (node,) = ENTRIES[key].nodes
    listed = {
        n.target.id: OTHERWISE.get(f"{key[1]}.{n.target.id}", spelled(n.annotation))
        for n in node.body
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    kind = resolve(*key)
    assert isinstance(kind, type)
    if issubclass(kind, BaseException):
        assert set(listed) <= set(vars(kind())) | set(dir(kind))
        return
    source = next(n for n in tree_of(kind).body if isinstance(n, ast.ClassDef) and n.name == kind.__name__)
    built = {
        n.target.id: spelled(n.annotation)
        for n in source.body
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    aliases = {"DeathReason", "ProcessState"}
    built = {name: spelled_out(kind, text) if text in aliases else text for name, text in built.items()}
    assert list(built.items()) == list(listed.items())
    if dataclasses.is_dataclass(kind):
        assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]


def spelled_out(kind: type, alias: str) -> str:
    values = typing.get_args(getattr(inspect.getmodule(kind), alias))
    return f"Literal[{', '.join(values)}]"


@pytest.mark.parametrize("key", CLASSES, ids=".".join)
def test_a_class_has_the_bases_of_the_listing(key: tuple[str, str]) -> None:
    (node,) = ENTRIES[key].nodes
    assert isinstance(node, ast.ClassDef)
    kind = resolve(*key)
    assert isinstance(kind, type)
    names = {base.__name__ for base in kind.__mro__}
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
        assert name in names or (name == "TypedDict" and issubclass(kind, dict))


def test_the_public_names_are_those_of_the_listing_and_no_others() -> None:
    listing = Listing("shmq")
    top = {entry.name for entry in listing.entries() if "." not in entry.name and not entry.later}
    imported = {
        alias.asname
        for node in listing.tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "shmq.errors"
        for alias in node.names
        if alias.asname
    }
    assert set(shmq.__all__) == top | imported | listing.variables()


def test_no_class_has_public_methods_that_the_listing_does_not_know() -> None:
    extra = []
    for listing, name in CLASSES:
        kind = resolve(listing, name)
        assert isinstance(kind, type)
        if listing != "shmq" or issubclass(kind, dict) or dataclasses.is_dataclass(kind):
            continue
        known = {key[1].rpartition(".")[2] for key in ENTRIES if key[0] == listing and key[1].startswith(f"{name}.")}
        later = {entry.name for key, entry in ENTRIES.items() if entry.later}
        for member in dir(kind):
            if not member.startswith("_") and (member not in known or f"{name}.{member}" in later):
                extra.append(f"{name}.{member}")
    # Whether a consumer is closed is asked by the pool.
    assert set(extra) <= {"Consumer.closed"}


def test_marks_of_stages_are_read() -> None:
    later = {entry.name for entry in ENTRIES.values() if entry.later}
    assert {"Broker.exchange", "Queue.request", "Exchange"} <= later
    assert {"Executor", "Transaction"} <= later
    assert (
        not {
            "open",
            "Broker.queue",
            "Queue.purge",
            "Queue.alter",
            "Queue.consumer",
            "Consumer.fileno",
            "Message.release",
        }
        & later
    )
    assert len(FUNCTIONS) > 80
