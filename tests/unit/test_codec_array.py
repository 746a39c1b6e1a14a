"""numpy arrays as bodies: equal in dtype, shape and order on the other side, and no array can be forged to do harm."""

import json
import struct
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from shmq.codec import ARRAY, array_view, decode, encode
from shmq.codec_array import ALIGNMENT, array_prefix
from shmq.errors import DecodeError

plain_dtypes = (
    hnp.boolean_dtypes()
    | hnp.integer_dtypes(endianness="?")
    | hnp.floating_dtypes(endianness="?")
    | hnp.complex_number_dtypes(endianness="?")
    | hnp.datetime64_dtypes(endianness="?")
    | hnp.timedelta64_dtypes(endianness="?")
    | hnp.byte_string_dtypes(min_len=1)
    | hnp.unicode_string_dtypes(min_len=1)
)
dtypes = plain_dtypes | hnp.array_dtypes(plain_dtypes, min_size=1, max_size=3, allow_subarrays=True)
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def there_and_back(array: NDArray[Any]) -> NDArray[Any]:
    encoded = encode(array)
    assert encoded.content == ARRAY
    assert encoded.size == sum(map(len, encoded.pieces))
    out = decode(ARRAY, None, memoryview(encoded.joined()))
    assert isinstance(out, np.ndarray)
    return out


def assert_same(out: NDArray[Any], array: NDArray[Any]) -> None:
    assert type(out) is np.ndarray
    assert (out.dtype, out.shape) == (array.dtype, array.shape)
    assert out.dtype.str == array.dtype.str
    # Byte by byte, so that NaN, NaT and the fields of structures need no equality of their own.
    assert out.tobytes() == array.tobytes()


@given(st.data(), dtypes, shapes, st.sampled_from("CF"))
def test_arrays_come_out_as_they_went_in(data: st.DataObject, dtype: np.dtype[Any], shape: Any, order: Any) -> None:
    size = int(np.prod(shape, dtype=int)) * dtype.itemsize
    raw = data.draw(st.binary(min_size=size, max_size=size))
    array = np.ndarray(shape, dtype, raw + b"\0", order=order)
    out = there_and_back(array)
    assert_same(out, array)
    assert out.flags.writeable
    assert out.flags.owndata
    assert out.flags.c_contiguous == array.flags.c_contiguous
    assert out.flags.f_contiguous == array.flags.f_contiguous


BASE = np.arange(24, dtype="i4").reshape(2, 3, 4)


@pytest.mark.parametrize(
    "array",
    [
        BASE[:, ::2], BASE[::-1], BASE.transpose(1, 0, 2), BASE.T, BASE[0, 0, 0:0], BASE[..., None], np.array(7),
        np.array("2024-01-01", "M8[ns]"), np.array("NaT", "m8"), np.array([1, 2], "M8[25s]"), np.zeros((0, 5)),
        np.zeros((3, 0, 2), order="F"), np.broadcast_to(np.int8(3), (4, 4)), np.array([np.nan, -0.0, np.inf]),
        np.array(["größe", ""]), np.array([b"a", b"bc"]), np.array([1 + 2j]), np.array([True, False]),
        np.zeros(3, "V5"), np.array([1, 2], np.longdouble), np.array([1], "f2"), np.zeros((1,) * 32, "u1"),
        np.array([1, 2], ">i8"), np.asfortranarray(BASE),
    ],
)  # fmt: skip
def test_arrays_of_every_form_are_taken(array: NDArray[Any]) -> None:
    assert_same(there_and_back(array), array)


@pytest.mark.parametrize(
    "dtype",
    [
        np.dtype([("a", "i1"), ("b", "f8")]),
        np.dtype([("a", "i1"), ("b", "f8")], align=True),
        np.dtype({"names": ["x", "y"], "formats": ["u1", "u4"], "offsets": [3, 0], "itemsize": 16}),
        np.dtype({"names": ["whole", "low"], "formats": ["u4", "u2"], "offsets": [0, 0]}),
        np.dtype([(("a title", "a"), "i4"), ("b", "i4")]),
        np.dtype([("inner", [("p", ">f4", (2, 3)), ("q", "S3")]), ("größe", "U2")]),
        np.dtype([("only", "i2", (2,))]),
    ],
    ids=str,
)
def test_structured_arrays_keep_names_offsets_and_titles(dtype: np.dtype[Any]) -> None:
    array = np.frombuffer(bytes(range(dtype.itemsize * 3)), dtype)
    out = there_and_back(array)
    assert_same(out, array)
    assert out.dtype.fields == dtype.fields
    assert out.dtype.itemsize == dtype.itemsize
    assert out.dtype.isalignedstruct == dtype.isalignedstruct


