"""The language of selectors: its values, its three-valued logic, its errors; and SQLite, which must agree."""

import math
import sqlite3
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shmq.core.selector import Selector
from shmq.errors import CorruptionError, SelectorError
from shmq.headers import encode_headers
from shmq.selector import FIELDS, compiled
from shmq.selector.parser import MAX_DEPTH, MAX_TEXT

Headers = Mapping[str, Any]


def selects(text: str, /, **headers: Any) -> bool:
    return selects_by(text, headers)


def selects_by(text: str, headers: Headers) -> bool:
    return Selector(compiled(text)).selects(encode_headers(headers, group="g"), 7, 1_700_000_000_000, 4, False, 1)


# ---- values and operators ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "headers", "expected"),
    [
        ("kind = 'png' AND width > 1000", {"kind": "png", "width": 4000}, True),
        ("kind = 'png' AND width > 1000", {"kind": "png", "width": 200}, False),
        ("name = 'it''s'", {"name": "it's"}, True),
        ("a <> 1", {"a": 2}, True),
        (
            "a = 0x1F AND a = 0X1f AND a = 0x1FL AND a = 31 AND a = 31L AND a = 31l AND a = 037 AND a = 037L",
            {"a": 31},
            True,
        ),
        ("a = 0xFFFFFFFF AND a = 4294967295", {"a": 0xFFFFFFFF}, True),  # never negative
        ("a = 0x7fffffffffffffff AND a = 0777777777777777777777", {"a": (1 << 63) - 1}, True),
        ("a = 0 AND a = 00 AND a = 0L AND a = 0x0 AND a = 0f", {"a": 0}, True),
        ("a = 3.5f AND a = 3.5d AND a = 3.5F AND a = 3.5D AND a = 35e-1f AND a = .35e1d AND a = 3.5", {"a": 3.5}, True),
        ("a = 7f AND a = 7d AND a = 7.f AND a = 07.d AND a = 007e0", {"a": 7}, True),
        ("a = 0.1f", {"a": 0.1}, True),  # all numbers have the range of double
        ("a IN (-0x10, -010, +1L)", {"a": -16}, True),
        ("a IN (-0x10, -010, +1L)", {"a": -8}, True),
        ("a BETWEEN 0xA AND 0xCL", {"a": 11}, True),
        ("0x1e5 = a", {"a": 485}, True),  # a digit, no exponent
        ("a >= 2 and a <= 2.0", {"a": 2}, True),
        ("a = 9007199254740993", {"a": 9007199254740992.0}, False),  # exactly, not rounded
        ("a < -1.5e2 OR a = .5 OR a = 7.", {"a": 7}, True),
        ("a BETWEEN 1 AND 3", {"a": 3}, True),
        ("a NOT BETWEEN 1 AND 3", {"a": 3}, False),
        ("c IN ('de', 'at', 'ch')", {"c": "at"}, True),
        ("c NOT IN ('de', 'at')", {"c": "fr"}, True),
        ("n in (1, -2, 3.5)", {"n": -2}, True),
        ("phone LIKE '12%3'", {"phone": "12993"}, True),
        ("phone LIKE '12%3'", {"phone": "1234"}, False),
        ("word LIKE 'l_se'", {"word": "lose"}, True),
        ("word LIKE 'l_se'", {"word": "loose"}, False),
        (r"name LIKE '\_%' ESCAPE '\'", {"name": "_foo"}, True),
        (r"name LIKE '\_%' ESCAPE '\'", {"name": "bar"}, False),
        ("text like 'a%c'", {"text": "a\n\nc"}, True),
        ("text like '_%é_' and text not like '____%'", {"text": "😀é€"}, True),
        ("text like '%ab_d%_f%'", {"text": "xabababcdéfg"}, True),
        ("text like '%ab_d%_f'", {"text": "xabababcdf"}, False),  # the pieces do not overlap
        ("text like '%%a%%'", {"text": "a"}, True),
        ("text like ''", {"text": ""}, True),
        ("text like '_'", {"text": ""}, False),
        ("a = 9223372036854775808 AND -9223372036854775808 = b", {"a": 2.0**63, "b": -(2**63)}, True),
        ("a / -1 = 9223372036854775808 AND -a = a / -1", {"a": -(2**63)}, True),
        ("a * a - a * a IS NULL AND a * a > a", {"a": 1e200}, True),  # infinity, and what is no number
        ("a < 0.5 AND a > -0.5 AND a = -0.0", {"a": 0}, True),
        ("a IN (9007199254740993) OR a NOT IN (9007199254740992)", {"a": 9007199254740992.0}, False),
        ("b NOT IN ('x') AND b NOT LIKE '%' AND NOT b = b", {"b": b"x"}, True),
        ("a / 2 = 3 AND a / 2.0 = 3.5", {"a": 7}, True),
        ("a / 2 = -3", {"a": -7}, True),  # towards zero
        ("2 + 3 * a = 14 AND (2 + 3) * a = 20 AND -a + 10 - 3 - 3 = 0", {"a": 4}, True),
        ("a + 1 > 9223372036854775807", {"a": 9223372036854775807}, True),  # goes on as an approximate number
        ("urgent", {"urgent": True}, True),
        ("NOT urgent", {"urgent": False}, True),
        ("urgent = TRUE AND NOT urgent = FALSE", {"urgent": True}, True),
        ("TRUE", {}, True),
        ("FALSE", {}, False),
        ("a = 1 OR b = 2 AND c = 3", {"a": 1}, True),  # AND binds more than OR
        ("NOT a = 1 AND b = 2", {"a": 3, "b": 2}, True),  # NOT binds more than AND
        ("order_id = 1 AND notes = 'x' AND isle = 2", {"order_id": 1, "notes": "x", "isle": 2}, True),
        ("größe > 3 AND $a.b = 1", {"größe": 4, "$a.b": 1}, True),
        ('"content-type" = \'a\' AND "a ""b""" = 1', {"content-type": "a", 'a "b"': 1}, True),
        ("Kind = 'png'", {"kind": "png"}, False),  # names and texts are case sensitive, words are not
    ],
)
def test_a_condition_means_what_sql_says(text: str, headers: dict[str, Any], expected: bool) -> None:
    assert selects(text, **headers) is expected


