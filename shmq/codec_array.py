"""numpy arrays as bodies: a description in JSON, padded so that the elements begin 64-byte aligned, then the elements.

      0  magic "shmqarr1"
      8  length of the description, u32, little endian
     12  {"dtype": ..., "shape": [...], "order": "C" or "F"} in JSON, filled with spaces up to a multiple of 64
    n*64  the elements, in that order

A dtype is written as its text ("<f8", "<M8[ns]"). One that is structured is written with its fields, offsets and size,
or as [dtype, shape] inside of those. Nothing is ever unpickled, so arrays with objects are refused on both sides.

numpy is imported when the first array comes along, not before.
"""

from __future__ import annotations

import functools
import json
import math
import re
import struct
import sys
from typing import TYPE_CHECKING, Any, Final, Literal

from shmq.codec_json import refuse
from shmq.errors import DecodeError
from shmq.quantity import quantity
from shmq.whole_import import import_whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

__all__ = ["ALIGNMENT", "array_prefix", "array_view", "decode_array", "encode_array", "is_array"]

ALIGNMENT: Final = 64

_MAGIC: Final = b"shmqarr1"
_START: Final = struct.Struct("<8sI")
_MAX_DESCRIPTION: Final = 1 << 20
_MAX_DIMENSIONS: Final = 64
# numpy accepts many more texts than we write ("O", "i4,i4"), so look before it does.
_DTYPE_TEXT: Final = r"[<>|][biufcSUV][0-9]{1,10}|[<>][mM]8(\[[0-9]{0,9}[A-Za-z]{1,7}\])?"
_REMEDY: Final = 'open the queue with codec="pickle"'

_encode_json = json.JSONEncoder(separators=(",", ":")).encode

Order = Literal["C", "F"]


