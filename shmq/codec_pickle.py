"""Any object as a body: pickle protocol 5, large buffers beside the stream and not copied on their way in.

      0  magic "shmqpkl1"
      8  number of buffers, u32; 12 reserved, 0
     16  length of the stream, u64
     24  length of each buffer, u64
        the stream, then each buffer, each beginning at a multiple of 64

Everything is little endian; gaps are zero. The module pickle is imported when first needed.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from shmq.errors import DecodeError
from shmq.quantity import quantity

if TYPE_CHECKING:
    import pickle

__all__ = ["decode_pickle", "encode_pickle", "load_pickle"]

_MAGIC: Final = b"shmqpkl1"
_START: Final = struct.Struct("<8sIIQ")
_START_ALONE: Final = struct.Struct("<8sIIQ40x")  # without buffers the stream begins right behind it
_ALIGNMENT: Final = 64
_MIN_OUT_OF_BAND: Final = 4096  # below it a copy into the stream is cheaper than a piece of its own


def encode_pickle(body: object, reducers: Mapping[type, Any] | None = None) -> list[bytes | memoryview]:
    """The object in pieces. The caller gets the errors of pickle: nothing is put then.

    Arguments:
        body: any object that can be pickled.
        reducers: as copyreg.dispatch_table, which they replace; None: that.
    """
    import pickle

    buffers: list[memoryview] = []

    def keep_apart(buffer: pickle.PickleBuffer) -> bool:
        try:
            view = buffer.raw()
        except BufferError:  # not contiguous: pickle says so itself, in its own words
            return True
        if view.nbytes < _MIN_OUT_OF_BAND:
            return True
        buffers.append(view)
        return False

    stream: bytes | memoryview
    if reducers is None:
        stream = pickle.dumps(body, protocol=5, buffer_callback=keep_apart)
    else:
        file = io.BytesIO()
        pickler = pickle.Pickler(file, protocol=5, buffer_callback=keep_apart)
        pickler.dispatch_table = reducers
        pickler.dump(body)
        stream = file.getbuffer()
    if not buffers:
        return [_START_ALONE.pack(_MAGIC, 0, 0, len(stream)), stream]
    lengths = [buffer.nbytes for buffer in buffers]
    start = _START.pack(_MAGIC, len(buffers), 0, len(stream)) + struct.pack(f"<{len(lengths)}Q", *lengths)
    pieces: list[bytes | memoryview] = [start]
    size = len(start)
    bodies: list[bytes | memoryview] = [stream, *buffers]
    for piece in bodies:
        if gap := -size % _ALIGNMENT:
            pieces.append(bytes(gap))
        pieces.append(piece)
        size += gap + len(piece)
    return pieces


def decode_pickle(data: memoryview) -> Any:
    """The object. Its buffers are private copies, writable where they were, and nothing of it looks into `data`.

    Runs whatever code the pickle names: only for a handle that asked for pickle.

    Raises DecodeError for anything that `encode_pickle` cannot have made, and around whatever unpickling raises.
    """
    place = _parse(data)
    try:
        return _load(data, *place)
    except Exception as error:
        raise _no_pickle("the body cannot be unpickled", f"{type(error).__name__}: {error}", data) from error


def load_pickle(data: bytes | memoryview) -> Any:
    """As `decode_pickle`, but what unpickling raises is raised as it is."""
    import pickle

    if len(data) >= _ALIGNMENT:
        magic, count, reserved, length = _START.unpack_from(data)
        if magic == _MAGIC and count == reserved == 0 and length == len(data) - _ALIGNMENT:
            return pickle.loads(data[_ALIGNMENT:])  # most bodies: nothing beside the stream, nothing to work out
    view = memoryview(data)
    return _load(view, *_parse(view))


def _load(data: memoryview, stream_at: int, stream_end: int, spans: list[tuple[int, int]]) -> Any:
    import pickle

    # Given as bytearrays: for a buffer that was read-only the stream itself says so, and pickle wraps it.
    buffers = [bytearray(data[at : at + length]) for at, length in spans]
    with data[stream_at:stream_end] as stream:
        return pickle.loads(stream, buffers=buffers)


def _parse(data: memoryview) -> tuple[int, int, list[tuple[int, int]]]:
    """Start and end of the stream, and start and length of each buffer, all within the body."""
    # Read once, into own copies: what is shared may change between two looks.
    start = bytes(data[: _START.size])
    if len(start) < _START.size:
        raise _damaged("too short", data)
    magic, count, reserved, stream_length = _START.unpack(start)
    if magic != _MAGIC or reserved:
        raise _damaged("no magic in front", data)
    table_end = _START.size + 8 * count
    if table_end > len(data):
        raise _damaged(f"{count:,} buffers", data)
    lengths = struct.unpack(f"<{count}Q", bytes(data[_START.size : table_end]))
    spans = []
    end = table_end
    for length in (stream_length, *lengths):
        at = end + -end % _ALIGNMENT
        end = at + length
        spans.append((at, length))
    if end != len(data):
        raise _damaged(f"{quantity(end, 'byte')} by its table", data)
    stream_at, _ = spans.pop(0)
    return stream_at, stream_at + stream_length, spans


def _damaged(figures: str, data: memoryview) -> DecodeError:
    return _no_pickle("the body is not a pickle, as its content type says", figures, data)


def _no_pickle(what: str, figures: str, data: memoryview) -> DecodeError:
    return DecodeError(
        what,
        figures=f"{figures:.500}, {quantity(len(data), 'byte')}",
        remedy="the reader needs the modules of the writer; m.view() gives the bytes",
    )
