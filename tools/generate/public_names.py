"""Every name that a user of shmq can type: classes, functions, methods and properties, with their docstrings."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, GetSetDescriptorType, MethodDescriptorType, ModuleType
from typing import Any, Final, NamedTuple, get_overloads, is_typeddict

import shmq
import shmq.mp
import shmq.spark

MODULES: Final[tuple[ModuleType, ...]] = (shmq, shmq.mp, shmq.spark)


class Public(NamedTuple):
    """A class, function, method or property that a user can type."""

    name: str
    thing: Any
    kind: str
    typed: FunctionType | None = None  # how a source of Python writes it, if it is made in C

    @property
    def text(self) -> str:
        return inspect.getdoc(self.thing) or ""

    @property
    def is_called(self) -> bool:
        """Whether somebody calls it with arguments of his own: of a class, whether he makes objects of it."""
        if self.kind == "property" or is_typeddict(self.thing):
            return False
        if self.kind != "class":
            return True
        if is_made_by_others(self.thing) or issubclass(self.thing, BaseException):
            return False
        return list(inspect.signature(self.thing).parameters) != ["args", "kwargs"]

    def signatures(self) -> list[inspect.Signature]:
        """Several: it is overloaded."""
        found = get_overloads(self.thing) if inspect.isfunction(self.thing) else []
        return [signature_in_source(each) for each in found or [self.typed or self.thing]]

    def parameters(self) -> list[str]:
        own = self.typed or self.thing
        return [name for name in signature_in_source(own).parameters if name != "self"] if self.is_called else []


def signature_in_source(thing: Any) -> inspect.Signature:
    """With `**options`, in place of which completion shows each of them."""
    if inspect.isfunction(thing) and "__signature__" in vars(thing):
        copy = FunctionType(thing.__code__, thing.__globals__, thing.__name__, thing.__defaults__, thing.__closure__)
        copy.__kwdefaults__, copy.__annotations__ = thing.__kwdefaults__, thing.__annotations__
        return inspect.signature(copy)
    return inspect.signature(thing)


def typed_in_source(kind: type, name: str) -> FunctionType:
    """A method that is made in C, as the class's source declares it under `if TYPE_CHECKING`."""
    tree = ast.parse(Path(inspect.getsourcefile(kind) or "").read_text())
    bodies = (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind.__name__)
    blocks = (node.body for body in bodies for node in body if isinstance(node, ast.If))
    (found,) = (node for block in blocks for node in block if isinstance(node, ast.FunctionDef) and node.name == name)
    found.decorator_list = []
    made: dict[str, Any] = {}
    later = ast.parse("from __future__ import annotations").body
    exec(compile(ast.Module([*later, found], []), name, "exec"), made)
    function: FunctionType = made[name]
    return function


def is_protocol(thing: Any) -> bool:
    return inspect.isclass(thing) and bool(vars(thing).get("_is_protocol"))


def told_by_bases(kind: type) -> list[type]:
    """The public classes that tell of what this one inherits."""
    return [base for base in kind.__mro__[1:] if any(base in vars(module).values() for module in MODULES)]


def is_made_by_others(kind: type) -> bool:
    """Such as Message, and the snapshots: nobody calls these classes himself."""
    return kind in (shmq.Broker, shmq.Queue, shmq.Consumer, shmq.Message, shmq.Loan) or (
        kind.__module__ == "shmq.statistics"
    )


def is_property(value: object) -> bool:
    return isinstance(value, property | GetSetDescriptorType)


def members(module: str, kind: type) -> Iterator[Public]:
    # Classes written in C come first, for put and get; then the others.
    first = ("QueueHandle", "OpenQueue")
    for base in sorted(kind.__mro__, key=lambda base: (*first, base.__name__).index(base.__name__)):
        if not base.__module__.startswith("shmq") or base in told_by_bases(kind) or is_protocol(base):
            continue
        # Properties first, which the page tells in one list.
        for name, value in sorted(vars(base).items(), key=lambda item: not is_property(item[1])):
            whole = f"{module}.{kind.__name__}.{name}"
            if name.startswith("_"):
                continue
            if isinstance(value, property):
                yield Public(whole, value, "property")
            elif isinstance(value, GetSetDescriptorType):
                yield Public(whole, value, "property", typed_in_source(kind, name))
            elif isinstance(value, MethodDescriptorType):
                yield Public(whole, value, "method", typed_in_source(kind, name))
            elif inspect.isfunction(value):
                yield Public(whole, value, "method")


def public(module: ModuleType) -> Iterator[Public]:
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value):
            yield Public(f"{module.__name__}.{name}", value, "class")
            if not is_typeddict(value) and not (issubclass(value, BaseException) and value is not shmq.ShmqError):
                yield from members(module.__name__, value)
        elif inspect.isfunction(value):
            yield Public(f"{module.__name__}.{name}", value, "function")