def is_array(body: object) -> bool:
    """Whether a body is a numpy array. Does not import numpy: in a process without numpy no body is an array."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(body, numpy.ndarray)


def encode_array(array: NDArray[Any]) -> list[bytes | memoryview]:
    """The array in pieces, its elements not copied if they lie contiguous in either order.

    Raises TypeError for arrays with objects, of a subclass, or of a dtype that numpy cannot make again from its text.
    """
    import_whole("numpy")
    import numpy as np

    if type(array) is not np.ndarray:
        kind = f"{type(array).__module__}.{type(array).__qualname__}"
        refuse("body", f"of the type {kind}, which is more than an array,", f"use numpy.asarray(body), or {_REMEDY}")
    if array.flags.c_contiguous:
        order: Order = "C"
    elif array.flags.f_contiguous:
        order = "F"
    else:
        array, order = np.ascontiguousarray(array), "C"
    prefix = array_prefix(array.shape, array.dtype, order=order)
    if not array.nbytes:
        return [prefix]
    return [prefix, _as_bytes(array, order).data]


def array_prefix(shape: int | tuple[int, ...], dtype: DTypeLike, *, order: Order = "C") -> bytes:
    """The bytes before the elements of such an array; their number is a multiple of 64.

    Raises TypeError for a dtype that cannot be sent, ValueError for a shape that no array has.
    """
    import_whole("numpy")
    import numpy as np

    made = np.dtype(dtype)
    # operator.index() beforehand would lose numpy's own text for a wrong shape; broadcasting takes no memory.
    sizes = np.broadcast_to(np.empty((), "u1"), shape).shape
    description = f'{{"dtype":{_describe(made)},"shape":{_encode_json(list(sizes))},"order":"{order}"}}'.encode()
    padding = -(_START.size + len(description)) % ALIGNMENT
    return _START.pack(_MAGIC, len(description) + padding) + description + b" " * padding


def decode_array(data: memoryview) -> NDArray[Any]:
    """The array as an own, writable copy, in the order it had.

    Raises DecodeError for anything that `encode_array` cannot have made.
    """
    import_whole("numpy")
    import numpy as np

    dtype, shape, order, start = _parse(data)
    array: NDArray[Any] = np.empty(shape, dtype, order)
    if array.nbytes:
        # As bytes: numpy would copy a structured dtype field by field.
        _as_bytes(array, order)[:] = np.frombuffer(data, np.uint8, offset=start)
    return array


def array_view(data: memoryview) -> NDArray[Any]:
    """The array in place, read-only. The buffer stays exported for as long as the array or a slice of it lives.

    Raises DecodeError for anything that `encode_array` cannot have made.
    """
    import_whole("numpy")
    import numpy as np

    dtype, shape, order, start = _parse(data)
    if math.prod(shape):
        # Not on `data` itself: of a memoryview ndarray() keeps the owner only and ends the export, and with it the pin.
        # frombuffer() keeps an export for as long as it lives.
        array: NDArray[Any] = np.ndarray(shape, dtype, np.frombuffer(data, np.uint8), start, order=order)
    else:
        array = np.empty(shape, dtype, order)  # numpy wants a byte behind the offset even then
    array.flags.writeable = False
    return array


def _as_bytes(array: NDArray[Any], order: Order) -> NDArray[np.uint8]:
    flat = array.reshape(-1) if order == "C" else array.T.reshape(-1)
    return flat.view("u1")


# ---- description -----------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def _describe(dtype: np.dtype[Any]) -> str:
    if dtype.hasobject:
        refuse("body", f"an array with Python objects (dtype {dtype!s:.60})", f"use another dtype, or {_REMEDY}")
    description = _encode_json(_dtype_to_json(dtype))
    try:
        again = _json_to_dtype(json.loads(description))
    except Exception:  # a dtype of an extension: its text means nothing to numpy
        again = None
    if again != dtype or again.type is not dtype.type or not dtype.itemsize:
        refuse("body", f"an array of the dtype {dtype!s:.60}", f"use one of numpy's plain dtypes, or {_REMEDY}")
    return description


def _dtype_to_json(dtype: np.dtype[Any]) -> Any:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return [_dtype_to_json(base), list(shape)]
    if dtype.names is None or dtype.fields is None:
        return dtype.str
    rows = [dtype.fields[name] for name in dtype.names]
    return {
        "names": list(dtype.names),
        "formats": [_dtype_to_json(row[0]) for row in rows],
        "offsets": [row[1] for row in rows],
        "titles": [row[2] if len(row) > 2 and isinstance(row[2], str) else None for row in rows],
        "itemsize": dtype.itemsize,
        "aligned": dtype.isalignedstruct,
    }


def _json_to_dtype(value: Any) -> np.dtype[Any]:
    """Raises whatever numpy raises, and ValueError for what it would understand otherwise than we."""
    import_whole("numpy")
    import numpy as np

    if isinstance(value, str):
        if not re.fullmatch(_DTYPE_TEXT, value):
            raise ValueError(f"no dtype: {value!r:.40}")
        return np.dtype(value)
    if isinstance(value, list):
        base, shape = value
        return np.dtype((_json_to_dtype(base), _sizes(shape)))
    if not isinstance(value, dict) or value.keys() != {"names", "formats", "offsets", "titles", "itemsize", "aligned"}:
        raise ValueError("no dtype")
    if type(value["itemsize"]) is not int or type(value["aligned"]) is not bool:
        raise ValueError("no size of a dtype")
    fields: dict[str, Any] = {
        "names": _texts(value["names"]),
        "formats": [_json_to_dtype(format) for format in value["formats"]],
        "offsets": list(_sizes(value["offsets"])),
        "itemsize": value["itemsize"],
        "aligned": value["aligned"],
    }
    titles = [None if title is None else _texts([title])[0] for title in value["titles"]]
    if not len(fields["names"]) == len(fields["formats"]) == len(fields["offsets"]) == len(titles):
        raise ValueError("fields of a dtype that do not match")
    if any(title is not None for title in titles):
        fields["titles"] = titles
    return np.dtype(fields)  # type: ignore[call-overload, no-any-return]  # numpy's stubs ask for a literal dict


def _sizes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or any(type(size) is not int or not 0 <= size < 1 << 62 for size in value):
        raise ValueError("sizes that are no list of ints")
    return tuple(value)


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or any(type(text) is not str for text in value):
        raise ValueError("names that are no list of texts")
    return value


def _parse(data: memoryview) -> tuple[np.dtype[Any], tuple[int, ...], Order, int]:
    """dtype, shape, order and where the elements start, all checked against the length of the body."""
    try:
        # Each is read once, into an own copy: what is shared may change between two looks.
        magic, length = _START.unpack(bytes(data[: _START.size]))
        start = _START.size + length
        if magic != _MAGIC or length > _MAX_DESCRIPTION or start > len(data) or start % ALIGNMENT:
            raise ValueError("no start of an array")
        found = json.loads(bytes(data[_START.size : start]))
        if not isinstance(found, dict) or found.keys() != {"dtype", "shape", "order"}:
            raise ValueError("no description of an array")
        dtype, shape, order = _json_to_dtype(found["dtype"]), _sizes(found["shape"]), found["order"]
        if dtype.hasobject or dtype.subdtype is not None or not dtype.itemsize:
            raise ValueError(f"the dtype {dtype!s:.60}")
        if order not in ("C", "F") or len(shape) > _MAX_DIMENSIONS:
            raise ValueError(f"order {order!r:.20}, {len(shape)} dimensions")
        if (need := math.prod(shape) * dtype.itemsize) != len(data) - start:
            raise ValueError(f"{quantity(need, 'byte')} of elements by the description, {len(data) - start:,} there")
        _check_reach(shape, dtype.itemsize)
    except Exception as error:  # numpy raises nearly anything over a dtype
        raise DecodeError(
            "the body is not a numpy array, as its content type says",
            figures=f"{error}, {quantity(len(data), 'byte')} in all",
            remedy="m.view() gives its bytes; look at the program that put it",
        ) from error
    return dtype, shape, order, start


def _check_reach(shape: tuple[int, ...], itemsize: int) -> None:
    # Without elements the length of the body bounds nothing, but numpy multiplies the other sizes all the same.
    if math.prod(size or 1 for size in shape) * itemsize >= 1 << 62:
        raise ValueError("a shape that is too large")
