"""Selectors: conditions on the headers of a message, in the language of JMS (conditional expressions of SQL-92).

text -> parser (grammar.py) -> expression (tree) -> program (bytes), which the native core runs
"""

from __future__ import annotations

from shmq.selector.parser import FIELDS, parse
from shmq.selector.program import program

__all__ = ["FIELDS", "compiled"]


def compiled(text: str) -> bytes:
    """The program of a selector, for shmq.core.selector.Selector.

    Arguments:
        text: such as "kind = 'png' AND width > 1000".

    Raises SelectorError, with the place, TypeError.
    """
    return program(parse(text))
