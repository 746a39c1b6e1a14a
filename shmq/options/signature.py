"""Signatures that name each option: what completion and help() show of a function that takes `**options`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Final, TypeVar

__all__ = ["shows"]

F = TypeVar("F", bound=Callable[..., object])


class _NotGiven:
    def __repr__(self) -> str:
        return "<not given>"


_NOT_GIVEN: Final = _NotGiven()


def shows(options: type) -> Callable[[F], F]:
    """Returns a decorator: the signature of the function has the keys of the TypedDict in the place of `**options`."""

    def shown(function: F) -> F:
        written = inspect.signature(function)
        own = [each for each in written.parameters.values() if each.kind is not each.VAR_KEYWORD]
        more = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_NOT_GIVEN,
                annotation=getattr(kind, "__forward_arg__", kind),
            )
            for name, kind in options.__annotations__.items()
        ]
        function.__signature__ = written.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return function

    return shown