class Special(np.ndarray[Any, Any]):
    pass


@pytest.mark.parametrize(
    ("array", "fault"),
    [
        (np.zeros(2).view(Special), "more than an array.*numpy.asarray"),
        (np.array([object()]), "with Python objects"),
        (np.zeros(2, [("a", "O")]), "with Python objects"),
        (np.zeros(2, [("a", [("b", "O", (2,))])]), "with Python objects"),
        (np.zeros(2, np.dtype((np.record, [("a", "i4")]))), "of the dtype"),
        (np.zeros(2, np.dtype([])), "of the dtype"),
    ],
)
def test_arrays_that_would_not_come_back_are_refused(array: NDArray[Any], fault: str) -> None:
    with pytest.raises(TypeError, match=f'body is .*{fault}.*codec="pickle"'):
        encode(array)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy 2 has it")
def test_arrays_of_variable_strings_are_refused() -> None:
    with pytest.raises(TypeError, match=r'array .*codec="pickle"'):
        encode(np.array(["a", "b" * 100], dtype=np.dtypes.StringDType()))


def test_elements_begin_aligned_and_are_not_copied() -> None:
    array = np.arange(1000.0)
    prefix, elements = encode(array).pieces
    assert len(prefix) % ALIGNMENT == 0
    array[0] = 7.0
    assert struct.unpack_from("<d", elements)[0] == 7.0


def test_a_copy_does_not_look_into_the_buffer() -> None:
    buffer = bytearray(encode(np.zeros(4, "u1")).joined())
    out = decode(ARRAY, None, memoryview(buffer))
    buffer[-4:] = b"\1\1\1\1"
    assert out.tolist() == [0, 0, 0, 0]
    out[0] = 5
    assert buffer[-4] == 1


@pytest.mark.parametrize("array", [BASE, np.asfortranarray(BASE), np.array(7), np.zeros((0, 2)), np.zeros(2, "i1,f8")])
def test_a_view_lies_in_the_buffer_and_is_read_only(array: NDArray[Any]) -> None:
    buffer = bytearray(encode(array).joined())
    view = array_view(memoryview(buffer))
    assert_same(view, array)
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[...] = np.zeros_like(array)
    if array.size:
        assert np.shares_memory(view, np.frombuffer(buffer, "u1"))
        with pytest.raises(BufferError):  # exported, so it cannot move while the view lives
            buffer.extend(b"x")


@pytest.mark.parametrize(
    ("shape", "dtype", "made"), [(3, "f8", (3,)), ((2, 3), np.uint8, (2, 3)), ((), "i4", ()), ((0, 2), "M8[s]", (0, 2))]
)
def test_a_prefix_can_be_made_before_there_are_elements(shape: Any, dtype: Any, made: tuple[int, ...]) -> None:
    prefix = array_prefix(shape, dtype)
    blank: NDArray[Any] = np.zeros(made, dtype)
    assert prefix == encode(blank).pieces[0]
    assert len(prefix) % ALIGNMENT == 0
    assert_same(decode(ARRAY, None, prefix + blank.tobytes()), blank)


def test_a_prefix_of_a_wrong_shape_or_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        array_prefix((-1, 2), "f8")
    with pytest.raises(TypeError):
        array_prefix((1.5, 2), "f8")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Python objects"):
        array_prefix(2, object)


def forged(description: Any, elements: bytes = b"\0" * 8) -> bytes:
    text = description if isinstance(description, bytes) else json.dumps(description).encode()
    text += b" " * (-(12 + len(text)) % 64)
    return b"shmqarr1" + struct.pack("<I", len(text)) + text + elements


