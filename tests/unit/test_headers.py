"""The block of headers: what went in comes out, what would not is refused by name, and damage is a DecodeError."""

import enum
import math
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shmq.death import Death, DeathReason
from shmq.errors import DecodeError
from shmq.headers import (
    MAX_BLOCK_BYTES,
    MAX_USER_BYTES,
    Header,
    check_content_type,
    decode_headers,
    encode_headers,
    encode_value,
)

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
groups = st.text(min_size=1, max_size=60)
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


@given(st.dictionaries(names, values, max_size=8), content_types, st.none() | deaths, st.none() | groups)
def test_headers_come_out_as_they_went_in(
    user: dict[str, Header], content_type: str | None, death: Death | None, group: str | None
) -> None:
    block = decode_headers(encode_headers(user, content_type=content_type, death=death, group=group))
    assert typed(block.user) == typed(user)
    assert (block.content_type, block.death, block.group) == (content_type, death, group)


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


def test_each_byte_of_a_block_is_as_the_documentation_has_it() -> None:
    user: dict[str, Header] = {"größe": 1, "raw": b"\xff", "no": None, "f": False, "t": True, "s": "é", "x": 0.5}
    assert encode_headers(user, content_type="a/b", group="g") == (
        b"\x01" + b"\x2e\x00"
        b"\x07gr\xc3\xb6\xc3\x9fe\x03\x01"
        b"\x03raw\x09\x01\x00\xff"
        b"\x02no\x00" + b"\x01f\x01" + b"\x01t\x02"
        b"\x01s\x08\x02\x00\xc3\xa9"
        b"\x01x\x07\x00\x00\x00\x00\x00\x00\xe0\x3f"
        b"\x01\x03\x00a/b" + b"\x03\x01\x00g"
    )


def test_the_example_of_the_documentation_is_right() -> None:
    page = (Path(__file__).parents[2] / "docs" / "headers.md").read_text()
    example = page.split("```")[1]
    shown = bytes.fromhex("".join(re.split('  [v"o]', line)[0] for line in example.split("\n")))
    assert shown == encode_headers({"kind": "png", "width": 4000}, group="a")


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (127, b"\x03\x7f"),
        (-128, b"\x03\x80"),
        (128, b"\x04\x80\x00"),
        (-32768, b"\x04\x00\x80"),
        (32768, b"\x05\x00\x80\x00\x00"),
        (-(2**31), b"\x05\x00\x00\x00\x80"),
        (2**31, b"\x06\x00\x00\x00\x80\x00\x00\x00\x00"),
    ],
)
def test_an_int_takes_as_few_bytes_as_it_needs(value: int, encoded: bytes) -> None:
    assert encode_value(value) == encoded
    assert encode_headers({"n": value})[-len(encoded) :] == encoded
    assert dict(decode_headers(encode_headers({"n": value})).user) == {"n": value}


def test_a_field_of_its_own_that_is_not_known_is_passed_over() -> None:
    later = b"\xc8\x02\x00??"
    block = decode_headers(encode_headers({"a": 1}, group="g") + later)
    assert (dict(block.user), block.group) == ({"a": 1}, "g")


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
        ("a", 2**63, "'a' is beyond the integers of 64 bits"),
        ("a", -(2**63) - 1, "'a' is beyond the integers of 64 bits"),
        pytest.param("a", 10**5000, "'a' is beyond", id="huge"),
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
        encode_headers({"b": 1, "a": "x" * (MAX_USER_BYTES - empty + 1 - len(b"1b31"))})
    with pytest.raises(ValueError, match=r"100,008 bytes encoded, at most 64,511.*first of all 'a'"):
        encode_headers({"a": "x" * 100_000})


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


@pytest.mark.parametrize(
    ("group", "error"), [("", ValueError), ("x" * 256, ValueError), ("\ud800", ValueError), (b"x", TypeError)]
)
def test_an_unfit_group_is_refused(group: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="group"):
        encode_headers(None, group=group)


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


