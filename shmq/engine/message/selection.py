"""Matches messages against selectors: headers by name, the message's own fields by their JMS names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shmq.core.handles import deaths_of, enqueued_ns_of, failed_of, head_of, id_of, was_redelivered
from shmq.core.selector import Selector
from shmq.whole_import import import_whole

if TYPE_CHECKING:
    from shmq.core.queue import Browsed
    from shmq.engine.message.message import Message

__all__ = ["Selects", "WallOf", "entry_selection", "loaded", "selection"]

Selects = Callable[["Message[Any]"], bool]
WallOf = Callable[[int], int]  # of a Member: what the wall clock said at a time of the monotonic one, both in ns


def loaded(selector: str | None) -> Selector | None:
    """Checks a selector and compiles it for the native core; None: it selects every message.

    selector: None and an empty text are none, as in JMS.
    Raises SelectorError with the place of the error, TypeError.
    """
    if selector is None or (isinstance(selector, str) and not selector.strip()):
        return None
    import_whole("shmq.selector")
    from shmq.selector import compiled  # here: its parser is a library that most programs need not load

    return Selector(compiled(selector))


def entry_selection(selector: str | None, wall_of: WallOf) -> Callable[[Browsed], bool] | None:
    """Returns a selection of entries as the core shows them; wall_of: from the broker's clock to the time of day."""
    found = loaded(selector)
    if found is None:
        return None
    ask = found.selects

    def selects(entry: Browsed) -> bool:
        _, number, enqueued_ns, _, failed, deaths, redelivered, priority, head, *_ = entry
        wall_ms = wall_of(enqueued_ns) // 1_000_000
        return ask(head, number, wall_ms, priority, bool(redelivered), failed + deaths + 1)

    return selects


def selection(selector: str | None, wall_of: WallOf) -> Selects | None:
    """Returns a function that says whether a message is selected; None where there is no selector, as in loaded().

    wall_of: as above.

    Raises SelectorError with the place of the error, TypeError. Headers that are damaged are unknown, which selects
    nothing.
    """
    found = loaded(selector)
    if found is None:
        return None
    ask = found.selects

    def selects(message: Message[Any]) -> bool:
        next_delivery = failed_of(message) + deaths_of(message) + 1  # the count that its next consumer will see
        return ask(
            head_of(message),
            id_of(message),
            wall_of(enqueued_ns_of(message)) // 1_000_000,
            message.priority,
            was_redelivered(message),
            next_delivery,
        )

    return selects
