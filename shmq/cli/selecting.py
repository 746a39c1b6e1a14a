"""--selector, and why a selector may have selected nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from shmq.cli.session import say

if TYPE_CHECKING:
    from shmq.engine.queue.queue import Queue
    from shmq.selector.expression import Expression

__all__ = ["nothing_selected", "selector_option", "warn_of_text"]

_LOOKED_AT = 1000  # messages

selector_option = click.option(
    "--selector", metavar="TEXT", help="Only messages for which it is true: \"kind = 'png' AND width > 1000\"."
)


def nothing_selected(queue: Queue[Any], selector: str) -> str:
    """Says that the selector selects nothing, and names a header that is text where it wants a number."""
    hint = _text_for_a_number(queue, selector)
    return f"empty: nothing that is selected is in {queue.name!r}{hint and '; '}{hint}"


def warn_of_text(queue: Queue[Any], selector: str | None) -> None:
    """Says before a wait that may have no end why the selector takes nothing of what is there."""
    if selector is None or next(queue.browse(selector=selector), None) is not None:
        return
    hint = _text_for_a_number(queue, selector)
    if hint:
        say(f"nothing that is selected is in {queue.name!r} now; {hint}")


def _text_for_a_number(queue: Queue[Any], selector: str) -> str:
    from shmq.selector.parser import parse

    names = set(_compared_with_numbers(parse(selector)))
    for message in islice(queue.browse(), _LOOKED_AT) if names else ():
        for name in sorted(names):
            value = message.headers.get(name)
            if isinstance(value, str) and _is_number(value):
                return (
                    f"the header {name} of message {message.id} is the text {value!r}, and text is like no "
                    f"number: put it by -H {name}:={value}, or write {name} = '{value}'"
                )
    return ""


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _compared_with_numbers(node: Expression) -> Iterator[str]:
    """Names of headers whose value the expression takes for a number."""
    from shmq.selector.expression import Among, Arithmetic, Between, Comparison, Expression, Identifier, Negated

    members = node.members if isinstance(node, Among) else ()
    parts = [part for value in vars(node).values() for part in (value if isinstance(value, tuple) else (value,))]
    within = [part for part in parts if isinstance(part, Expression)]
    numbers = (
        isinstance(node, Arithmetic | Negated)
        or (isinstance(node, Comparison | Between) and any(part.kind == "number" for part in within))
        or any(isinstance(member, int | float) and not isinstance(member, bool) for member in members)
    )
    for part in within:
        if numbers and isinstance(part, Identifier):
            yield part.name
        yield from _compared_with_numbers(part)
