"""Bodies become bytes and come back as they were; what would not is refused with its place, damage is a DecodeError."""

import collections
import dataclasses
import enum
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shmq.codec import (
    CONTENT_TYPES,
    JSON,
    NAMED,
    OCTETS,
    PICKLE,
    TEXT,
    AnyCodec,
    Codec,
    Encoded,
    check_codec,
    check_decodable,
    content_type_of,
    decode,
    encode,
)
from shmq.errors import DecodeError

json_bodies = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)
HEX: Codec[int] = Codec("text/x-hex", lambda n: b"%x" % n, lambda data: int(bytes(data), 16))
ALL_CODECS: list[AnyCodec] = [None, "bytes", "pickle", HEX]


class Colour(enum.IntEnum):
    RED = 1


class Word(str):
    pass


class Blob(bytes):
    pass


def there_and_back(body: Any, codec: AnyCodec = None) -> Any:
    encoded = encode(body, codec)
    assert encoded.size == len(encoded.joined()) == sum(map(len, encoded.pieces))
    for piece in encoded.pieces:
        view = memoryview(piece)
        assert (view.ndim, view.format, view.c_contiguous) == (1, "B", True)
    return decode(encoded.content, encoded.content_type, memoryview(encoded.joined()), codec)


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types all the way down: 1, 1.0 and True are three things, so are 0.0 and -0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return repr(one) == repr(other)


# ---- the default codec -----------------------------------------------------------------------------------------


@given(json_bodies)
def test_json_values_come_out_as_they_went_in(body: Any) -> None:
    assert encode(body).content == (TEXT if type(body) is str else JSON)
    assert same(there_and_back(body), body)


@given(st.binary())
def test_bytes_come_out_as_they_went_in(body: bytes) -> None:
    for given_body in (body, bytearray(body), memoryview(body)):
        for codec in (None, "bytes"):
            assert encode(given_body, codec).content == OCTETS
            assert same(there_and_back(given_body, codec), body)


@pytest.mark.parametrize(
    "view",
    [
        memoryview(b"abcdef")[::2],
        memoryview(b"abcdef")[::-1],
        memoryview(bytearray(6)).cast("B", (2, 3)),
        memoryview(bytes(range(16))).cast("d"),
        memoryview(b"abc").cast("c"),
        memoryview(b""),
        np.arange(6, dtype=">i4").data,
        np.asfortranarray(np.arange(6).reshape(2, 3)).data,
        np.zeros((0, 3)).data,
        np.zeros(2, dtype=[("a", "i1"), ("b", "f8")]).data,
    ],
)
def test_a_view_of_any_form_is_taken_as_its_bytes(view: memoryview) -> None:
    assert there_and_back(view) == there_and_back(view, "bytes") == view.tobytes()


def test_bytes_are_not_copied_on_their_way_in() -> None:
    body = b"x" * 1000
    assert encode(body).pieces[0] is body
    array = bytearray(b"x" * 1000)
    piece = encode(array).pieces[0]
    array[0] = ord("y")
    assert piece[0] == ord("y")


def test_what_comes_out_does_not_look_into_the_buffer() -> None:
    buffer = bytearray(b"abc")
    for codec in (None, "bytes"):
        body = decode(OCTETS, None, memoryview(buffer), codec)
        assert type(body) is bytes
    buffer[:] = b"xyz"
    assert body == b"abc"


def test_json_is_compact_and_in_utf8() -> None:
    assert encode({"größe": [1, 2.0, None, True]}).joined() == '{"größe":[1,2.0,null,true]}'.encode()


@pytest.mark.parametrize("body", [10**4299, -(10**4299), [10**4299, {"a": -(10**4299)}]], ids=["plus", "minus", "in"])
def test_large_ints_are_taken_up_to_what_python_reads(body: Any) -> None:
    assert there_and_back(body) == body


def test_an_array_that_is_shared_in_a_list_is_no_cycle() -> None:
    inner = [1]
    assert there_and_back([inner, inner, {"a": inner}]) == [[1], [1], {"a": [1]}]


def nested(depth: int) -> list[Any]:
    body: list[Any] = []
    for _ in range(depth - 1):
        body = [body]
    return body


def test_nesting_is_taken_to_its_limit() -> None:
    assert there_and_back(nested(256)) == nested(256)
    with pytest.raises(TypeError, match="nested deeper than 256 levels"):
        encode(nested(257))


