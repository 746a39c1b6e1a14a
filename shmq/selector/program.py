"""From the tree of a selector to the bytes of its program; native/src/selectors/selector.h has their meaning."""

from __future__ import annotations

from struct import Struct
from typing import Final

from shmq.headers import encode_value
from shmq.selector.expression import (
    Among,
    Arithmetic,
    Between,
    Comparison,
    Constant,
    Expression,
    Identifier,
    IsNull,
    Like,
    Logical,
    Negated,
    Not,
)
from shmq.selector.parser import FIELDS
from shmq.selector.pattern import ANY_NUMBER, Pattern

__all__ = ["program"]

_VERSION: Final = 1
_START, _INSTRUCTION, _LONG = Struct("<BBHH"), Struct("<BHH"), Struct("<BH")

_NAME, _FIELD, _CONSTANT = 1, 2, 3
_JOINED: Final = {"=": 4, "<>": 5, "<": 6, "<=": 7, ">": 8, ">=": 9, "+": 10, "-": 11, "*": 12, "/": 13}
_NEGATED: Final = 14
_BETWEEN, _IS_NULL, _IN, _LIKE = 15, 17, 19, 21  # the negated one follows each
_NOT: Final = 23
_LOGICAL: Final = {"AND": (24, 26), "OR": (25, 27)}  # the operation, and the skip of what cannot change it

_EXACT_LIMIT: Final = 1 << 63
_TEXT, _BYTES = 8, 9  # kinds of values
_ANY_NUMBER, _ANY, _JUST = 0, 1, 2  # parts of a pattern


def program(expression: Expression) -> bytes:
    """The program of a selector whose tree this is.

    Example: program(parse("width > 1000"))
    """
    made = _Program()
    made.add(expression)
    return made.finished()


def _text(kind: int, text: str) -> bytes:
    # A lone surrogate is like nothing that a header can hold; in a selector it is text like any other.
    content = text.encode("utf-8", "surrogatepass")
    return _LONG.pack(kind, len(content)) + content


def _value(value: str | int | float | bool) -> bytes:
    if isinstance(value, str):
        return _text(_TEXT, value)
    if isinstance(value, int) and value == _EXACT_LIMIT:  # one too many: exact ones end before it
        return encode_value(float(value))
    return encode_value(value)


def _pattern(pattern: Pattern) -> bytes:
    parts = b"".join(
        _text(_JUST, part)
        if isinstance(part, str)
        else bytes((_ANY_NUMBER,))
        if part == ANY_NUMBER
        else _LONG.pack(_ANY, part)
        for part in pattern.parts
    )
    return _LONG.pack(_BYTES, len(parts)) + parts


class _Program:
    """Instructions as they are added; keeps count of what lies on the stack."""

    def __init__(self) -> None:
        self.constants: list[bytes] = []
        self.places: dict[bytes, int] = {}
        self.instructions: list[tuple[int, int, int]] = []
        self.values = 0
        self.most = 0

    def finished(self) -> bytes:
        start = _START.pack(_VERSION, self.most, len(self.constants), len(self.instructions))
        return b"".join((start, *self.constants, *(_INSTRUCTION.pack(*i) for i in self.instructions)))

    def add(self, node: Expression) -> None:
        """The instructions that leave the value of this node on the stack."""
        match node:
            case Constant(value):
                self._give(_CONSTANT, self._constant(_value(value)))
            case Identifier(name) if name in FIELDS:
                self._give(_FIELD, FIELDS.index(name))
            case Identifier(name):
                self._give(_NAME, self._constant(_text(_TEXT, name)))
            case Arithmetic(sign, left, right) | Comparison(sign, left, right):
                self._add_all((left, right), _JOINED[sign])
            case Negated(operand):
                self._add_all((operand,), _NEGATED)
            case Between(value, low, high, negated):
                self._add_all((value, low, high), _BETWEEN + negated)
            case IsNull(value, negated):
                self._add_all((value,), _IS_NULL + negated)
            case Among(value, members, negated):
                first = len(self.constants)  # in a row, so not shared with others
                self.constants += dict.fromkeys(map(_value, members))
                self._add_all((value,), _IN + negated, first, len(self.constants) - first)
            case Like(value, pattern, negated):
                self._add_all((value,), _LIKE + negated, self._constant(_pattern(pattern)))
            case Not(operand):
                self._add_all((operand,), _NOT)
            case Logical(word, operands):
                self._add_logical(word, operands)
            case _:
                raise TypeError(f"no node of a selector: {node!r}")

    def _constant(self, value: bytes) -> int:
        place = self.places.setdefault(value, len(self.constants))
        if place == len(self.constants):
            self.constants.append(value)
        return place

    def _give(self, operation: int, a: int) -> None:
        self.instructions.append((operation, a, 0))
        self.values += 1
        self.most = max(self.most, self.values)

    def _add_all(self, operands: tuple[Expression, ...], operation: int, a: int = 0, b: int = 0) -> None:
        for operand in operands:
            self.add(operand)
        self.instructions.append((operation, a, b))
        self.values -= len(operands) - 1

    def _add_logical(self, word: str, operands: tuple[Expression, ...]) -> None:
        operation, skip = _LOGICAL[word]
        self.add(operands[0])
        skips = []
        for operand in operands[1:]:
            skips.append(len(self.instructions))
            self.instructions.append((skip, 0, 0))
            self._add_all((operand,), operation)
            self.values -= 1
        for at in skips:
            self.instructions[at] = (skip, len(self.instructions) - at - 1, 0)