def head(user: bytes, own: bytes = b"", announced: int | None = None) -> bytes:
    size = len(user) if announced is None else announced
    return b"\1" + size.to_bytes(2, "little") + user + own


def own(number: int, content: bytes) -> bytes:
    return bytes((number,)) + len(content).to_bytes(2, "little") + content


def buried(*values: Header) -> bytes:
    return head(b"", own(2, b"".join(map(encode_value, values))))


DAMAGED = [
    b"\0", b"\1", b"\1\0", b"\2\0\0", b'{"a":1}', b"\xff" * 200, b"\1\0\0" + b"\0" * 65_533,
    head(b"\1a\0", announced=4), head(b"\1a\0", announced=2), head(b"\1a"), head(b"\1"), head(b"\0\0"),
    head(b"\1a\0\1a\0"), head(b"\1\xff\0"), head(b"\3\xed\xa0\x80\0"), head(b"\6shmq-x\0"), head(b"\4JMSx\0"),
    head(b"\1a\x0a\0\0"), head(b"\1a\xff"), head(b"\1a\3"), head(b"\1a\4\0"), head(b"\1a\5\0\0\0"),
    head(b"\1a\6" + b"\0" * 7), head(b"\1a\7" + b"\0" * 7), head(b"\1a\7\0\0\0\0\0\0\xf0\x7f"),
    head(b"\1a\7\0\0\0\0\0\0\xf8\x7f"), head(b"\1a\x08"), head(b"\1a\x08\1\0"), head(b"\1a\x08\1\0\xff"),
    head(b"\1a\x08\3\0\xed\xa0\x80"), head(b"\1a\x09\2\0x"), head(b"\1a\x09\2\0x", own(1, b"a")),
    head(b"", b"\1"), head(b"", b"\1\1\0"), head(b"", own(1, b"")), head(b"", own(1, b"a\n")),
    head(b"", own(1, b"\xff")),
    head(b"", own(1, b"a") * 2), head(b"", own(3, b"")), head(b"", own(3, b"x" * 256)), head(b"", own(3, b"\xff")),
    head(b"", own(3, b"a") * 2), head(b"", b"\xc8\2\0x"), head(b"", own(2, b"")), buried("q"),
    buried("q", "rejected", None, 1.0), head(b"", own(2, buried("q", "rejected", None, 1.0, None)[6:] + b"\4\1")),
    head(b"", buried("q", "rejected", None, 1.0, None)[3:] * 2), buried("q", "murdered", None, 1.0, None),
    buried(7, "rejected", None, 1.0, None), buried("q", 7, None, 1.0, None), buried("q", "rejected", 7, 1.0, None),
    buried("q", "rejected", None, 1, None), buried("q", "rejected", None, 1.0, "9"),
    buried("q", "rejected", None, 1.0, None, True), buried("q", "rejected", None, 1.0, None, -1),
    buried("q", "rejected", None, 1.0, -1), buried("q", "rejected", None, 1.0, 1.0),
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
    encode_headers(block.user, content_type=block.content_type, death=block.death, group=block.group)


@given(st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=6))), st.lists(st.tuples(st.integers(0, 5), values)))
def test_random_headers_and_fields_are_headers_or_a_decode_error(
    user: list[tuple[int, bytes]], fields: list[tuple[int, Header]]
) -> None:
    data = head(
        b"".join(b"\2%02d%c%s" % (n % 100, kind, content) for n, (kind, content) in enumerate(user)),
        b"".join(own(number, encode_value(value)) for number, value in fields),
    )
    try:
        block = decode_headers(data)
    except DecodeError:
        return
    encode_headers(block.user, content_type=block.content_type, death=block.death, group=block.group)


@given(st.dictionaries(names, values, max_size=3), st.integers(0, 10_000), st.integers(1, 255))
def test_a_flipped_byte_is_headers_or_a_decode_error(user: dict[str, Header], at: int, flip: int) -> None:
    data = bytearray(encode_headers(user, death=DEATH))
    data[at % len(data)] ^= flip
    try:
        decode_headers(data)
    except DecodeError:
        pass
