"""Selectors: conditions on the headers of a message, in the language of JMS (conditional expressions of SQL-92).

text -> parser (grammar.lark) -> expression (tree) -> a function of one message
"""

from __future__ import annotations

from shmq.selector.expression import Evaluate, Get
from shmq.selector.parser import FIELDS, parse

__all__ = ["FIELDS", "Selector"]


class Selector:
    """A selector, checked and compiled.

    Arguments:
        text: such as "kind = 'png' AND width > 1000".

    Raises SelectorError, with the place, TypeError.

    Example: Selector("width > 1000").selects({"width": 4000}.get)
    """

    __slots__ = ("_evaluate", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._evaluate: Evaluate = parse(text).compile()

    def selects(self, get: Get) -> bool:
        """Is it true for a message with these values? Unknown is not true.

        get: the value of a header or JMS field by name, None if there is none.
        """
        return self._evaluate(get) is True

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"
