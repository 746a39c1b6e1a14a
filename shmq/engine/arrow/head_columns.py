"""Arrow columns of what heads say, which the core fills where all heads of a batch are plain.

Python reads the other heads: those of dead messages, those with more than 64 headers, and damaged ones.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from shmq.core.queue import head_columns
from shmq.engine.arrow.row import header_text
from shmq.headers import decode_headers

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Heads", "heads_as_columns", "heads_by_python"]


class Heads(NamedTuple):
    """The fields in the heads of some entries; NULL: no group, or no content type that is named there."""

    groups: pyarrow.Array
    content_types: pyarrow.Array
    headers: pyarrow.Array


def heads_as_columns(ends: bytes, heads: bytes) -> Heads:
    """Reads the columns out of heads that lie one behind the other.

    Arguments:
        ends: one more than there are heads, of 32 bits each: where the first begins, and where each ends.
        heads: their bytes.

    Raises DecodeError for a damaged one.
    """
    import pyarrow as pa

    columns = head_columns(ends, heads)
    if columns is None:
        return heads_by_python(ends, heads)
    rows = len(ends) // 4 - 1
    (group_there, group_ends, groups, type_there, type_ends, types,
     header_ends, name_ends, names, value_ends, values) = map(pa.py_buffer, columns)  # fmt: skip
    user = len(name_ends) // 4 - 1
    return Heads(
        pa.Array.from_buffers(pa.string(), rows, [group_there, group_ends, groups]),
        pa.Array.from_buffers(pa.string(), rows, [type_there, type_ends, types]),
        pa.MapArray.from_arrays(
            pa.Array.from_buffers(pa.int32(), rows + 1, [None, header_ends]),
            pa.Array.from_buffers(pa.string(), user, [None, name_ends, names]),
            pa.Array.from_buffers(pa.string(), user, [None, value_ends, values]),
        ),
    )


def heads_by_python(ends: bytes, heads: bytes) -> Heads:
    """Reads the heads one by one in Python. Raises DecodeError for a damaged head, and says what is wrong with it."""
    import pyarrow as pa

    at = memoryview(ends).cast("i")
    blocks = [decode_headers(heads[begin:end]) for begin, end in pairwise(at)]
    texts = [[(name, header_text(value)) for name, value in block.user.items()] for block in blocks]
    return Heads(
        pa.array([block.group for block in blocks], pa.string()),
        pa.array([block.content_type for block in blocks], pa.string()),
        pa.array(texts, pa.map_(pa.string(), pa.string())),
    )
