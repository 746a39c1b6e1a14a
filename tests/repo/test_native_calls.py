"""The native module declares what it calls in Python: the names in native/python are those of shmq/_native.pyi."""

import ast
import collections.abc
import inspect
import re
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import shmq
import shmq.codec_json
import shmq.errors
from shmq.engine.handle.open_queue import OpenQueue
from tests.repo.tree import ROOT, files

if TYPE_CHECKING:
    from shmq._native import ConsumerCalls, ErrorCalls, LockCalls, MessageCalls, OpenQueueCalls, QueueCalls

    def conform(  # mypy compares the signatures
        opened: OpenQueue, queue: shmq.Queue[Any], consumer: shmq.Consumer[Any], message: shmq.Message[Any]
    ) -> tuple[OpenQueueCalls, QueueCalls, ConsumerCalls, MessageCalls, LockCalls, ErrorCalls]:
        return opened, queue, consumer, message, threading.RLock(), shmq.errors


ANSWERS: dict[str, Any] = {
    "OpenQueueCalls": OpenQueue,
    "QueueCalls": shmq.Queue,
    "ConsumerCalls": shmq.Consumer,
    "MessageCalls": shmq.Message,
    "LockCalls": threading.RLock(),
    "ErrorCalls": shmq.errors,
    "ContainerCalls": collections.abc,
    "JsonCalls": shmq.codec_json,
}
# Functions of C that take the name as an argument.
BY_ARGUMENT = ("call_slow", "is_error")

NOISE = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
RECEIVER = r"(?:\(PyObject \*\))?[\w>.\-]+"
CALL = re.compile(
    rf"PyObject_(CallMethod|GetAttrString|SetAttrString)\(\s*{RECEIVER},\s*(\"\w+\"|\w+)(?:,\s*(?:\"(\w*)\"|(NULL)))?"
)
ANY_CALL = re.compile(r"PyObject_(?:Vectorcall|Call|Get|GetOptional|Has|Set|Del)(?:Method|Attr)\w*\(")
HANDED = re.compile(rf"\b(?:{'|'.join(BY_ARGUMENT)})\(([^;]*?)\)[ )]*[;{{]")
TEXT = re.compile(r'"(\w+)"')


class Upcall(NamedTuple):
    """A call of C to a Python object; arguments: how many, if the text says so."""

    name: str
    arguments: int | None


def upcalls(text: str) -> Iterator[Upcall]:
    """Those of a source. Raises ValueError for a call whose name cannot be read."""
    text = NOISE.sub(" ", text)
    found = list(CALL.finditer(text))
    if len(found) != len(ANY_CALL.findall(text)):
        raise ValueError("a call that is spelled in another way")
    for match in found:
        kind, name, formats, nothing = match.groups()
        if name.startswith('"'):
            counted = kind == "CallMethod" and (formats is not None or nothing is not None)
            yield Upcall(name.strip('"'), len(formats or "") if counted else None)
        elif not any(re.search(rf"\b{function}\([^;]*\b{name}\b[^;]*\) \{{", text) for function in BY_ARGUMENT):
            raise ValueError(f"{name}: a name that is known at run time only")
    for handed in HANDED.findall(text):
        yield from (Upcall(name, None) for name in TEXT.findall(handed))


def declared(stub: str) -> dict[str, dict[str, int | None]]:
    """By protocol, its names with the number of arguments; None: an attribute."""
    found: dict[str, dict[str, int | None]] = {}
    for node in ast.parse(stub).body:
        if not isinstance(node, ast.ClassDef) or not node.name.endswith("Calls"):
            continue
        names: dict[str, int | None] = {}
        for inner in node.body:
            if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                names[inner.target.id] = None
            elif isinstance(inner, ast.FunctionDef):
                given = len(inner.args.posonlyargs) + len(inner.args.args) - 1
                names[inner.name] = None if inner.decorator_list else given
        found[node.name] = names
    return found


def called() -> set[Upcall]:
    return {call for path in files("native/python", ".c", ".h") for call in upcalls(path.read_text())}


def test_what_c_calls_back_is_declared_and_what_is_declared_is_called() -> None:
    names = [name for names in declared((ROOT / "shmq/_native.pyi").read_text()).values() for name in names]
    assert len(names) > 20
    assert sorted(names) == sorted({call.name for call in called()})


def test_c_gives_as_many_arguments_as_are_declared() -> None:
    protocols = declared((ROOT / "shmq/_native.pyi").read_text())
    expected = {name: count for names in protocols.values() for name, count in names.items()}
    wrong = [call for call in called() if call.arguments is not None and call.arguments != expected.get(call.name)]
    assert not wrong


def test_the_classes_that_c_calls_have_what_is_declared() -> None:
    protocols = declared((ROOT / "shmq/_native.pyi").read_text())
    assert set(protocols) == {*ANSWERS, "AcceptedCalls"}  # of any exception
    for protocol, answer in ANSWERS.items():
        for name, count in protocols[protocol].items():
            function = getattr(answer, name)
            if count is not None and inspect.isfunction(function):
                inspect.signature(function).bind(*[None] * (count + 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('PyObject_CallMethod((PyObject *)self->consumer, "_one", NULL);', [("_one", 0)]),
        ('PyObject_CallMethod(o, "_two", "sO",\n    text, o);', [("_two", 2)]),
        ('PyObject_GetAttrString(o, "_three");', [("_three", None)]),
        ('PyObject_SetAttrString(error, "four", count);', [("four", None)]),
        ('/* PyObject_CallMethod(o, "_no", NULL) */', []),
        (
            "int is_error(const char *name) {\n    PyObject_GetAttrString(module, name);\n}\n"
            'if (is_error(first ? "Five" : "Six")) {\n}',
            [("Five", None), ("Six", None)],
        ),
    ],
)
def test_an_upcall_is_found_in_every_spelling(text: str, expected: list[tuple[str, int | None]]) -> None:
    assert [tuple(call) for call in upcalls(text)] == expected


@pytest.mark.parametrize(
    "text",
    [
        "PyObject_GetAttrString(o, name);",
        "PyObject_GetAttr(o, name);",
        "PyObject_CallMethodNoArgs(o, name);",
        'PyObject_CallMethod(o + 1, "_x", NULL);',
    ],
)
def test_an_upcall_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"name|spelled"):
        list(upcalls(text))
