"""Checks functions: that a call would do something (before the first message), and that its result is finished."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Generator
from functools import lru_cache
from typing import Any, Final

__all__ = ["check_arguments", "check_handler", "check_runs", "unfinished"]

_PLAIN: Final = "give a plain function"
_KINDS: Final = (
    ("a coroutine function", inspect.iscoroutinefunction, "give a plain function that calls asyncio.run()"),
    ("an asynchronous generator function", inspect.isasyncgenfunction, _PLAIN),
    ("a generator function", inspect.isgeneratorfunction, "give a function without yield"),
)
_RUN: Final = "the function has to run it, such as by asyncio.run()"
_GO_THROUGH: Final = "the function has to go through it, such as by list()"
_WAIT: Final = "the function has to wait for it, such as by .result()"
_GET: Final = "the function has to wait for it, such as by .get()"
_UNFINISHED: Final[tuple[tuple[Any, str, str], ...]] = (
    (Coroutine, "a coroutine", _RUN),
    (Awaitable, "an awaitable", _RUN),
    (AsyncIterator, "an asynchronous generator", _RUN),
    (Generator, "a generator", _GO_THROUGH),
    ((map, filter, zip, enumerate), "an iterator", _GO_THROUGH),
)
_POOLED: Final = ("ApplyResult", "IMapIterator")  # of multiprocessing.pool, which is not imported for this


def check_runs(name: str, call: Callable[..., Any]) -> None:
    """Raises TypeError for what would do nothing when it is called."""
    called = call if inspect.isroutine(call) else type(call).__call__
    for kind, is_kind, remedy in _KINDS:
        if is_kind(call) or is_kind(called):
            raise TypeError(f"{name}={call!r}: {kind}, whose body does not run when it is called; {remedy}")


def check_handler(handler: Callable[..., Any]) -> None:
    """Checks what check_runs() does, and that the handler can be called with one message. Raises TypeError."""
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


def check_arguments(initargs: object) -> tuple[Any, ...]:
    """Raises TypeError for what is no tuple or list: of one text each character would be an argument."""
    if not isinstance(initargs, tuple | list):
        raise TypeError(f"initargs={initargs!r:.60}: a tuple of arguments is expected; with one argument (argument,)")
    return tuple(initargs)


@lru_cache(maxsize=256)
def _unfinished_kind(kind: type) -> tuple[str, str] | None:
    """Returns the kind of an object that stands for unfinished work, such as a coroutine, and the remedy."""
    for unfinished_kind, what, remedy in _UNFINISHED:
        if issubclass(kind, unfinished_kind):
            return what, remedy
    if kind.__module__ == "itertools":
        return "an iterator", _GO_THROUGH
    if hasattr(kind, "add_done_callback"):  # of concurrent.futures, and of those that look like it
        return "a future", _WAIT
    if any(base.__module__ == "multiprocessing.pool" and base.__name__ in _POOLED for base in kind.__mro__):
        return "a result of a multiprocessing.Pool", _GET
    return None


def unfinished(result: object, name: str, call: Callable[..., Any]) -> str | None:
    """Returns the text of an error if a result stands for work that is not done, such as a coroutine; else None.

    It looks at the result, and at the members of a list, tuple, set, deque or dict, but no deeper. It closes
    coroutines and generators.
    """
    if isinstance(result, dict):
        parts: Collection[object] = result.values()
    elif isinstance(result, list | tuple | set | frozenset | deque):
        parts = result
    else:
        parts = ()
    kinds = [type(result), *set(map(type, parts))]  # a long list has few
    found = next((kind for kind in kinds if _unfinished_kind(kind) is not None), None)
    if found is None:
        return None
    for part in (result, *parts):
        if isinstance(part, Coroutine | Generator):
            part.close()  # else Python says that it was never awaited
    what, remedy = _unfinished_kind(found) or ("", "")
    if found is not kinds[0]:
        what = f"a {type(result).__qualname__} with {what}"
    text = getattr(call, "__qualname__", None) or repr(call)
    return f"{name} {text}() returned {what}, of type {found.__qualname__}: its work is not done; {remedy}"