def described(**changes: Any) -> dict[str, Any]:
    return {"dtype": "<f8", "shape": [1], "order": "C", **changes}


def structure(**changes: Any) -> dict[str, Any]:
    fields = {"names": ["a"], "formats": ["<f8"], "offsets": [0], "titles": [None], "itemsize": 8, "aligned": False}
    return described(dtype={**fields, **changes})


def test_the_forger_can_make_good_ones() -> None:
    assert decode(ARRAY, None, forged(described())).tolist() == [0.0]
    assert decode(ARRAY, None, forged(structure()))["a"].tolist() == [0.0]


FORGED_SHAPES: list[Any] = [[-1], [1.0], [True], None, "1", {}, [2], [0], [1, [1]], [2**62], [2**70], [1] * 65]
EMPTY_SHAPES: list[Any] = [[0, 2**62], [2**61, 0, 2**61], [0] * 65, [0, 2**70]]
FORGED_DTYPES: list[Any] = [
    "O", "|O8", "O8", "f8", "<f7", "=f8", "i4,i4", "<x8", "T", "|T16", "", "V", "<M8[furlong]", "<M8[", "|S0", "<U0",
    "|V0", "|S99999999999", "<U9999999999", "|V2147483648", "float64", "<f8\n", "(2,)<f8", None, 7, True, [], ["<f8"],
    ["<f8", [1]], ["<f8", 1], [["<f8", [1]], [-1]], ["|O8", [1]],
]  # fmt: skip
FORGED_FIELDS: list[dict[str, Any]] = [
    {"names": []}, {"names": "a"}, {"names": [7]}, {"names": ["a", "a"]}, {"formats": ["|O8"]}, {"formats": None},
    {"formats": ["<f8", "<f8"]}, {"formats": [["|O8", [1]]]}, {"offsets": [1]}, {"offsets": [-8]}, {"offsets": [2**63]},
    {"offsets": [8]}, {"offsets": None}, {"itemsize": 4}, {"itemsize": -8}, {"itemsize": 2**70}, {"itemsize": 8.0},
    {"itemsize": None}, {"titles": ["a"]}, {"titles": [7]}, {"titles": None}, {"aligned": 1}, {"metadata": {}},
    {"aligned": True, "itemsize": 7},
    {"names": ["a"] * 2, "formats": ["<f8"] * 2, "offsets": [0, 0], "titles": [None] * 2},
]  # fmt: skip
FORGED: list[bytes] = [
    b"", b"shmqarr1", b"shmqarr2" + forged(described())[8:], forged(described())[:-1], forged(described()) + b"\0",
    b"shmqarr1" + b"\xff" * 4 + b"\0" * 64, forged(b"{"), forged(b"[" * 20_000), forged(b"\xff"), forged([]),
    forged({}), forged(described(more=1)), forged(described(order="A")), forged(described(order=["C"])),
    forged(described(order=None)), forged(b" " * (1 << 20) + json.dumps(described()).encode()),
    *(forged(described(shape=shape)) for shape in FORGED_SHAPES),
    *(forged(described(shape=shape), b"") for shape in EMPTY_SHAPES),
    *(forged(described(dtype=dtype)) for dtype in FORGED_DTYPES),
    *(forged(structure(**fields)) for fields in FORGED_FIELDS),
]  # fmt: skip


@pytest.mark.parametrize("data", FORGED, ids=lambda data: repr(data[12:90]))
def test_a_forged_array_is_a_decode_error(data: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DecodeError, match="not a numpy array"):
            decode(ARRAY, None, data)
        with pytest.raises(DecodeError, match="not a numpy array"):
            array_view(memoryview(data))


@given(st.integers(0, 10_000), st.integers(1, 255), st.sampled_from(["<f8", "i1,f8", "S3"]))
def test_a_flipped_byte_is_an_array_or_a_decode_error(at: int, flip: int, dtype: str) -> None:
    data = bytearray(encode(np.zeros((2, 3), dtype)).joined())
    data[at % len(data)] ^= flip
    try:
        out = decode(ARRAY, None, memoryview(data))
    except DecodeError:
        return
    assert out.nbytes <= len(data)
    out.tobytes()
