"""The tree of a selector, and what it says of one message.

Conditions are true, false or unknown (None), as in SQL-92: unknown is what a comparison with NULL gives, and a message
is selected only by true. A header that a message does not have is NULL. Values of unlike types are never equal, less or
greater: each comparison of them is false, `<>` too. Exact and approximate numbers are alike.

Source: Jakarta Messaging 3.1, section 3.8.1 (message selector syntax); SQL-92, 8.2 to 8.12.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from shmq.headers import Header
from shmq.selector.pattern import Pattern

__all__ = [
    "Among",
    "Arithmetic",
    "Between",
    "Comparison",
    "Constant",
    "Evaluate",
    "Expression",
    "Get",
    "Identifier",
    "IsNull",
    "Like",
    "Logical",
    "Negated",
    "Not",
]

Get = Callable[[str], Header]  # the value of an identifier; None: NULL
Evaluate = Callable[[Get], Header]
Kind = Literal["condition", "number", "text", "any"]  # what an expression can be, as far as its form tells

_EXACT_LIMIT: Final = 1 << 63


class Expression(ABC):
    """A node. `compile` makes a function of it: no tree is walked when a message is looked at."""

    kind: Kind = "condition"

    @abstractmethod
    def compile(self) -> Evaluate:
        """A function that says what this is for one message."""

    def depth(self) -> int:
        """How many nodes stand above one another: that deep is the recursion of what compile() makes."""
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

    def compile(self) -> Evaluate:
        value = self.value
        return lambda get: value


@dataclass(frozen=True)
class Identifier(Expression):
    """A header, or a field of the message by its JMS name."""

    name: str
    kind: Kind = "any"

    def compile(self) -> Evaluate:
        name = self.name
        return lambda get: get(name)


# ---- numbers ---------------------------------------------------------------------------------------------------


def _is_number(value: Header) -> bool:
    return type(value) is int or type(value) is float


def _bounded(value: int | float) -> int | float | None:
    """Exact numbers have 64 bits; what is beyond goes on as an approximate one. Not a number is NULL."""
    if isinstance(value, int):
        return value if -_EXACT_LIMIT <= value < _EXACT_LIMIT else float(value)
    return None if math.isnan(value) else value


def _divided(a: int | float, b: int | float) -> int | float | None:
    if b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)  # SQL: towards zero
        return quotient if (a < 0) == (b < 0) else -quotient
    return a / b


_ARITHMETIC: Final[dict[str, Callable[[int | float, int | float], int | float | None]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
}


@dataclass(frozen=True)
class Arithmetic(Expression):
    """left + right, -, *, /. NULL if a side is no number, and for a division by zero."""

    sign: str
    left: Expression
    right: Expression
    kind: Kind = "number"

    def compile(self) -> Evaluate:
        left, right, calculate = self.left.compile(), self.right.compile(), _ARITHMETIC[self.sign]

        def evaluate(get: Get) -> Header:
            a, b = left(get), right(get)
            if not (_is_number(a) and _is_number(b)):
                return None
            result = calculate(a, b)  # type: ignore[arg-type]
            return None if result is None else _bounded(result)

        return evaluate


@dataclass(frozen=True)
class Negated(Expression):
    """-number."""

    operand: Expression
    kind: Kind = "number"

    def compile(self) -> Evaluate:
        operand = self.operand.compile()

        def evaluate(get: Get) -> Header:
            value = operand(get)
            return _bounded(-value) if _is_number(value) else None  # type: ignore[operator]

        return evaluate


# ---- predicates ------------------------------------------------------------------------------------------------

_COMPARISON: Final[dict[str, Callable[[Header, Header], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,  # type: ignore[dict-item]
    "<=": operator.le,  # type: ignore[dict-item]
    ">": operator.gt,  # type: ignore[dict-item]
    ">=": operator.ge,  # type: ignore[dict-item]
}


def _compare(sign: str, a: Header, b: Header) -> bool | None:
    if a is None or b is None:
        return None
    if _is_number(a) and _is_number(b):
        return _COMPARISON[sign](a, b)
    # Text, and truth: only = and <> are defined.
    if type(a) is type(b) and type(a) in (str, bool) and sign in ("=", "<>"):
        return _COMPARISON[sign](a, b)
    return False


@dataclass(frozen=True)
class Comparison(Expression):
    """left = right, <>, <, <=, >, >=."""

    sign: str
    left: Expression
    right: Expression

    def compile(self) -> Evaluate:
        sign, left, right = self.sign, self.left.compile(), self.right.compile()
        return lambda get: _compare(sign, left(get), right(get))


def _and(a: Header, b: Header) -> bool | None:
    if a is False or b is False:
        return False
    return True if a is True and b is True else None


def _or(a: Header, b: Header) -> bool | None:
    if a is True or b is True:
        return True
    return False if a is False and b is False else None


def _not(a: Header) -> bool | None:
    return not a if isinstance(a, bool) else None


@dataclass(frozen=True)
class Between(Expression):
    """value [NOT] BETWEEN low AND high: value >= low AND value <= high, or value < low OR value > high."""

    value: Expression
    low: Expression
    high: Expression
    negated: bool

    def compile(self) -> Evaluate:
        value, low, high = self.value.compile(), self.low.compile(), self.high.compile()

        def inside(get: Get) -> Header:
            v = value(get)
            return _and(_compare(">=", v, low(get)), _compare("<=", v, high(get)))

        def outside(get: Get) -> Header:
            v = value(get)
            return _or(_compare("<", v, low(get)), _compare(">", v, high(get)))

        return outside if self.negated else inside


@dataclass(frozen=True)
class Among(Expression):
    """value [NOT] IN (literal, ...)."""

    value: Expression
    members: tuple[str | int | float | bool, ...]
    negated: bool

    def compile(self) -> Evaluate:
        value, wanted = self.value.compile(), not self.negated
        # True equals 1 to a set, so the type is looked at, too.
        texts = frozenset(m for m in self.members if isinstance(m, str))
        numbers = frozenset(m for m in self.members if not isinstance(m, str | bool))
        truths = frozenset(m for m in self.members if isinstance(m, bool))

        def evaluate(get: Get) -> Header:
            v = value(get)
            if v is None:
                return None
            if isinstance(v, bool):
                return (v in truths) is wanted
            if isinstance(v, str):
                return (v in texts) is wanted
            return (_is_number(v) and v in numbers) is wanted

        return evaluate


@dataclass(frozen=True)
class Like(Expression):
    """value [NOT] LIKE 'pattern' [ESCAPE 'c']. Only text is like a pattern."""

    value: Expression
    pattern: Pattern
    negated: bool

    def compile(self) -> Evaluate:
        value, fits, wanted = self.value.compile(), self.pattern.matches, not self.negated

        def evaluate(get: Get) -> Header:
            v = value(get)
            if v is None:
                return None
            return (isinstance(v, str) and fits(v)) is wanted

        return evaluate


@dataclass(frozen=True)
class IsNull(Expression):
    """value IS [NOT] NULL."""

    value: Expression
    negated: bool

    def compile(self) -> Evaluate:
        value, wanted = self.value.compile(), not self.negated
        return lambda get: (value(get) is None) is wanted


# ---- logic -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Logical(Expression):
    """operand AND operand ..., or OR. What stands behind one that decides is not looked at."""

    word: Literal["AND", "OR"]
    operands: tuple[Expression, ...]

    def compile(self) -> Evaluate:
        operands = tuple(operand.compile() for operand in self.operands)
        decisive = self.word == "OR"

        def evaluate(get: Get) -> Header:
            unknown = False
            for operand in operands:
                value = operand(get)
                if value is decisive:
                    return decisive
                unknown = unknown or not isinstance(value, bool)
            return None if unknown else not decisive

        return evaluate


@dataclass(frozen=True)
class Not(Expression):
    """NOT condition. What is no condition is unknown, and so is its opposite."""

    operand: Expression

    def compile(self) -> Evaluate:
        operand = self.operand.compile()
        return lambda get: _not(operand(get))