def test_a_cycle_is_refused_and_not_followed_for_ever() -> None:
    wide: list[Any] = []
    wide += [wide, wide]
    knot: dict[str, Any] = {}
    knot["a"] = [knot]
    for body in (wide, knot):
        with pytest.raises(TypeError, match="or in itself"):
            encode(body)


REFUSED: list[tuple[Any, str]] = [
    ((1, 2), "body is of the type tuple .*use a list"),
    ([1, (2,)], r"body\[1\] is of the type tuple"),
    ({"a": [{"b": {1}}]}, r"body\['a'\]\[0\]\['b'\] is of the type set"),
    ({1: 2}, "body is a dict with a key of the type int"),
    ({None: 2}, "key of the type NoneType"),
    ({"a": {True: 2}}, r"body\['a'\] is a dict with a key of the type bool"),
    (math.nan, "body is nan"),
    ([0.0, math.inf], r"body\[1\] is inf"),
    ({"a": -math.inf}, r"body\['a'\] is -inf"),
    (np.float64("inf"), r"numpy.float64 .*use item\(\)"),
    ([{"a": np.float32("nan")}], r"numpy.float32 .*use item\(\)"),
    (10**4300, "body is an int of more than 4,300 digits"),
    ([1, -(10**4300)], r"body\[1\] is an int of more than"),
    ([1, [10**5000]], r"body\[1\]\[0\] is an int of more than"),
    ("a\ud800", r"body is a str with the lone surrogate U\+D800 at 1"),
    (["ok", "\udcff"], r"body\[1\] is a str with the lone surrogate U\+DCFF"),
    ({"\ud800": 1}, "body is a dict with a key that is a str with the lone surrogate"),
    (Colour.RED, "Colour .*use a plain int"),
    ([Colour.RED], r"body\[0\] is of the type .*Colour"),
    (Word("x"), "Word .*use a plain str"),
    ({Word("x"): 1}, "key of the type .*Word"),
    (collections.OrderedDict(a=1), "OrderedDict .*use a plain dict"),
    ([collections.defaultdict(list)], "defaultdict"),
    (Blob(b"x"), r"Blob .*use bytes\(body\)"),
    ([b"x"], r"body\[0\] is of the type bytes .*base64"),
    (np.float64(1.5), r"body is of the type numpy.float64 .*use item\(\)"),
    (np.int32(1), r"numpy.int32 .*use item\(\)"),
    (np.bytes_(b"x"), "numpy.bytes_"),
    ({"a": np.arange(3)}, r"body\['a'\] is of the type numpy.ndarray .*use tolist\(\)"),
    (np.ma.masked_array([1, 2], [True, False]), r"MaskedArray.*use numpy.asarray\(body\)"),
    (np.rec.array([(1,)], dtype=[("a", "i4")]), "which is more than an array"),
    (np.array([None, {}], dtype=object), "array with Python objects"),
    (np.zeros(2, dtype=[("a", "i4"), ("b", object)]), "array with Python objects"),
    (object(), "body is of the type object"),
    (1j, "body is of the type complex"),
    (range(3), "body is of the type range .*use a list"),
    (int, "body is of the type type"),
    (HEX, "Codec"),
]


@pytest.mark.parametrize(("body", "fault"), REFUSED, ids=[fault[:40] for _, fault in REFUSED])
def test_what_would_not_come_back_equal_is_refused_with_place_and_remedy(body: Any, fault: str) -> None:
    with pytest.raises(TypeError, match=fault) as caught:
        encode(body)
    assert str(caught.value).startswith("body")
    assert 'codec="pickle"' in str(caught.value)
    assert "would not come back equal; " in str(caught.value)


def test_the_limit_of_digits_does_not_depend_on_the_writer() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        for body in (10**4300, [10**4300], {"a": [1, -(10**4300)]}):
            with pytest.raises(TypeError, match="more than 4,300 digits"):
                encode(body)
        assert encode([10**4299]).size == 4302
        sys.set_int_max_str_digits(640)
        with pytest.raises(TypeError, match=r'cannot be written as JSON; .*codec="pickle"'):
            encode([10**1000])
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize("data", [b"", b"{", b"[1] x", b"NaN", b"[Infinity]", b"\xff", b"[" * 100_000, b"9" * 5000])
def test_a_body_that_is_no_json_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(DecodeError, match="not JSON") as caught:
        decode(JSON, None, data)
    assert caught.value.__cause__ is not None