@pytest.mark.parametrize(
    "text",
    [
        "a = 1",
        "a <> 1",
        "NOT a = 1",
        "NOT (a = 1 AND TRUE)",
        "NOT (TRUE AND a = 1)",
        "NOT (a = 1 OR FALSE)",
        "NOT (FALSE OR a = 1)",
        "a BETWEEN 1 AND 2",
        "a NOT BETWEEN 1 AND 2",
        "a IN ('x')",
        "a NOT IN ('x')",
        "a LIKE '%'",
        "a NOT LIKE '%'",
        "a + 1 > 0",
        "-a < 0",
        "a",
        "NOT a",
        "a IS NOT NULL",
        "NOT (a IS NULL)",
        "a = 1 AND TRUE",
        "a = 1 OR FALSE",
        "1 / 0 = 1 OR 1 / 0 <> 1",
    ],
)
def test_what_is_unknown_selects_nothing(text: str) -> None:
    assert not selects(text)
    assert not selects(text, a=None)


def test_unknown_is_overruled_by_what_is_certain() -> None:
    assert selects("a = 1 OR TRUE")
    assert selects("NOT (a = 1 AND FALSE)")
    assert selects("a IS NULL")


@pytest.mark.parametrize("sign", ["=", "<>", "<", "<=", ">", ">="])
def test_values_of_unlike_types_are_never_equal_less_or_greater(sign: str) -> None:
    assert not selects(f"a {sign} 1", a="1")
    assert not selects(f"a {sign} 1", a=True)
    assert not selects(f"a {sign} b", a=b"x", b=b"x")
    assert not selects(f"a {sign} b", a="x", b=False)


def test_text_and_truth_have_no_order() -> None:
    assert not selects("a < b", a="x", b="y")
    assert not selects("a >= b", a=True, b=False)
    assert selects("a <> b", a="x", b="y")


def test_truth_is_no_number_in_a_list() -> None:
    assert not selects("a IN (1, 0)", a=True)
    assert selects("a IN (TRUE)", a=True)
    assert not selects("a IN (TRUE)", a=1)


def test_arithmetic_with_text_is_null() -> None:
    assert not selects("a + 1 > 0 OR a + 1 <= 0", a="5")
    assert selects("(a + 1) IS NULL", a="5")


