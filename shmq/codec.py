"""How bodies become bytes and back, and which content type says so.

| code | content type | bodies | in file |
| ---: | --- | --- | --- |
| 0 | application/octet-stream | bytes, bytearray, memoryview; out come bytes | here |
| 1 | text/plain; charset=utf-8 | str | codec_json |
| 2 | application/json | None, bool, int, float, list, dict with str keys | codec_json |
| 3 | application/x-numpy | numpy arrays without objects | codec_array |
| 4 | application/x-python-pickle | any object, by handles that ask for it | codec_pickle |
| 255 | named in the headers | a Codec's | here |

The code lies in the message's slot. A handle's codec decides what is taken in and which codes are understood.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar, cast

from shmq.codec_array import array_view, decode_array, encode_array, is_array
from shmq.codec_json import decode_json, encode_json, encode_text, refuse
from shmq.codec_pickle import decode_pickle, encode_pickle
from shmq.errors import DecodeError
from shmq.headers import check_content_type
from shmq.quantity import quantity

__all__ = [
    "ARRAY",
    "CONTENT_TYPES",
    "JSON",
    "NAMED",
    "OCTETS",
    "PICKLE",
    "TEXT",
    "AnyCodec",
    "Codec",
    "Encoded",
    "array_view",
    "check_codec",
    "check_decodable",
    "content_type_of",
    "decode",
    "excerpt",
    "encode",
]

T = TypeVar("T")

_EXCERPT: Final = 40  # characters or bytes
OCTETS: Final = 0
TEXT: Final = 1
JSON: Final = 2
ARRAY: Final = 3
PICKLE: Final = 4
NAMED: Final = 255

CONTENT_TYPES: Final = (
    "application/octet-stream",
    "text/plain; charset=utf-8",
    "application/json",
    "application/x-numpy",
    "application/x-python-pickle",
)
_CODES: Final = {name: code for code, name in enumerate(CONTENT_TYPES)}


@dataclass(frozen=True)
class Codec(Generic[T]):
    """How a handle turns T into bytes and back. Belongs to the handle; the message carries the content type.

    Arguments:
        content_type: 1 to 255 printable ASCII characters. One of shmq's own names means the same code as there: such
            bodies are read by other handles as if shmq had encoded them.
        encode: makes bytes, bytearray or memoryview of a T; what it raises, put raises.
        decode: makes a T of a read-only memoryview over a private copy, which it may keep. Its exception becomes the
            cause of a DecodeError, and the attempt counts.

    Raises TypeError or ValueError for an unfit content type, TypeError if encode or decode cannot be called.

    Example:
        >>> from shmq import Codec
        >>> hexadecimal = Codec("text/x-hex", encode=lambda n: b"%x" % n, decode=lambda data: int(bytes(data), 16))
        >>> numbers = broker.queue("numbers", codec=hexadecimal)
        >>> numbers.put(255)
        1
        >>> numbers.get()
        255
    """

    content_type: str
    encode: Callable[[T], bytes | bytearray | memoryview]
    decode: Callable[[memoryview], T]

    def __post_init__(self) -> None:
        check_content_type(self.content_type)
        for name in ("encode", "decode"):
            if not callable(function := getattr(self, name)):
                raise TypeError(
                    f"{name} of a Codec is of the type {type(function).__name__}; give a function of one argument"
                )


AnyCodec = None | Literal["bytes", "pickle"] | Codec[Any]


@dataclass(slots=True)
class Encoded:
    """A body on its way into shared memory: written there piece by piece, never joined before.

    The pieces are contiguous and one byte an item. They look into the body that was given, which must not change before
    they are written.
    """

    content: int  # code
    content_type: str | None  # of code 255, for the headers
    pieces: list[bytes | memoryview]
    size: int  # bytes of all pieces

    def joined(self) -> bytes:
        """Returns the whole body as one bytes object."""
        if len(self.pieces) == 1:
            return bytes(self.pieces[0])
        return b"".join(self.pieces)


def check_codec(codec: object) -> AnyCodec:
    """The codec as it was given, if a handle can have it.

    Raises ValueError for an unknown name, TypeError for another type.
    """
    if codec is None or isinstance(codec, Codec):
        return codec
    if isinstance(codec, str):
        if codec in ("bytes", "pickle"):
            return cast(Literal["bytes", "pickle"], str(codec))
        raise ValueError(f'codec={codec!r:.60} is unknown; use None, "bytes", "pickle" or a shmq.Codec')
    if codec is bytes:
        raise TypeError('codec=bytes is the type; use its name, codec="bytes"')
    raise TypeError(f'codec={codec!r:.60} is not a codec; use None, "bytes", "pickle" or a shmq.Codec(...)')


def content_type_of(content: int, content_type: str | None) -> str:
    """The content type by its name, for a code and what the headers name; "" for a code that means nothing here."""
    if content == NAMED:
        return content_type or ""
    return CONTENT_TYPES[content] if 0 <= content < len(CONTENT_TYPES) else ""


# ---- in --------------------------------------------------------------------------------------------------------


def encode(body: Any, codec: AnyCodec = None) -> Encoded:
    """The body as pieces of bytes with its content code.

    Raises TypeError for a body that the codec does not take, naming the place and a remedy. With "pickle" it raises the
    errors of pickle, with a Codec those of its encode. Nothing is put then.
    """
    if codec is None:
        return _encode_default(body)
    if codec == "bytes":
        piece = _one_piece(body)
        if piece is None:
            raise TypeError(
                f'a body {_of_type(body)} cannot be put with codec="bytes"; give bytes, or memoryview(body) if meant'
            )
        return Encoded(OCTETS, None, [piece], len(piece))
    if codec == "pickle":
        return _of_pieces(PICKLE, encode_pickle(body))
    made = codec.encode(body)
    piece = _one_piece(made)
    if piece is None:
        raise TypeError(
            f"encode of the Codec {codec.content_type!r} returned a value {_of_type(made)}; it must return bytes"
        )
    code = _CODES.get(codec.content_type, NAMED)
    return Encoded(code, codec.content_type if code == NAMED else None, [piece], len(piece))


def _encode_default(body: Any) -> Encoded:
    kind = type(body)
    if kind is bytes:
        return Encoded(OCTETS, None, [body], len(body))
    if kind is str:
        text = encode_text(body)
        return Encoded(TEXT, None, [text], len(text))
    if kind is dict or kind is list:
        text = encode_json(body)
        return Encoded(JSON, None, [text], len(text))
    if kind is bytearray or kind is memoryview:
        piece = _flat(body)
        return Encoded(OCTETS, None, [piece], len(piece))
    if is_array(body):
        return _of_pieces(ARRAY, encode_array(body))
    if isinstance(body, (bytes, bytearray)):
        name = f"of the type {kind.__module__}.{kind.__qualname__}"
        refuse("body", name, 'use bytes(body), or open the queue with codec="pickle"')
    text = encode_json(body)
    return Encoded(JSON, None, [text], len(text))


def _one_piece(body: object) -> bytes | memoryview | None:
    if isinstance(body, bytes):
        return body
    return _flat(body) if isinstance(body, (bytearray, memoryview)) else None


def _flat(body: bytearray | memoryview) -> bytes | memoryview:
    """Returns the bytes of a buffer in C order; copies them only if they lie otherwise."""
    view = memoryview(body)
    if view.ndim == 1 and view.itemsize == 1 and view.c_contiguous and view.format in ("B", "b", "c"):
        return view if view.format == "B" else view.cast("B")
    try:
        return view.cast("B")
    except TypeError:  # gaps, a shape without elements, or a format that cast does not know
        return view.tobytes()


def _of_pieces(content: int, pieces: list[bytes | memoryview]) -> Encoded:
    return Encoded(content, None, pieces, sum(map(len, pieces)))


def _of_type(body: object) -> str:
    return f"of the type {type(body).__qualname__}"


# ---- out -------------------------------------------------------------------------------------------------------


def check_decodable(content: int, content_type: str | None, codec: AnyCodec) -> None:
    """Whether a handle with this codec may decode such a message at all, before its bytes are looked at.

    Apart from `decode`, so that a message of an unknown type can stay in its place, while one that fails counts.

    Raises DecodeError naming the content type and the codec that would do.
    """
    if codec == "bytes":
        return
    name = content_type_of(content, content_type)
    if codec is None or codec == "pickle":
        if OCTETS <= content <= ARRAY or (content == PICKLE and codec == "pickle"):
            return
        remedy = (
            'open the queue with codec="pickle" if you trust its producers'
            if content == PICKLE
            else "open the queue with a Codec for it"
        )
    else:
        if name and name == codec.content_type:
            return
        remedy = f"this handle's Codec is for {codec.content_type!r}; open another one for this type"
    shown = repr(name) if name else f"unknown, code {content}"
    raise DecodeError(
        "this handle does not understand the body",
        figures=f"its content type is {shown}",
        remedy=f"{remedy}; m.view() gives the bytes",
    )


def excerpt(content: int, data: bytes | memoryview) -> str:
    """How a body begins, for people: text as text, all else as bytes; never decoded by a codec.

    Arguments:
        content: code of the message.
        data: the encoded body.
    """
    begin = bytes(data[: 4 * _EXCERPT])  # a character has four bytes at most
    shown: str | bytes = begin.decode(errors="replace") if content in (TEXT, JSON) else begin
    return f"{shown[:_EXCERPT]!r}{'...' if len(data) > len(begin) or len(shown) > _EXCERPT else ''}"


def decode(content: int, content_type: str | None, data: bytes | memoryview, codec: AnyCodec = None) -> Any:
    """The body that the bytes stand for, as an own copy.

    Arguments:
        content: code of the message.
        content_type: as its headers name it, for code 255.
        data: the encoded body, one byte an item.
        codec: of the handle. None decodes codes 0 to 3; "bytes" gives the bytes of any; "pickle" decodes 0 to 4;
            a Codec what has its content type.

    Raises DecodeError for a type that the codec does not understand, or bytes that it fails on. Of Exceptions nothing
    else is raised, whatever the bytes are.
    """
    check_decodable(content, content_type, codec)
    if codec == "bytes":
        return bytes(data)
    if isinstance(codec, Codec):
        # A private copy: many decoders keep a view in what they return, and the block is used again one day.
        return _decode_by(codec, memoryview(bytes(data)))
    return _DECODERS[content](memoryview(data))


def _decode_by(codec: Codec[T], data: memoryview) -> T:
    try:
        return codec.decode(data)
    except Exception as error:
        raise DecodeError(
            f"decode of the Codec {codec.content_type!r} failed",
            figures=f"{type(error).__name__}: {error!s:.500}, {quantity(len(data), 'byte')}",
            remedy="its cause is the codec's own error; m.view() gives the bytes",
        ) from error


def _decode_text(data: memoryview) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(
            "the body is not text in UTF-8, as its content type says",
            figures=f"{error}, {quantity(len(data), 'byte')}",
            remedy="m.view() gives its bytes; look at the program that put it",
        ) from error


_Decoder = Callable[[memoryview], Any]
_DECODERS: Final[tuple[_Decoder, ...]] = (bytes, _decode_text, decode_json, decode_array, decode_pickle)
