"""The block of headers: what went in comes out, what would not is refused by name, and damage is a DecodeError."""

import enum
import json
import math
from types import MappingProxyType
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shmq.errors import DecodeError
from shmq.headers import (
    MAX_BLOCK_BYTES,
    MAX_USER_BYTES,
    Header,
    check_content_type,
    decode_headers,
    encode_headers,
)
from shmq.statistics import Death, DeathReason

names = st.text(min_size=1, max_size=60).filter(lambda name: not name.startswith(("shmq-", "JMS")))
values: st.SearchStrategy[Header] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=100),
    st.binary(max_size=100),
)
content_types = st.none() | st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=255)
reasons = st.sampled_from(get_args(DeathReason))
deaths = st.builds(
    Death,
    queue=st.text(min_size=1, max_size=50),
    reason=reasons,
    error=st.none() | st.text(max_size=200),
    at=st.floats(0, 4e9),
    pids=st.lists(st.integers(1, 2**22), max_size=16).map(tuple),
    signal=st.none() | st.integers(1, 64),
)
DEATH = Death("jobs", "max_deaths", "killed", 2.5, (7, 8), 9)


class Colour(enum.IntEnum):
    RED = 1


class Name(str):
    pass


def typed(headers: Any) -> list[tuple[str, type, Any]]:
    return [(name, type(value), value) for name, value in headers.items()]


@given(st.dictionaries(names, values, max_size=8), content_types, st.none() | deaths)
def test_headers_come_out_as_they_went_in(
    user: dict[str, Header], content_type: str | None, death: Death | None
) -> None:
    block = decode_headers(encode_headers(user, content_type=content_type, death=death))
    assert typed(block.user) == typed(user)
    assert (block.content_type, block.death) == (content_type, death)


def test_nothing_takes_no_bytes() -> None:
    assert encode_headers(None) == encode_headers({}) == b""
    block = decode_headers(b"")
    assert (dict(block.user), block.content_type, block.death) == ({}, None, None)


def test_the_minus_of_a_zero_is_kept() -> None:
    value = decode_headers(encode_headers({"z": -0.0})).user["z"]
    assert isinstance(value, float)
    assert math.copysign(1, value) == -1


def test_decoded_headers_are_read_only() -> None:
    user = decode_headers(memoryview(encode_headers({"a": 1}))).user
    assert isinstance(user, MappingProxyType)
    with pytest.raises(TypeError):
        user["a"] = 2  # type: ignore[index]


def test_any_mapping_will_do() -> None:
    assert encode_headers(MappingProxyType({"a": 1})) == encode_headers({"a": 1})


def test_a_block_is_compact_json() -> None:
    assert encode_headers({"größe": 1, "raw": b"\xff"}) == '{"größe":1,"raw":{"b":"/w=="}}'.encode()


@pytest.mark.parametrize("value", [-(2**63), 2**63 - 1])
def test_the_ends_of_64_bits_are_taken(value: int) -> None:
    assert decode_headers(encode_headers({"n": value})).user["n"] == value


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("shmq-x", 1, "reserved name"),
        ("shmq-content-type", "a/b", "reserved name"),
        ("JMSPriority", 1, "reserved name"),
        ("", 1, "name of 0 bytes"),
        ("n" * 256, 1, "name of 256 bytes, 1 to 255"),
        ("ü" * 128, 1, "name of 256 bytes"),
        ("a\ud800", 1, "surrogate in its name"),
        ("a", "\ud800", "'a' has a lone surrogate"),
        ("a", 2**63, "'a' is an int of 64 bits"),
        ("a", -(2**63) - 1, "'a' is an int of 64 bits"),
        pytest.param("a", 10**5000, "'a' is an int of", id="huge"),
        ("a", math.nan, "'a' is nan"),
        ("a", -math.inf, "'a' is -inf"),
    ],
)
def test_a_header_out_of_range_is_a_value_error(name: str, value: Header, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        encode_headers({name: value})


@pytest.mark.parametrize(
    "value", [[1], (1,), {"b": "AA=="}, bytearray(b"x"), memoryview(b"x"), Colour.RED, Name("x"), 1j, object()]
)
def test_a_header_of_another_type_is_a_type_error_that_names_it(value: Any) -> None:
    with pytest.raises(TypeError, match=r"the header 'colour' is of the type .*; use str, int"):
        encode_headers({"colour": value})


@pytest.mark.parametrize("name", [1, b"a", None, Name("a"), ("a",)])
def test_a_name_of_another_type_is_a_type_error(name: Any) -> None:
    with pytest.raises(TypeError, match=r"name of a header is a str, not"):
        encode_headers({name: 1})


def test_headers_that_are_no_mapping_are_a_type_error() -> None:
    with pytest.raises(TypeError, match="headers are a mapping"):
        encode_headers([("a", 1)])  # type: ignore[arg-type]


def test_headers_that_are_too_large_are_refused_with_figures() -> None:
    empty = len(encode_headers({"a": ""}))
    assert len(encode_headers({"a": "x" * (MAX_USER_BYTES - empty)})) == MAX_USER_BYTES
    with pytest.raises(ValueError, match=r"64,512 bytes encoded, at most 64,511.*first of all 'a'"):
        encode_headers({"b": 1, "a": "x" * (MAX_USER_BYTES - empty + 1 - len('"b":1,'))})


@pytest.mark.parametrize("error", [None, "x", "x" * 10**6, "\x00" * 10**5, "€" * 10**5, "\udcff" * 10**5])
@pytest.mark.parametrize("size", [0, 1_000, MAX_USER_BYTES])
def test_whatever_could_be_put_can_be_buried(size: int, error: str | None) -> None:
    user = {"a": "x" * (size - len(encode_headers({"a": ""})))} if size else {}
    death = Death('"' * 200, "queue_deleted", error, 1e9 / 3, tuple(range(4_000_000, 4_065_535)), 64)
    data = encode_headers(user, death=death)
    assert len(data) <= MAX_BLOCK_BYTES
    block = decode_headers(data)
    assert block.user == user
    assert block.death is not None
    assert (block.death.queue, block.death.at, block.death.pids) == (death.queue, death.at, death.pids[-16:])
    assert (block.death.error is None) == (error is None)


def test_a_long_traceback_keeps_both_ends() -> None:
    text = "Traceback (most recent call last):\n" + "  frame\n" * 10_000 + "KeyError: 'x'"
    death = decode_headers(encode_headers(None, death=Death("q", "rejected", text, 1.0, (), None))).death
    assert death is not None
    assert death.error is not None
    assert death.error.startswith("Traceback")
    assert death.error.endswith("KeyError: 'x'")
    assert len(death.error) < 20_000


@pytest.mark.parametrize("value", ["", "x" * 256, "a\nb", "größe", "a\x7f"])
def test_an_unfit_content_type_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="content type"):
        check_content_type(value)
    with pytest.raises(ValueError, match="content type"):
        encode_headers(None, content_type=value)