# ---- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "character", "fault"),
    [
        ("", 1, "empty"),
        ("   ", 1, "empty"),
        ("a == 1", 3, "== is not an operator here; use ="),
        ("a != 1", 3, "!= is not an operator here; use <>"),
        ("a = 1 && b = 2", 7, "&& is not an operator here; use AND"),
        ("a = 1 || b = 2", 7, "|| is not an operator here; use OR"),
        ("a = 089", 5, "089 is not an octal number; 89 is the decimal one"),
        ("a = 0x", 6, "'x' stands there"),
        ("a = 0x1G", 8, "'G' stands there"),
        ("a = 1_000", 6, "'_000' stands there"),  # of a later Java
        ("a = 0b11", 6, "'b11' stands there"),
        ("a = 0xFFFFFFFFFFFFFFFF", 5, "more than 64 bits"),
        ("width >", 8, "it ends"),
        ("a = 1 = 2", 7, "'=' stands there"),
        ("(a = 1", 7, "it ends"),
        ("a = 'x", 5, "no end"),
        ('a = "x', 5, "no end"),
        ("a & b", 3, "'&' has no meaning"),
        ("1", 1, "a condition is expected, this is a number"),
        ("a = 1 AND 'x'", 1, "a condition is expected, this is text"),
        ("'a' + 1 > 2", 1, "a number is expected, this is text"),
        ("1 = 'a'", 1, "compared with text"),
        ("a < 'b'", 1, "compares numbers only"),
        ("a IN ()", 7, "')' stands there"),
        ("a IN (b)", 7, "'b' stands there"),
        ("a LIKE b", 8, "'b' stands there"),
        ("a LIKE 'b!c' ESCAPE '!'", 8, "escape character"),
        ("a LIKE 'b!' ESCAPE '!'", 8, "escape character"),
        ("a LIKE 'b' ESCAPE '!!'", 8, "one character"),
        ("a = 99999999999999999999", 5, "more than 64 bits"),
        ("a = 1e999", 5, "too large"),
        ("x = 1 AND JMSType = 'a'", 11, "JMSType is not a field"),
        ("or = 1", 1, "or is a word"),
        ("a = null", 5, "null is a word"),
        ("NOT " * (MAX_DEPTH + 1) + "a", 1, "deep"),
    ],
)
def test_a_malformed_selector_names_the_place(text: str, character: int, fault: str) -> None:
    with pytest.raises(SelectorError) as error:
        compiled(text)
    message = str(error.value)
    assert f"at character {character}: " in message
    assert fault in message
    first, shown, caret = message.split("\n")
    assert not shown.strip() or text[character - 1 : character] == shown[len(caret) - 1 : len(caret)]
    assert first


def test_a_selector_is_text_of_limited_length() -> None:
    with pytest.raises(TypeError, match="str, not bytes"):
        compiled(b"a = 1")  # type: ignore[arg-type]
    with pytest.raises(SelectorError, match="too long"):
        compiled("a = 1 OR " * MAX_TEXT + "TRUE")
    assert selects(" OR ".join(f"a={n}" for n in range(400)), a=399)  # a long list is not deep
    assert selects("(" * 2000 + "a" + ")" * 2000, a=True)


def test_every_field_of_a_message_can_be_asked_for() -> None:
    for name in FIELDS:
        assert selects(f"{name} IS NOT NULL")
    assert selects("JMSMessageID = 7 AND JMSTimestamp = 1.7e12 AND JMSPriority = 4 AND NOT JMSRedelivered")
    assert selects("JMSXDeliveryCount = 1 AND JMSXGroupID = 'g'")
    ask = Selector(
        compiled("JMSPriority = 9 AND JMSRedelivered AND JMSXDeliveryCount = 3 AND JMSXGroupID IS NULL")
    ).selects
    assert ask(b"", 1 << 63, 0, 9, True, 3)
    assert ask(encode_headers({"JMX": 1}), 1, 0, 9, True, 3)
    assert not ask(b"", 1, 0, 9, False, 3)


def test_a_pattern_with_many_wildcards_takes_no_time_worth_mentioning() -> None:
    text = "a%" * 60 + "b"
    assert not selects(f"t LIKE '{text}'", t="a" * 20_000)  # with going back this would take for ever


@given(st.text(max_size=60))
def test_whatever_the_text_is_it_is_a_selector_or_a_selector_error(text: str) -> None:
    try:
        selects(text)
    except SelectorError:
        pass


PROGRAMS = [compiled("a = 1 AND b LIKE 'x_%' OR c IN ('d', 2)"), compiled("a NOT BETWEEN b + 1 AND 3"), b"\1\1\0\0\1\0"]


