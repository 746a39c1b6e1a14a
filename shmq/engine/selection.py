"""Which messages a selector means: headers by name, the message's own fields by their JMS names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from shmq.errors import DecodeError

if TYPE_CHECKING:
    from shmq.engine.message import Message
    from shmq.headers import Header

__all__ = ["DEFAULT_PRIORITY", "Selects", "selection"]

Selects = Callable[["Message[Any]"], bool]

DEFAULT_PRIORITY: Final = 4  # of every message, as long as there are no others

_FIELDS: Final[dict[str, Callable[[Message[Any]], Header]]] = {
    "JMSMessageID": lambda m: m.id,
    "JMSPriority": lambda m: DEFAULT_PRIORITY,
    "JMSRedelivered": lambda m: m.redelivered,
    "JMSTimestamp": lambda m: int(m.enqueued_at * 1000),  # milliseconds, as JMS has it
    "JMSXDeliveryCount": lambda m: m._failed + m._deaths + 1,  # as its next consumer will see it
    "JMSXGroupID": lambda m: None,
}


def selection(selector: str | None) -> Selects | None:
    """A function that says whether a message is selected; None selects every message.

    Raises SelectorError with the place of the error, TypeError. Headers that are damaged are unknown, which selects
    nothing.
    """
    if selector is None:
        return None
    from shmq.selector import Selector  # here: its parser is a library that most programs need not load

    chosen = Selector(selector)

    def selects(message: Message[Any]) -> bool:
        def get(name: str) -> Header:
            field = _FIELDS.get(name)
            return field(message) if field is not None else message.headers.get(name)

        try:
            return chosen.selects(get)
        except DecodeError:
            return False

    return selects
