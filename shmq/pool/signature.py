"""Whether a function does something when it is called: before the first message, and of what it has returned."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from typing import Any, Final

__all__ = ["check_handler", "check_runs", "unfinished"]

_PLAIN: Final = "give a plain function"
_KINDS: Final = (
    ("a coroutine function", inspect.iscoroutinefunction, "give a plain function that calls asyncio.run()"),
    ("an asynchronous generator function", inspect.isasyncgenfunction, _PLAIN),
    ("a generator function", inspect.isgeneratorfunction, "give a function without yield"),
)
_RUN: Final = "the function has to run it, such as by asyncio.run()"
_UNFINISHED: Final[tuple[tuple[Any, str, str], ...]] = (
    (Coroutine, "a coroutine", _RUN),
    (Awaitable, "an awaitable", _RUN),
    (AsyncIterator, "an asynchronous generator", _RUN),
    (Generator, "a generator", "the function has to go through it, such as by list()"),
    ((map, filter, itertools.starmap), "an iterator", "the function has to go through it, such as by list()"),
)
_ANY: Final = (Awaitable, AsyncIterator, Generator, map, filter, itertools.starmap)


def check_runs(name: str, call: Callable[..., Any]) -> None:
    """Raises TypeError for what would do nothing when it is called."""
    called = call if inspect.isroutine(call) else type(call).__call__
    for kind, is_kind, remedy in _KINDS:
        if is_kind(call) or is_kind(called):
            raise TypeError(f"{name}={call!r}: {kind}, whose body does not run when it is called; {remedy}")


def check_handler(handler: Callable[..., Any]) -> None:
    """The same, and for what cannot be called with one message."""
    check_runs("handler", handler)
    try:
        signature = inspect.signature(handler)
    except ValueError:
        return  # some that are written in C do not tell
    try:
        signature.bind(object())
    except TypeError as error:
        raise TypeError(
            f"handler={handler!r}: cannot be called with one message: {error}; it is called as handler(message), "
            f"its signature is {signature}"
        ) from None


def unfinished(result: object, name: str, call: Callable[..., Any]) -> str | None:
    """Of a result that stands for work which is not done: the text of an error. A coroutine is closed."""
    if not isinstance(result, _ANY):
        return None
    what, remedy = next((what, remedy) for kind, what, remedy in _UNFINISHED if isinstance(result, kind))
    if isinstance(result, Coroutine | Generator):
        result.close()  # else Python says that it was never awaited
    text = getattr(call, "__qualname__", None) or repr(call)
    return f"{name} {text}() returned {what}, of type {type(result).__qualname__}: its work is not done; {remedy}"
