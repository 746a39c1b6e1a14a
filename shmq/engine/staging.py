"""Messages that are put into one queue to be moved into another: with the rules of the second one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shmq.codec import Codec, encode
from shmq.core.queue import encode_extras
from shmq.engine.failure import largest_body, too_large
from shmq.headers import encode_headers

if TYPE_CHECKING:
    from shmq.engine.queue import Queue

__all__ = ["Bodies", "put_count", "put_staged", "put_staged_bodies"]


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
    settings = target._put_settings(options)
    encoded = encode(body, None if content_type is None else _codec_of(content_type))
    if encoded.size > largest_body(stage._membership.memory)[0]:
        raise too_large(target.name, encoded.size, stage._membership.memory)
    head = encode_headers(settings.headers, content_type=encoded.content_type, group=settings.group) or None
    extras = encode_extras(replace(settings, headers=None, group=None))
    stage._put_encoded(encoded.content, head, tuple(encoded.pieces), 0, extras)


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
    """

    content: int
    wide: bool
    ends: bytes | memoryview
    data: bytes | memoryview
    first: int
    count: int

    def behind(self, count: int) -> Bodies:
        """Without so many, which were put."""
        return replace(self, first=self.first + count, count=self.count - count)

    def largest(self) -> int:
        """Of those that count, in bytes."""
        kind = np.dtype(np.int64 if self.wide else np.int32)
        ends = np.frombuffer(memoryview(self.ends), kind, self.count + 1, self.first * kind.itemsize)
        return int(np.diff(ends).max(initial=0))


def put_staged_bodies(stage: Queue[Any], target: Queue[Any], bodies: Bodies) -> None:
    """As put_staged() for each of them, without options, and without an object for a body.

    Raises Full, OutOfSpace at once, with `accepted`: how many were put; MessageTooLarge before anything is put.
    """
    target._put_settings({})
    largest = bodies.largest()
    if largest > largest_body(stage._membership.memory)[0]:
        raise too_large(target.name, largest, stage._membership.memory)
    if bodies.count:
        stage._put_column(bodies.content, bodies.wide, bodies.ends, bodies.data, bodies.first, bodies.count)


def _codec_of(content_type: str) -> Codec[Any]:
    return Codec(content_type, lambda body: body.encode() if isinstance(body, str) else body, bytes)


def put_count(queue: Queue[Any]) -> int:
    """How many messages were ever put into it, whatever became of them."""
    return queue._counters()["put"]
