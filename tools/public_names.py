"""Every name that a user of shmq can type: classes, functions, methods and properties, with their docstrings."""

import inspect
from collections.abc import Iterator
from types import MethodDescriptorType, ModuleType
from typing import Any, Final, NamedTuple, is_typeddict

import shmq
import shmq.mp
import shmq.spark

MODULES: Final[tuple[ModuleType, ...]] = (shmq, shmq.mp, shmq.spark)


class Public(NamedTuple):
    """A class, function, method or property that a user can type."""

    name: str
    thing: Any
    kind: str

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

    def parameters(self) -> list[str]:
        return [name for name in inspect.signature(self.thing).parameters if name != "self"] if self.is_called else []


def is_made_by_others(kind: type) -> bool:
    """Such as Message, and the snapshots: nobody calls these classes himself."""
    return kind in (shmq.Broker, shmq.Queue, shmq.Consumer, shmq.Message, shmq.Loan) or (
        kind.__module__ == "shmq.statistics"
    )


def members(module: str, kind: type) -> Iterator[Public]:
    # Classes written in C come first, for put and get; then the others.
    first = ("QueueHandle", "OpenQueue")
    for base in sorted(kind.__mro__, key=lambda base: (*first, base.__name__).index(base.__name__)):
        if not base.__module__.startswith("shmq") and base.__name__ != "QueueHandle":
            continue
        for name, value in vars(base).items():
            whole = f"{module}.{kind.__name__}.{name}"
            if name.startswith("_"):
                continue
            if isinstance(value, property):
                yield Public(whole, value, "property")
            elif inspect.isfunction(value) or isinstance(value, MethodDescriptorType):
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
