"""--selector, and why a selector may have selected nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from shmq.engine.queue import Queue
    from shmq.selector.expression import Expression

__all__ = ["nothing_selected", "selector_option"]

_LOOKED_AT = 1000  # messages

selector_option = click.option(
    "--selector", metavar="TEXT", help="Only messages for which it is true: \"kind = 'png' AND width > 1000\"."
)


def nothing_selected(queue: Queue[Any], selector: str) -> str:
    """What to say when it selects nothing: of what type the headers are that it takes for numbers."""
    from shmq.selector.parser import parse

    nothing = f"empty: nothing that is selected is in {queue.name!r}"
    names = set(_compared_with_numbers(parse(selector)))
    for message in islice(queue.browse(), _LOOKED_AT) if names else ():
        for name in sorted(names):
            value = message.headers.get(name)
            if isinstance(value, str) and _is_number(value):
                return (
                    f"{nothing}; the header {name} of message {message.id} is the text {value!r}, and text is like no "
                    f"number: put it by -H {name}:={value}, or write {name} = '{value}'"
                )
    return nothing


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
