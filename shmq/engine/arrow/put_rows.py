"""Puts rows into a queue: those of a batch as columns, or one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shmq.codec import Codec, encode
from shmq.core.handles import put_column, put_encoded
from shmq.core.queue import encode_extras
from shmq.engine.handle.failure import largest_body, too_large
from shmq.engine.handle.open_queue import OpenQueue, membership_of
from shmq.headers import encode_headers
from shmq.options import PutSettings

if TYPE_CHECKING:
    from shmq.engine.arrow.bodies import Bodies
    from shmq.engine.arrow.outgoing import Outgoing

__all__ = ["Rules", "put_bodies", "put_row"]

# The options of a put, checked: raises TypeError and ValueError for what the queue does not take.
Rules = Callable[[Mapping[str, Any]], PutSettings]


def put_row(queue: OpenQueue, name: str, rules: Rules, row: Outgoing, timeout: float | None) -> None:
    """Puts one row.

    Arguments:
        queue: into which it goes.
        name: of the queue that errors speak of.
        rules: of that queue.
        row: its body as it is kept, a str as text.
        timeout: in seconds, for room; None: for ever.

    Raises Full, OutOfSpace; ValueError, TypeError for an option that does not fit; MessageTooLarge.
    """
    settings = rules(row.options)
    encoded = encode(row.body, None if row.content_type is None else _codec_of(row.content_type))
    memory = membership_of(queue).memory
    if encoded.size > largest_body(memory)[0]:
        raise too_large(name, encoded.size, memory)
    head = encode_headers(settings.headers, content_type=encoded.content_type, group=settings.group) or None
    extras = encode_extras(replace(settings, headers=None, group=None))
    put_encoded(queue, encoded.content, head, tuple(encoded.pieces), timeout, extras)


def put_bodies(queue: OpenQueue, name: str, rules: Rules, bodies: Bodies, timeout: float | None) -> None:
    """Puts each of the rows as put_row() does, but makes no object for a body.

    Raises Full, OutOfSpace with `accepted`: how many were put; MessageTooLarge, and ValueError for options that the
    rules refuse, before anything is put.
    """
    for options in () if bodies.options is None else bodies.options.asking:
        rules(options)
    largest, memory = bodies.largest(), membership_of(queue).memory
    if largest > largest_body(memory)[0]:
        raise too_large(name, largest, memory)
    if bodies.count:
        put_column(
            queue,
            bodies.content,
            bodies.wide,
            bodies.ends,
            bodies.data,
            bodies.first,
            bodies.count,
            None if bodies.options is None else bodies.options.columns(),
            timeout,
        )


def _codec_of(content_type: str) -> Codec[Any]:
    return Codec(content_type, lambda body: body.encode() if isinstance(body, str) else body, bytes)
