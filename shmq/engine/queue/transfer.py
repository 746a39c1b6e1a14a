"""Moves messages from one queue to another, each in one step: a message is never in both queues, never in none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from shmq.core import clock
from shmq.core.handles import (
    content_of,
    data_of,
    expires_ns_of,
    head_of,
    own_expires_ns_of,
    put_encoded,
    steal,
)
from shmq.core.queue import MOVED, Delivery, encode_extras, reap
from shmq.engine.handle.open_queue import OpenQueue, membership_of
from shmq.headers import HeaderBlock, decode_headers, encode_headers
from shmq.options import PutSettings, check_bool

if TYPE_CHECKING:
    from shmq.engine.message.message import Message
    from shmq.engine.queue.queue_management import QueueManagement

__all__ = ["transfer"]


def _head_without_death(block: HeaderBlock) -> bytes:
    """Returns the head of a message without its death: the user's headers, the content type and the group."""
    return encode_headers(block.user, content_type=block.content_type, group=block.group)


def _check_limit(limit: int | None) -> None:
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
        raise TypeError(f"limit={limit!r}: a number of messages is expected, not {type(limit).__name__}")
    if limit is not None and limit < 1:
        raise ValueError(f"limit={limit!r} is out of range: 1 or more is expected, or None for all")


def _is_over(expires_ns: int) -> bool:
    return expires_ns != 0 and clock.monotonic_ns() >= expires_ns


def _give_back(delivery: Delivery) -> None:
    """Gives a message back to its place. It is held until the same time as before."""
    delivery.release(False, max(delivery.held_until_ns - clock.monotonic_ns(), 0))


def _move(delivery: Delivery, to: OpenQueue) -> bool:
    """Moves one message. False: it expired, is damaged, or was taken away; then it stays in its queue."""
    if _is_over(delivery.expires_ns) or not delivery.intact():
        _give_back(delivery)
        return False
    return delivery.move(to, _head_without_death(decode_headers(delivery.head())), MOVED)


def _move_from(source: OpenQueue, position: int, to: OpenQueue) -> bool:
    delivery = steal(source, position, True)
    if delivery is None:
        return False  # a consumer has it, or has had it
    try:
        return _move(delivery, to)
    except BaseException:
        _give_back(delivery)
        raise


def _copy(message: Message[Any], to: OpenQueue) -> bool:
    body = data_of(message)
    if _is_over(expires_ns_of(message)) or not isinstance(body, bytes):
        return False
    own = own_expires_ns_of(message)  # the limit that its queue adds (max_ttl) stays with that queue
    ttl = None if not own else max(own - clock.monotonic_ns(), 0) / 1e9
    head = _head_without_death(decode_headers(head_of(message)))
    extras = encode_extras(PutSettings(priority=message.priority, ttl=ttl))
    put_encoded(to, content_of(message), head, (body,), 0, extras)
    return True


def transfer(
    source: QueueManagement, to: object, look: Callable[[], Iterator[Message[Any]]], limit: int | None, copy: bool
) -> int:
    """Implements Queue.move. `look` finds the messages that are to be moved or copied."""
    if not isinstance(to, OpenQueue):
        raise TypeError(f"to={to!r}: a Queue is expected, not {type(to).__name__}; use broker.queue(name)")
    if to == source:
        raise ValueError(f"queue {source.name!r} cannot be moved to itself; name another queue")
    if membership_of(to) is not membership_of(source):
        raise ValueError(f"to={to!r}: a queue of another broker; receive here and put there")
    _check_limit(limit)
    check_bool(copy, "copy")
    reap(membership_of(source).live())  # first: what a dead mover had in hand is then back in its place
    moved = 0
    try:
        for message in look():
            moved += _copy(message, to) if copy else _move_from(source, message.position, to)
            if moved == limit:
                break
    except BaseException as error:
        error.accepted = moved  # type: ignore[attr-defined]
        raise
    return moved
