"""From the text of a selector to its tree; errors name the place."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final, Literal, NoReturn

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, VisitError
from lark.tree import Meta

from shmq.errors import SelectorError
from shmq.selector.expression import (
    Among,
    Arithmetic,
    Between,
    Comparison,
    Constant,
    Expression,
    Identifier,
    IsNull,
    Kind,
    Like,
    Logical,
    Negated,
    Not,
)
from shmq.selector.grammar import GRAMMAR
from shmq.selector.pattern import Pattern

__all__ = ["FIELDS", "MAX_TEXT", "parse"]

# A message's own fields, in the order of enum shmq_selector_field; JMS... names are no headers.
FIELDS: Final = (
    "JMSMessageID",
    "JMSPriority",
    "JMSRedelivered",
    "JMSTimestamp",
    "JMSXDeliveryCount",
    "JMSXGroupID",
)
MAX_TEXT: Final = 4096  # characters: the tree is walked by recursion, once
MAX_DEPTH: Final = 64
_TOO_DEEP: Final = f"it is too deep: more than {MAX_DEPTH} operators stand within one another"
_SPLIT: Final = "compute a part of it at put, and put that into a header"
_EXACT_LIMIT: Final = 1 << 63
# Operators of other languages, and their names here.
_ELSEWHERE: Final = {"==": "=", "!=": "<>", "&&": "AND", "||": "OR"}
_WORDS: Final = frozenset(["AND", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "TRUE"])
_NAMES: Final[dict[Kind, str]] = {"condition": "a condition", "number": "a number", "text": "text", "any": "a value"}

_SHOWN: Final = {
    "$END": "the end",
    "APPROXIMATE": "a number",
    "COMPARISON": "a comparison",
    "EXACT": "a number",
    "LPAR": "(",
    "NAME": "a name",
    "QUOTED": "a name",
    "RPAR": ")",
    "SIGN": "+ or -",
    "STRING": "a text such as 'png'",
    "TIMES": "* or /",
    "COMMA": ",",
    "_ESCAPE": "ESCAPE",
}


@functools.cache
def _parser() -> Lark:
    # Made at the first selector: tables take some 20 ms, and most programs have none.
    return Lark(GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def parse(text: str) -> Expression:
    """The tree of a selector.

    Arguments:
        text: a condition in the language of JMS selectors, at most 4,096 characters.

    Raises TypeError for anything but a str, SelectorError for a malformed selector; its text shows the place.

    Example: parse("kind = 'png' AND width > 1000")
    """
    if not isinstance(text, str):
        raise TypeError(f"a selector is a str, not {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise SelectorError(
            "the selector is too long",
            figures=f"{len(text):,} characters, at most {MAX_TEXT:,}",
            remedy="compute the condition at put, and put its value into a header",
        )
    if not text.strip():
        _refuse(text, 0, "it is empty", "a condition is expected, such as kind = 'png'")
    try:
        tree = _parser().parse(text)
        expression: Expression = _Builder(text).transform(tree)
    except UnexpectedInput as error:
        _refuse_input(text, error)
    except VisitError as error:
        if isinstance(error.orig_exc, SelectorError):
            raise error.orig_exc from None
        raise
    except RecursionError:
        _refuse(text, 0, _TOO_DEEP, _SPLIT)
    if expression.depth() > MAX_DEPTH:
        _refuse(text, 0, _TOO_DEEP, _SPLIT)
    _demand(text, expression, "condition", 0)
    return expression


def _refuse(text: str, at: int, fault: str, remedy: str) -> NoReturn:
    begin = max(0, at - 40)
    shown = text[begin : at + 40].replace("\n", " ").replace("\t", " ")
    raise SelectorError(
        f"the selector is malformed at character {at + 1}: {fault}",
        remedy=f"{remedy}\n  {shown}\n  {' ' * (at - begin)}^",
    ) from None


def _refuse_elsewhere(text: str, at: int) -> None:
    """Is an operator of another language there? `at` is its first character, or its second."""
    for begin in (at - 1, at):
        here = _ELSEWHERE.get(text[begin : begin + 2]) if begin >= 0 else None
        if here is not None:
            _refuse(text, begin, f"{text[begin : begin + 2]} is not an operator here", f"use {here}")


def _refuse_input(text: str, error: UnexpectedInput) -> NoReturn:
    if isinstance(error, UnexpectedCharacters | UnexpectedToken):
        _refuse_elsewhere(text, error.pos_in_stream or 0)
    if isinstance(error, UnexpectedCharacters):
        character = text[error.pos_in_stream or 0]
        if character == "'":
            _refuse(text, error.pos_in_stream or 0, "the text has no end", "close it with '; a quote in it is doubled")
        if character == '"':
            _refuse(text, error.pos_in_stream or 0, "the name has no end", "text stands in single quotes: 'text'")
        _refuse(text, error.pos_in_stream or 0, f"{character!r} has no meaning", 'names with such characters: "a-name"')
    at = len(text.rstrip())
    expected: set[str] = set()
    found = "it ends"
    if isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
        if error.token.type != "$END":
            at = error.token.start_pos or 0
            found = f"{str(error.token)!r} stands there"
    elif isinstance(error, UnexpectedEOF):
        expected = set(error.expected)
    names = sorted({_SHOWN.get(name, name) for name in expected})
    _refuse(text, at, f"{found}, expected: {', '.join(names)}", "see `shmq peek --help` for the language")


def _demand(text: str, expression: Expression, kind: Kind, at: int) -> None:
    if expression.kind not in (kind, "any"):
        _refuse(
            text,
            at,
            f"{_NAMES[kind]} is expected, this is {_NAMES[expression.kind]}",
            "compare it: a selector is a condition such as kind = 'png'",
        )


def _unquoted(token: Token) -> str:
    quote = token[0]
    return str(token[1:-1].replace(quote * 2, quote))


@v_args(meta=True)
class _Builder(Transformer[Token, Expression]):
    """Makes the tree; demands of each operand what its operator needs."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def _demand(self, operand: Expression, kind: Kind, meta: Meta) -> Expression:
        _demand(self.text, operand, kind, meta.start_pos)
        return operand

    # ---- logic ----

    def _logical(self, word: Literal["AND", "OR"], meta: Meta, sides: list[Expression]) -> Expression:
        operands: list[Expression] = []
        for side in sides:
            self._demand(side, "condition", meta)
            # One node for a = 1 OR a = 2 OR ...: a long list is not deep.
            operands += side.operands if isinstance(side, Logical) and side.word == word else [side]
        return Logical(word, tuple(operands))

    def disjunction_of(self, meta: Meta, sides: list[Expression]) -> Expression:
        return self._logical("OR", meta, sides)

    def conjunction_of(self, meta: Meta, sides: list[Expression]) -> Expression:
        return self._logical("AND", meta, sides)

    def negation_of(self, meta: Meta, operands: list[Expression]) -> Expression:
        return Not(self._demand(operands[0], "condition", meta))

    # ---- predicates ----

    def comparison(self, meta: Meta, parts: list[Any]) -> Expression:
        left, sign, right = parts
        kinds = {left.kind, right.kind} - {"any"}
        if len(kinds) > 1:
            _refuse(
                self.text,
                meta.start_pos,
                f"{_NAMES[left.kind]} is compared with {_NAMES[right.kind]}",
                "such a comparison is never true; give both sides the same type",
            )
        if sign not in ("=", "<>") and kinds & {"text", "condition"}:
            _refuse(self.text, meta.start_pos, f"{sign} compares numbers only", "text and truth have = and <>")
        return Comparison(str(sign), left, right)

    def _between(self, meta: Meta, parts: list[Expression], negated: bool) -> Expression:
        value, low, high = (self._demand(part, "number", meta) for part in parts)
        return Between(value, low, high, negated)

    def between(self, meta: Meta, parts: list[Expression]) -> Expression:
        return self._between(meta, parts, False)

    def not_between(self, meta: Meta, parts: list[Expression]) -> Expression:
        return self._between(meta, parts, True)

    def literals(self, meta: Meta, members: list[Expression]) -> tuple[Any, ...]:
        values = tuple(member.value for member in members if isinstance(member, Constant))
        assert len(values) == len(members)  # signed() folds -3 into a constant
        return values

    def among(self, meta: Meta, parts: list[Any]) -> Expression:
        return Among(parts[0], parts[1], False)

    def not_among(self, meta: Meta, parts: list[Any]) -> Expression:
        return Among(parts[0], parts[1], True)

    def _like(self, meta: Meta, parts: Sequence[Any], negated: bool) -> Expression:
        value, pattern, escape = parts
        self._demand(value, "text", meta)
        try:
            made = Pattern.read(_unquoted(pattern), None if escape is None else _unquoted(escape))
        except ValueError as error:
            _refuse(self.text, pattern.start_pos or 0, str(error), "such as LIKE 'a!_%' ESCAPE '!'")
        return Like(value, made, negated)

    def like(self, meta: Meta, parts: list[Any]) -> Expression:
        return self._like(meta, parts, False)

    def not_like(self, meta: Meta, parts: list[Any]) -> Expression:
        return self._like(meta, parts, True)

    def is_null(self, meta: Meta, parts: list[Expression]) -> Expression:
        return IsNull(parts[0], False)

    def is_not_null(self, meta: Meta, parts: list[Expression]) -> Expression:
        return IsNull(parts[0], True)

    # ---- numbers and names ----

    def arithmetic(self, meta: Meta, parts: list[Any]) -> Expression:
        left, sign, right = parts
        self._demand(left, "number", meta)
        self._demand(right, "number", meta)
        return Arithmetic(str(sign), left, right)

    def signed(self, meta: Meta, parts: list[Any]) -> Expression:
        sign, operand = parts
        self._demand(operand, "number", meta)
        if isinstance(operand, Constant) and isinstance(operand.value, int | float):
            return self._number(meta, -operand.value if sign == "-" else operand.value)
        # +name is no number if name is none.
        return Negated(operand) if sign == "-" else Arithmetic("+", Constant(0), operand)

    def _number(self, meta: Meta, value: int | float) -> Expression:
        if isinstance(value, int) and not -_EXACT_LIMIT <= value <= _EXACT_LIMIT:
            _refuse(self.text, meta.start_pos, "the number has more than 64 bits", "write it as 1.5e30")
        return Constant(value)

    def exact(self, meta: Meta, parts: list[Token]) -> Expression:
        digits = parts[0].rstrip("lL")
        if digits[1:2] in ("x", "X"):
            return self._number(meta, int(digits[2:], 16))
        if digits[0] != "0" or len(digits) == 1:
            return self._number(meta, int(digits))
        if set(digits) & set("89"):
            decimal = digits.lstrip("0")
            _refuse(self.text, meta.start_pos, f"{digits} is not an octal number", f"{decimal} is the decimal one")
        return self._number(meta, int(digits, 8))

    def approximate(self, meta: Meta, parts: list[Token]) -> Expression:
        value = float(parts[0].rstrip("fFdD"))  # JMS: in the range of double, whatever the suffix
        if value == float("inf"):
            _refuse(self.text, meta.start_pos, "the number is too large", "the largest one is about 1.8e308")
        return Constant(value)

    def string(self, meta: Meta, parts: list[Token]) -> Expression:
        return Constant(_unquoted(parts[0]))

    def true(self, meta: Meta, parts: list[Token]) -> Expression:
        return Constant(True)

    def false(self, meta: Meta, parts: list[Token]) -> Expression:
        return Constant(False)

    def identifier(self, meta: Meta, parts: list[Token]) -> Expression:
        name = str(parts[0])
        if name.upper() in _WORDS:
            _refuse(
                self.text, meta.start_pos, f"{name} is a word of the language", f'a header of this name is "{name}"'
            )
        return self._named(meta, name)

    def quoted(self, meta: Meta, parts: list[Token]) -> Expression:
        return self._named(meta, _unquoted(parts[0]))

    def _named(self, meta: Meta, name: str) -> Expression:
        if name.startswith("JMS") and name not in FIELDS:
            _refuse(self.text, meta.start_pos, f"{name} is not a field of a message", f"there are {', '.join(FIELDS)}")
        return Identifier(name)
