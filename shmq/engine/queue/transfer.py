"""Messages from one queue to another, each in one step: never in both queues, never in none."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from shmq.core.queue import MOVED, Delivery, encode_extras, reap
from shmq.headers import HeaderBlock, decode_headers, encode_headers
from shmq.options import PutSettings, check_bool

if TYPE_CHECKING:
    from shmq.engine.message.message import Message
    from shmq.engine.queue.queue import Queue

__all__ = ["transfer"]


def _head_without_death(block: HeaderBlock) -> bytes:
    """Of who lives again: what the user said, and how the body is to be read."""
    return encode_headers(block.user, content_type=block.content_type, group=block.group)


def _check_limit(limit: int | None) -> None:
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
        raise TypeError(f"limit={limit!r}: a number of messages is expected, not {type(limit).__name__}")
    if limit is not None and limit < 1:
        raise ValueError(f"limit={limit!r} is out of range: 1 or more is expected, or None for all")


def _is_over(expires_ns: int) -> bool:
    return expires_ns != 0 and time.monotonic_ns() >= expires_ns


def _give_back(delivery: Delivery) -> None:
    """In its place, until when it was held."""
    delivery.release(False, max(delivery.held_until_ns - time.monotonic_ns(), 0))


def _move(delivery: Delivery, to: Queue[Any]) -> bool:
    """False: it expired, is damaged, or was taken away; it is left to its queue."""
    view = delivery.view()
    body = memoryview(view) if view is not None else delivery.body()
    if body is False or _is_over(delivery.expires_ns) or (view is not None and not delivery.intact()):
        _give_back(delivery)
        return False
    head = _head_without_death(decode_headers(delivery.head()))
    return delivery.move(to, delivery.content, head, (body,), MOVED)


def _move_from(source: Queue[Any], position: int, to: Queue[Any]) -> bool:
    delivery = source._steal(position, True)
    if delivery is None:
        return False  # a consumer has it, or has had it
    try:
        return _move(delivery, to)
    except BaseException:
        _give_back(delivery)
        raise


def _copy(message: Message[Any], to: Queue[Any]) -> bool:
    body = message._data()
    if _is_over(message._expires_ns) or not isinstance(body, bytes):
        return False
    own = message._own_expires_ns  # what its queue says in addition (max_ttl) stays there
    ttl = None if not own else max(own - time.monotonic_ns(), 0) / 1e9
    head = _head_without_death(decode_headers(message._head))
    extras = encode_extras(PutSettings(priority=message.priority, ttl=ttl))
    to._put_encoded(message._content, head, (body,), 0, extras)
    return True


def transfer(source: Queue[Any], to: Queue[Any], selector: str | None, limit: int | None, copy: bool) -> int:
    """See Queue.move."""
    if not hasattr(to, "_membership"):
        raise TypeError(f"to={to!r}: a Queue is expected, not {type(to).__name__}; use broker.queue(name)")
    if to == source:
        raise ValueError(f"queue {source.name!r} cannot be moved to itself; name another queue")
    if to._membership is not source._membership:
        raise ValueError(f"to={to!r}: a queue of another broker; receive here and put there")
    _check_limit(limit)
    check_bool(copy, "copy")
    reap(source._membership.live())  # what a dead mover had goes first: it is back in its place before the first look
    moved = 0
    try:
        for message in source.browse(selector=selector):
            moved += _copy(message, to) if copy else _move_from(source, message.position, to)
            if moved == limit:
                break
    except BaseException as error:
        error.accepted = moved  # type: ignore[attr-defined]
        raise
    return moved