def test_a_body_that_is_no_text_is_a_decode_error() -> None:
    with pytest.raises(DecodeError, match="not text in UTF-8"):
        decode(TEXT, None, b"\xff")


def test_encoding_without_numpy_does_not_import_it() -> None:
    program = (
        "import sys; from shmq.codec import encode, decode\n"
        "for body in (b'', 'a', [1, {'a': None}], bytearray(3)):\n"
        "    decode(encode(body).content, None, encode(body).joined())\n"
        "try: encode(object())\nexcept TypeError: pass\n"
        "print('numpy' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=60, check=True, cwd=root
    )
    assert done.stdout.strip() == "False"


# ---- named codecs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["text", None, 7, [1], np.arange(3), {"a": 1}])
def test_a_bytes_handle_takes_bytes_only(body: Any) -> None:
    with pytest.raises(TypeError, match='cannot be put with codec="bytes"; give bytes'):
        encode(body, "bytes")


@pytest.mark.parametrize("content", [*range(len(CONTENT_TYPES)), 77, NAMED])
def test_a_bytes_handle_gets_the_bytes_of_anything(content: int) -> None:
    assert decode(content, None, b"\xffraw", "bytes") == b"\xffraw"


@pytest.mark.parametrize("body", [b"x", "text", [1, None], np.arange(3)], ids=["bytes", "str", "list", "array"])
def test_a_pickle_handle_reads_what_others_wrote(body: Any) -> None:
    encoded = encode(body)
    again = decode(encoded.content, None, encoded.joined(), "pickle")
    assert np.array_equal(again, body) if isinstance(body, np.ndarray) else same(again, body)


def test_a_handle_that_did_not_ask_for_pickle_does_not_unpickle() -> None:
    data = encode(Trap(), "pickle").joined()
    for codec in (None, HEX):
        with pytest.raises(DecodeError, match="application/x-python-pickle"):
            decode(PICKLE, None, data, codec)
    with pytest.raises(DecodeError, match='codec="pickle"'):
        check_decodable(PICKLE, None, None)
    assert Trap.sprung == 0
    decode(PICKLE, None, data, "pickle")
    assert Trap.sprung == 1


class Trap:
    sprung = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return spring, ()


def spring() -> None:
    Trap.sprung += 1


def test_a_codec_of_ones_own_is_used_both_ways() -> None:
    encoded = encode(255, HEX)
    assert (encoded.content, encoded.content_type, encoded.joined()) == (NAMED, "text/x-hex", b"ff")
    assert there_and_back(255, HEX) == 255


@pytest.mark.parametrize("made", [b"ab", bytearray(b"ab"), memoryview(b"ab"), memoryview(b"aXbX")[::2]])
def test_a_codec_may_return_anything_that_is_bytes(made: Any) -> None:
    codec: Codec[Any] = Codec("a/b", lambda body: made, bytes)
    assert there_and_back(None, codec) == b"ab"


@pytest.mark.parametrize("made", ["ab", None, [1], np.arange(3)])
def test_a_codec_that_returns_no_bytes_is_a_type_error(made: Any) -> None:
    codec: Codec[Any] = Codec("a/b", lambda body: made, bytes)
    with pytest.raises(TypeError, match=r"'a/b' returned .*; it must return bytes"):
        encode(None, codec)


def test_what_a_codec_raises_at_encode_goes_to_the_caller() -> None:
    with pytest.raises(TypeError, match="%x format"):
        encode("no number", HEX)


def test_what_a_codec_raises_at_decode_is_the_cause_of_a_decode_error() -> None:
    with pytest.raises(DecodeError, match="'text/x-hex' failed: ValueError") as caught:
        decode(NAMED, "text/x-hex", b"xyz", HEX)
    assert type(caught.value.__cause__) is ValueError


def test_an_interrupt_in_a_codec_stays_an_interrupt() -> None:
    def interrupt(data: memoryview) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decode(NAMED, "a/b", b"", Codec("a/b", bytes, interrupt))


def test_a_codec_gets_a_copy_that_it_may_keep_but_not_write() -> None:
    buffer = bytearray(b"abc")
    keeping: Codec[memoryview] = Codec("a/b", lambda body: body, lambda data: data)
    body = decode(NAMED, "a/b", memoryview(buffer), keeping)
    buffer[:] = b"xyz"
    assert bytes(body) == b"abc"
    assert body.readonly