DAMAGED: list[Any] = [
    b"{", b"[]", b"null", b"1", b'"a"', b"\xff", b"{}x", b'{"a":NaN}', b'{"a":1e999}', b'{"a":-Infinity}',
    b'{"a":1,"a":2}', b'{"a":[1]}', b'{"a":{}}', b'{"a":{"b":1}}', b'{"a":{"b":"!!"}}', b'{"a":{"b":"AA==","c":1}}',
    b'{"a":{"b":"\xc3\xbc"}}', b'{"a":9223372036854775808}', b'{"a":"\\ud800"}', b'{"\\ud800":1}', b'{"shmq-new":1}',
    b"[" * 60_000, b'{"a":' * 12_000, b'{"a":' + b"9" * 5_000 + b"}", b" " * 65_536, b'{"shmq-content-type":7}',
    b'{"shmq-content-type":""}', b'{"shmq-content-type":"a","shmq-content-type":"a"}', b'{"shmq-death":null}',
    b'{"shmq-death":["q","rejected",null,1.0,[],null,1]}', b'{"shmq-death":["q","murdered",null,1.0,[],null]}',
    b'{"shmq-death":[7,"rejected",null,1.0,[],null]}', b'{"shmq-death":["q",[],null,1.0,[],null]}',
    b'{"shmq-death":["q","rejected",7,1.0,[],null]}', b'{"shmq-death":["q","rejected",null,1,[],null]}',
    b'{"shmq-death":["q","rejected",null,1.0,[true],null]}', b'{"shmq-death":["q","rejected",null,1.0,{},null]}',
    b'{"shmq-death":["q","rejected",null,1.0,[],1.0]}', b'{"shmq-death":["q","rejected",null,1e999,[],null]}',
]  # fmt: skip


@pytest.mark.parametrize("data", DAMAGED, ids=lambda data: repr(data[:50]))
def test_a_damaged_block_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(DecodeError, match="headers of the message are damaged"):
        decode_headers(data)


@given(st.binary(max_size=200))
def test_random_bytes_are_headers_or_a_decode_error(data: bytes) -> None:
    try:
        block = decode_headers(data)
    except DecodeError:
        return
    encode_headers(block.user, content_type=block.content_type, death=block.death)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3) | st.just("b"), inner),
)
field_names = st.sampled_from(["shmq-death", "shmq-content-type", "a", "JMSx"])


@given(st.dictionaries(field_names, json_values))
def test_random_json_is_headers_or_a_decode_error(fields: dict[str, Any]) -> None:
    try:
        decode_headers(json.dumps(fields).encode())
    except DecodeError:
        pass


@given(st.dictionaries(names, values, max_size=3), st.integers(0, 10_000), st.integers(1, 255))
def test_a_flipped_byte_is_headers_or_a_decode_error(user: dict[str, Header], at: int, flip: int) -> None:
    data = bytearray(encode_headers(user, death=DEATH))
    data[at % len(data)] ^= flip
    try:
        decode_headers(data)
    except DecodeError:
        pass