@given(
    st.sampled_from(PROGRAMS), st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4), st.binary()
)
def test_whatever_the_bytes_are_they_are_a_program_that_can_be_run_or_refused(
    program: bytes, changes: list[tuple[int, int]], more: bytes
) -> None:
    data = bytearray(program)
    for at, value in changes:
        data[at % len(data)] = value
    for head in (more, encode_headers({"a": 1, "b": "xyz", "c": None})):
        for candidate in (data, data + more, more):
            try:
                selector = Selector(candidate)
            except CorruptionError:
                continue
            selector.selects(head, 1, 1, 4, False, 1)


# ---- SQLite agrees -----------------------------------------------------------------------------------------------

INTS = st.one_of(st.integers(-5, 5), st.integers(-(1 << 63) + 1, (1 << 63) - 1))
FLOATS = st.one_of(
    st.sampled_from([0.0, -0.5, 2.5, 1e300, 9007199254740992.0]),
    st.floats(allow_nan=False, allow_infinity=False),
)
TEXTS = st.text(st.sampled_from("ab_%!'é"), max_size=5)
NUMBER_NAMES, TEXT_NAMES, TRUTH_NAMES = ("n", "m"), ("t", "u"), ("b", "c")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literal(number: int | float) -> str:
    text = repr(abs(number))
    return f"(-{text})" if math.copysign(1, number) < 0 else text


def joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(" ".join)


def numbers() -> st.SearchStrategy[str]:
    base = st.one_of(st.sampled_from(NUMBER_NAMES), INTS.map(literal), FLOATS.map(literal))
    return st.recursive(
        base,
        lambda inner: st.one_of(
            joined(inner, st.sampled_from("+-*/"), inner),
            inner.map(lambda text: f"({text})"),
            inner.map(lambda text: f"-({text})"),
        ),
        max_leaves=4,
    )


def patterns() -> st.SearchStrategy[str]:
    plain = TEXTS.map(quoted)
    escaped = st.text(st.sampled_from("ab_%"), max_size=4).map(
        lambda text: quoted("".join("!" + c if c in "_%" else c for c in text) + "%") + " ESCAPE '!'"
    )
    return st.one_of(plain, escaped)


def predicates() -> st.SearchStrategy[str]:
    number, text = numbers(), st.one_of(st.sampled_from(TEXT_NAMES), TEXTS.map(quoted))
    no = st.sampled_from(["", "NOT"])
    members = st.lists(TEXTS.map(quoted), min_size=1, max_size=3).map(lambda m: f"({', '.join(m)})")
    return st.one_of(
        st.sampled_from([*TRUTH_NAMES, "TRUE", "FALSE"]),
        joined(number, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), number),
        joined(text, st.sampled_from(["=", "<>"]), text),
        joined(number, no, st.just("BETWEEN"), number, st.just("AND"), number),
        joined(st.sampled_from(TEXT_NAMES), no, st.just("IN"), members),
        joined(text, no, st.just("LIKE"), patterns()),
        joined(st.one_of(number, text), st.just("IS"), no, st.just("NULL")),
    )


def conditions() -> st.SearchStrategy[str]:
    return st.recursive(
        predicates(),
        lambda inner: st.one_of(
            joined(inner, st.sampled_from(["AND", "OR"]), inner),
            inner.map(lambda text: f"NOT ({text})"),
            inner.map(lambda text: f"({text})"),
        ),
        max_leaves=6,
    )


def messages() -> st.SearchStrategy[Headers]:
    return st.fixed_dictionaries(
        {name: st.one_of(st.none(), INTS, FLOATS) for name in NUMBER_NAMES}
        | {name: st.one_of(st.none(), TEXTS) for name in TEXT_NAMES}
        | {name: st.one_of(st.none(), st.booleans()) for name in TRUTH_NAMES}
    )


@given(conditions(), messages())
def test_sqlite_agrees(text: str, headers: Headers) -> None:
    with sqlite3.connect(":memory:") as database:
        database.execute("PRAGMA case_sensitive_like = ON")
        columns = ", ".join(f"? AS {name}" for name in headers)
        query = f"SELECT ({text}) IS TRUE FROM (SELECT {columns})"
        (expected,) = database.execute(query, list(headers.values())).fetchone()
    database.close()
    assert selects_by(text, headers) == bool(expected), text
