"""The tree of a selector. program.py makes a program of it, which computes its value for one message.

Conditions are true, false or unknown, as in SQL-92: unknown is what a comparison with NULL gives, and a message is
selected only by true. A header that a message does not have is NULL. Values of unlike types are never equal, less or
greater: each comparison of them is false, `<>` too. Exact and approximate numbers are alike.

Source: Jakarta Messaging 3.1, section 3.8.1 (message selector syntax); SQL-92, 8.2 to 8.12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shmq.selector.pattern import Pattern

__all__ = [
    "Among",
    "Arithmetic",
    "Between",
    "Comparison",
    "Constant",
    "Expression",
    "Identifier",
    "IsNull",
    "Like",
    "Logical",
    "Negated",
    "Not",
]

Kind = Literal["condition", "number", "text", "any"]  # what an expression can be, as far as its form tells


class Expression:
    """A node."""

    kind: Kind = "condition"

    def depth(self) -> int:
        """How many nodes stand above one another."""
        parts = [part for value in vars(self).values() for part in (value if isinstance(value, tuple) else (value,))]
        return 1 + max((part.depth() for part in parts if isinstance(part, Expression)), default=0)


@dataclass(frozen=True)
class Constant(Expression):
    """'text', 42, 2.5, TRUE, FALSE."""

    value: str | int | float | bool

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        if isinstance(self.value, bool):
            return "condition"
        return "text" if isinstance(self.value, str) else "number"


@dataclass(frozen=True)
class Identifier(Expression):
    """A header, or a field of the message by its JMS name."""

    name: str
    kind: Kind = "any"


@dataclass(frozen=True)
class Arithmetic(Expression):
    """left + right, -, *, /. NULL if a side is no number, and for a division by zero.

    Exact numbers have 64 bits; what is beyond goes on as an approximate one. Exact ones divide towards zero.
    """

    sign: str
    left: Expression
    right: Expression
    kind: Kind = "number"


@dataclass(frozen=True)
class Negated(Expression):
    """-number."""

    operand: Expression
    kind: Kind = "number"


@dataclass(frozen=True)
class Comparison(Expression):
    """left = right, <>, <, <=, >, >=. Text and truth have only = and <>."""

    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Between(Expression):
    """value [NOT] BETWEEN low AND high: value >= low AND value <= high, or value < low OR value > high."""

    value: Expression
    low: Expression
    high: Expression
    negated: bool


@dataclass(frozen=True)
class Among(Expression):
    """value [NOT] IN (literal, ...)."""

    value: Expression
    members: tuple[str | int | float | bool, ...]
    negated: bool


@dataclass(frozen=True)
class Like(Expression):
    """value [NOT] LIKE 'pattern' [ESCAPE 'c']. Only text is like a pattern."""

    value: Expression
    pattern: Pattern
    negated: bool


@dataclass(frozen=True)
class IsNull(Expression):
    """value IS [NOT] NULL."""

    value: Expression
    negated: bool


@dataclass(frozen=True)
class Logical(Expression):
    """operand AND operand ..., or OR. Operands behind one that decides are not looked at."""

    word: Literal["AND", "OR"]
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Not(Expression):
    """NOT condition. A value that is no condition is unknown, and so is its opposite."""

    operand: Expression