@pytest.mark.parametrize(("code", "name"), list(enumerate(CONTENT_TYPES)))
def test_a_codec_with_a_name_of_shmqs_own_has_its_code(code: int, name: str) -> None:
    codec: Codec[Any] = Codec(name, lambda body: json.dumps(body).encode(), lambda data: json.loads(bytes(data)))
    encoded = encode({"a": 1}, codec)
    assert (encoded.content, encoded.content_type) == (code, None)
    assert decode(code, None, encoded.joined(), codec) == {"a": 1}


UNKNOWN: list[tuple[int, str | None, AnyCodec, str]] = [
    (NAMED, "text/x-hex", None, "'text/x-hex'.*with a Codec for it"),
    (NAMED, "text/x-hex", "pickle", "'text/x-hex'.*with a Codec for it"),
    (NAMED, "text/x-other", HEX, "'text/x-other'.*Codec is for 'text/x-hex'"),
    (NAMED, None, None, "unknown, code 255"),
    (NAMED, None, HEX, "unknown, code 255"),
    (77, None, None, "unknown, code 77"),
    (77, "text/x-hex", HEX, "unknown, code 77"),
    (-1, None, None, "unknown, code -1"),
    (OCTETS, None, HEX, "'application/octet-stream'"),
    (JSON, "text/x-hex", HEX, "'application/json'"),
]


@pytest.mark.parametrize(("content", "content_type", "codec", "fault"), UNKNOWN)
def test_a_type_that_the_handle_does_not_know_is_a_decode_error(
    content: int, content_type: str | None, codec: AnyCodec, fault: str
) -> None:
    with pytest.raises(DecodeError, match=f"does not understand.*{fault}"):
        check_decodable(content, content_type, codec)
    with pytest.raises(DecodeError, match=f"does not understand.*{fault}"):
        decode(content, content_type, b"ff", codec)


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_what_a_handle_wrote_it_may_decode(codec: AnyCodec) -> None:
    encoded = encode(b"1" if codec == "bytes" else 1, codec)
    check_decodable(encoded.content, encoded.content_type, codec)


def test_the_content_type_has_its_name() -> None:
    assert [content_type_of(code, None) for code in range(5)] == list(CONTENT_TYPES)
    assert content_type_of(NAMED, "a/b") == "a/b"
    assert content_type_of(NAMED, None) == content_type_of(77, "a/b") == content_type_of(-1, None) == ""


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_a_codec_is_checked_and_handed_back(codec: AnyCodec) -> None:
    assert check_codec(codec) is codec or check_codec(codec) == codec


@pytest.mark.parametrize("codec", ["json", "", "Pickle"])
def test_an_unknown_name_of_a_codec_is_a_value_error(codec: str) -> None:
    with pytest.raises(ValueError, match='is unknown; use None, "bytes", "pickle"'):
        check_codec(codec)


@pytest.mark.parametrize("codec", [bytes, pickle, Codec, 7, ("a/b", bytes, bytes)])
def test_a_codec_of_another_type_is_a_type_error(codec: object) -> None:
    with pytest.raises(TypeError, match=r'; use .*"bytes"'):
        check_codec(codec)


@pytest.mark.parametrize(("name", "error"), [("", ValueError), ("a\nb", ValueError), (7, TypeError), (None, TypeError)])
def test_a_codec_needs_a_content_type_that_can_be_kept(name: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="content type"):
        Codec(name, bytes, bytes)


def test_a_codec_needs_functions_and_cannot_be_changed() -> None:
    with pytest.raises(TypeError, match="encode of a Codec is of the type str"):
        Codec("a/b", "no function", bytes)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="decode of a Codec is of the type NoneType"):
        Codec("a/b", bytes, None)  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        HEX.content_type = "a/b"  # type: ignore[misc]


def test_pieces_are_joined_in_their_order() -> None:
    assert Encoded(PICKLE, None, [b"a", memoryview(b"bc"), b"d"], 4).joined() == b"abcd"
    assert type(Encoded(OCTETS, None, [memoryview(b"bc")], 2).joined()) is bytes


@pytest.mark.parametrize("codec", [None, "pickle"])
@given(content=st.integers(0, 5), data=st.binary(max_size=300))
def test_random_bytes_are_a_body_or_a_decode_error(codec: AnyCodec, content: int, data: bytes) -> None:
    reader: Callable[..., Any] = decode
    try:
        reader(content, None, memoryview(data), codec)
    except DecodeError:
        pass
