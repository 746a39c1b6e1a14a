"""Whether a handler can be called with a message at all, seen before the first message is tried."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["check_handler"]


def check_handler(handler: Callable[..., Any]) -> None:
    """Raises TypeError for what cannot be called with one message, or would do nothing when it is."""
    called = handler if inspect.isroutine(handler) else type(handler).__call__
    for kind, is_kind, remedy in (
        ("a coroutine function", inspect.iscoroutinefunction, "give a plain function that calls asyncio.run()"),
        ("an asynchronous generator function", inspect.isasyncgenfunction, "give a plain function"),
        ("a generator function", inspect.isgeneratorfunction, "give a function without yield"),
    ):
        if is_kind(handler) or is_kind(called):
            raise TypeError(f"handler={handler!r}: {kind}, whose body does not run when it is called; {remedy}")
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
