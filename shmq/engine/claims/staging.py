"""Messages that are put into one queue to be moved into another: with the rules of the second one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shmq.codec import Codec, encode
from shmq.core.handles import counters_of, put_column, put_encoded
from shmq.core.queue import encode_extras
from shmq.engine.handle.failure import largest_body, too_large
from shmq.engine.handle.open_queue import membership_of
from shmq.engine.queue.queue import put_settings
from shmq.headers import encode_headers

if TYPE_CHECKING:
    from shmq.engine.queue.queue import Queue

__all__ = ["Bodies", "RowOptions", "put_count", "put_staged", "put_staged_bodies"]


def put_staged(
    stage: Queue[Any],
    target: Queue[Any],
    body: bytes | str,
    options: Mapping[str, Any],
    content_type: str | None = None,
) -> None:
    """Puts into `stage` what shall be moved into `target`, if that takes such options.

    Arguments:
        stage: a queue without priorities and groups: its order is that of the puts.
        target: says what is allowed: priorities, groups, times.
        body: as it is kept; a str as text.
        options: of put(), but for timeout and immediate.
        content_type: of the body; None: octets or text.

    Raises Full, OutOfSpace at once; ValueError, TypeError for an option that does not fit; MessageTooLarge.
    """
    settings = put_settings(target, options)
    encoded = encode(body, None if content_type is None else _codec_of(content_type))
    if encoded.size > largest_body(membership_of(stage).memory)[0]:
        raise too_large(target.name, encoded.size, membership_of(stage).memory)
    head = encode_headers(settings.headers, content_type=encoded.content_type, group=settings.group) or None
    extras = encode_extras(replace(settings, headers=None, group=None))
    put_encoded(stage, encoded.content, head, tuple(encoded.pieces), 0, extras)


@dataclass(frozen=True)
class RowOptions:
    """What rows say besides their bodies, in columns.

    Arguments:
        contents: codes of the bodies (uint8).
        priorities: (uint8).
        ttls: in nanoseconds (uint64), 2**64 - 1 for ever.
        head_ends: of the heads (int32), one more than rows: where the first begins, and where each ends.
        heads: their bytes.
        asking: options of the first row with a priority, and of the first with a group: what the target refuses, it
            refuses to them.
        timed: any row has a ttl.
    """

    contents: Any
    priorities: Any
    ttls: Any
    head_ends: Any
    heads: bytes
    asking: tuple[Mapping[str, Any], ...]
    timed: bool

    def columns(self) -> tuple[Any, Any, Any, Any, bytes]:
        """As the core takes them."""
        return self.contents, self.priorities, self.ttls, self.head_ends, self.heads

    def behind(self, count: int) -> RowOptions:
        """Without so many rows, which were put."""
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
    """

    content: int
    wide: bool
    ends: bytes | memoryview
    data: bytes | memoryview
    first: int
    count: int
    options: RowOptions | None = None

    def behind(self, count: int) -> Bodies:
        """Without so many, which were put."""
        options = None if self.options is None else self.options.behind(count)
        return replace(self, first=self.first + count, count=self.count - count, options=options)

    def largest(self) -> int:
        """Of those that count, in bytes."""
        kind = np.dtype(np.int64 if self.wide else np.int32)
        ends = np.frombuffer(memoryview(self.ends), kind, self.count + 1, self.first * kind.itemsize)
        return int(np.diff(ends).max(initial=0))


def put_staged_bodies(stage: Queue[Any], target: Queue[Any], bodies: Bodies) -> None:
    """As put_staged() for each of them, without an object for a body.

    Raises Full, OutOfSpace at once, with `accepted`: how many were put; MessageTooLarge, and ValueError for options
    that the target does not take, before anything is put.
    """
    for options in () if bodies.options is None else bodies.options.asking:
        put_settings(target, options)
    largest = bodies.largest()
    if largest > largest_body(membership_of(stage).memory)[0]:
        raise too_large(target.name, largest, membership_of(stage).memory)
    if bodies.count:
        put_column(
            stage,
            bodies.content,
            bodies.wide,
            bodies.ends,
            bodies.data,
            bodies.first,
            bodies.count,
            None if bodies.options is None else bodies.options.columns(),
        )


def _codec_of(content_type: str) -> Codec[Any]:
    return Codec(content_type, lambda body: body.encode() if isinstance(body, str) else body, bytes)


def put_count(queue: Queue[Any]) -> int:
    """How many messages were ever put into it, whatever became of them."""
    return counters_of(queue)["put"]
