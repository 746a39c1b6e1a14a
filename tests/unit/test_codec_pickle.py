"""Objects as bodies: large buffers travel beside the stream and come back private; damage is a DecodeError."""

import dataclasses
import pickle
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shmq.codec import PICKLE, Encoded, decode, encode
from shmq.errors import DecodeError

START = struct.Struct("<8sIIQ")


@dataclasses.dataclass
class Job:
    name: str
    data: Any


class Refusing:
    def __reduce__(self) -> Any:
        raise LookupError("not me")


class Failing:
    def __setstate__(self, state: Any) -> None:
        raise LookupError("not here")

    def __getstate__(self) -> Any:
        return {"a": 1}


def a_generator() -> Iterator[int]:
    yield 1


def buffers_of(encoded: Encoded) -> int:
    return int(START.unpack_from(encoded.joined())[1])


def there_and_back(body: Any) -> Any:
    return decode(PICKLE, None, memoryview(encode(body, "pickle").joined()), "pickle")


bodies = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.integers(), inner),
    max_leaves=10,
)


@given(bodies)
def test_any_object_comes_out_as_it_went_in(body: Any) -> None:
    out = there_and_back(body)
    assert out == body
    assert type(out) is type(body)


@pytest.mark.parametrize("body", [{1, 2}, (1, "a"), Job("a", {3: 4}), [10**5000], float("inf"), Job, b"x" * 10_000])
def test_what_json_does_not_have_is_taken(body: Any) -> None:
    assert there_and_back(body) == body


@pytest.mark.parametrize(("nbytes", "buffers"), [(0, 0), (1, 0), (4095, 0), (4096, 1), (1_000_000, 1)])
def test_only_large_buffers_go_beside_the_stream(nbytes: int, buffers: int) -> None:
    body = np.arange(nbytes, dtype="u1")
    assert buffers_of(encode(body, "pickle")) == buffers
    assert np.array_equal(there_and_back(body), body)


def test_each_buffer_begins_aligned_and_is_not_copied_on_its_way_in() -> None:
    arrays = [np.full(4096 + n, n, "u1") for n in range(3)]
    encoded = encode(Job("a", arrays), "pickle")
    assert buffers_of(encoded) == 3
    at, found = 0, 0
    for piece in encoded.pieces:
        for array in arrays:
            if len(piece) == len(array) and isinstance(piece, memoryview):
                assert at % 64 == 0
                assert np.shares_memory(np.frombuffer(piece, "u1"), array)
                found += 1
        at += len(piece)
    assert found == 3
    assert encoded.size == at
    out = there_and_back(Job("a", arrays))
    assert all(np.array_equal(one, other) for one, other in zip(out.data, arrays, strict=True))


def test_what_comes_out_is_writable_and_private() -> None:
    buffer = bytearray(encode([np.zeros(10_000, "u1"), b"y" * 5000, bytearray(5000)], "pickle").joined())
    array, text, changeable = decode(PICKLE, None, memoryview(buffer), "pickle")
    buffer[:] = b"\xff" * len(buffer)
    assert not array.any()
    assert (text, changeable) == (b"y" * 5000, bytearray(5000))
    array[0] = changeable[0] = 1
    buffer.extend(b"x")  # nothing exports it any more


def test_a_read_only_array_stays_read_only() -> None:
    body = np.zeros(10_000, "u1")
    body.flags.writeable = False
    assert buffers_of(encode(body, "pickle")) == 1
    assert not there_and_back(body).flags.writeable


def test_arrays_in_any_order_are_taken() -> None:
    body = np.asfortranarray(np.arange(10_000.0).reshape(100, 100))
    for array in (body, body[::2, ::3], body.astype(object)):
        assert np.array_equal(there_and_back(array), array)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (lambda: None, (pickle.PicklingError, AttributeError)),
        (Refusing(), LookupError),
        (memoryview(b"x"), TypeError),
        (a_generator(), TypeError),
        (pickle.PickleBuffer(memoryview(b"abcdef")[::2]), pickle.PicklingError),
    ],
)
def test_what_pickle_raises_goes_to_the_caller(body: Any, error: Any) -> None:
    with pytest.raises(error):
        encode(body, "pickle")


def test_what_unpickling_raises_is_the_cause_of_a_decode_error() -> None:
    data = bytearray(encode([np.zeros(10_000), Failing()], "pickle").joined())
    with pytest.raises(DecodeError, match="cannot be unpickled: LookupError: not here") as caught:
        decode(PICKLE, None, memoryview(data), "pickle")
    assert type(caught.value.__cause__) is LookupError


def body_of(stream: bytes, *buffers: bytes, magic: bytes = b"shmqpkl1", count: int | None = None) -> bytes:
    lengths = [len(buffer) for buffer in buffers]
    data = START.pack(magic, len(buffers) if count is None else count, 0, len(stream))
    data += struct.pack(f"<{len(lengths)}Q", *lengths)
    for piece in (stream, *buffers):
        data += b"\0" * (-len(data) % 64) + piece
    return data


GOOD = body_of(pickle.dumps(7, 5))
WITH_BUFFER = body_of(pickle.dumps(7, 5), b"x" * 100)

FORGED: list[bytes] = [
    b"", GOOD[:23], GOOD[:24], GOOD[:-1], GOOD + b"\0", body_of(pickle.dumps(7, 5), magic=b"shmqpkl2"),
    body_of(pickle.dumps(7, 5), count=1), body_of(pickle.dumps(7, 5), count=2**32 - 1), WITH_BUFFER[:-1],
    WITH_BUFFER + b"\0", START.pack(b"shmqpkl1", 0, 0, 2**64 - 1), START.pack(b"shmqpkl1", 0, 1, 0),
    GOOD[:24].replace(b"\0\0\0\0", b"\0\1\0\0", 1) + GOOD[24:], body_of(b""), body_of(b"garbage"), body_of(b"."),
    body_of(pickle.dumps(np.zeros(9_999), 5, buffer_callback=lambda buffer: None)),
    START.pack(b"shmqpkl1", 1, 0, 4) + struct.pack("<Q", 2**64 - 64), pickle.dumps(7),
]  # fmt: skip


def test_the_forger_can_make_good_ones() -> None:
    assert decode(PICKLE, None, GOOD, "pickle") == decode(PICKLE, None, WITH_BUFFER, "pickle") == 7
    assert body_of(pickle.dumps("a", 5)) == encode("a", "pickle").joined()


@pytest.mark.parametrize("data", FORGED, ids=lambda data: repr(data[:70]))
def test_a_forged_pickle_is_a_decode_error(data: bytes) -> None:
    """Shows G7."""
    with pytest.raises(DecodeError, match=r"not a pickle|cannot be unpickled"):
        decode(PICKLE, None, data, "pickle")


@given(st.integers(0, 23), st.integers(1, 255))
def test_a_flipped_byte_in_front_is_found_or_does_no_harm(at: int, flip: int) -> None:
    data = bytearray(WITH_BUFFER)
    data[at] ^= flip
    try:
        # A stream that ends later, but in its own gap, is still that stream.
        assert decode(PICKLE, None, memoryview(data), "pickle") == 7
    except DecodeError:
        pass
