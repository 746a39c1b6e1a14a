"""Rows that are put as columns: bodies that lie one behind the other, and columns for the options of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

__all__ = ["Bodies", "RowOptions"]


@dataclass(frozen=True)
class RowOptions:
    """The options of rows, in columns beside their bodies.

    Arguments:
        contents: codes of the bodies (uint8).
        priorities: (uint8).
        ttls: in nanoseconds (uint64), 2**64 - 1 for ever.
        head_ends: where the first head begins in `heads`, and where each ends (int32): one more than there are rows.
        heads: the bytes of all heads.
        asking: options of the first row with a priority, and of the first with a group. A target without priorities
            or groups refuses these, with its own error.
        timed: True if any row has a ttl.
    """

    contents: Any
    priorities: Any
    ttls: Any
    head_ends: Any
    heads: bytes
    asking: tuple[Mapping[str, Any], ...]
    timed: bool

    def columns(self) -> tuple[Any, Any, Any, Any, bytes]:
        """Returns the columns in the form in which the core takes them."""
        return self.contents, self.priorities, self.ttls, self.head_ends, self.heads

    def behind(self, count: int) -> RowOptions:
        """Returns the options without those of the first `count` rows, which were put."""
        return replace(
            self,
            contents=self.contents[count:],
            priorities=self.priorities[count:],
            ttls=self.ttls[count:],
            head_ends=self.head_ends[count:],
        )


@dataclass(frozen=True)
class Bodies:
    """Bodies that lie one behind the other, as a column of Arrow has them.

    Arguments:
        content: bytes: OCTETS; text in UTF-8: TEXT.
        wide: the ends have 64 bits each, else 32.
        ends: one more than there are bodies: where the first begins, and where each ends.
        data: the bytes.
        first: the number of the first one that counts.
        count: how many count.
        options: of those that count; None: none has any.
        queue: into which they go; None: that of the write.
    """

    content: int
    wide: bool
    ends: bytes | memoryview
    data: bytes | memoryview
    first: int
    count: int
    options: RowOptions | None = None
    queue: str | None = None

    def behind(self, count: int) -> Bodies:
        """Returns the bodies without the first `count`, which were put."""
        options = None if self.options is None else self.options.behind(count)
        return replace(self, first=self.first + count, count=self.count - count, options=options)

    @property
    def timed(self) -> bool:
        """Says whether a message has a ttl."""
        return self.options is not None and self.options.timed

    def largest(self) -> int:
        """Returns the size of the largest of the bodies that count, in bytes."""
        kind = np.dtype(np.int64 if self.wide else np.int32)
        ends = np.frombuffer(memoryview(self.ends), kind, self.count + 1, self.first * kind.itemsize)
        return int(np.diff(ends).max(initial=0))
