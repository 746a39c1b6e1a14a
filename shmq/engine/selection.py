"""Which messages a selector means: headers by name, the message's own fields by their JMS names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shmq.core.selector import Selector

if TYPE_CHECKING:
    from shmq.engine.message import Message

__all__ = ["Selects", "loaded", "selection"]

Selects = Callable[["Message[Any]"], bool]


def loaded(selector: str) -> Selector:
    """A selector, checked and made ready for the native core.

    Raises SelectorError with the place of the error, TypeError.
    """
    from shmq.selector import compiled  # here: its parser is a library that most programs need not load

    return Selector(compiled(selector))


def selection(selector: str | None) -> Selects | None:
    """A function that says whether a message is selected; None selects every message.

    Raises SelectorError with the place of the error, TypeError. Headers that are damaged are unknown, which selects
    nothing.
    """
    if selector is None:
        return None
    ask = loaded(selector).selects

    def selects(message: Message[Any]) -> bool:
        enqueued_ns = message._enqueued_ns + message._queue._membership.clock_offset_ns
        next_delivery = message._failed + message._deaths + 1  # as its next consumer will see it
        return ask(
            message._head,
            message._id,
            max(enqueued_ns // 1_000_000, 0),
            message.priority,
            message._redelivered,
            next_delivery,
        )

    return selects
