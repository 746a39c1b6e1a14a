"""Exceptions of users as text. They may lead back to themselves, and what they answer may fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

__all__ = ["chain", "last_line", "line_of", "text_of"]

_MOST: Final = 1000  # members of a chain: a group may answer others each time it is asked


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yields the error and all errors that it leads to, by cause, context and membership of a group: each once."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left and len(seen) < _MOST:
        link = left.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        left += [link.__context__, link.__cause__]
        if isinstance(link, BaseExceptionGroup):
            left += link.exceptions


def text_of(error: BaseException) -> str:
    """Returns the traceback of an error, also where its own text fails: the caller still has to settle a message."""
    import traceback  # when first needed: few messages fail

    try:
        if _is_bounded(error):
            return "".join(traceback.format_exception(error)).rstrip()
        why = "too many"
    except Exception as failed:
        why = type(failed).__name__
    frames = "".join(traceback.format_tb(error.__traceback__))
    return f"Traceback (most recent call last):\n{frames}{line_of(error)}\n(the errors that it leads to: {why})"


def _is_bounded(error: BaseException) -> bool:
    """Python's traceback goes through the members of each group, also of one that it has seen."""
    seen, left, count = {id(error)}, [error], 0
    while left:
        link, count = left.pop(), count + 1
        if count > _MOST:
            return False
        left += link.exceptions if isinstance(link, BaseExceptionGroup) else ()
        for other in (link.__cause__, link.__context__):
            if other is not None and id(other) not in seen:
                seen.add(id(other))
                left.append(other)
    return True


def line_of(error: BaseException) -> str:
    """Returns the error's type and the first line of its text."""
    kind = type(error)
    name = (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )
    try:
        first = str(error).partition("\n")[0]
    except Exception as failed:
        first = f"(its text fails: {type(failed).__name__})"
    return f"{name}: {first}" if first else name


def last_line(text: str) -> str:
    """Returns the line of a traceback that names the error; of a group, that of its last member."""
    if "Exception Group Traceback" not in text:
        return text.rstrip().rpartition("\n")[2]
    return next((words for line in reversed(text.splitlines()) if (words := line.strip(" |+-"))), "")
