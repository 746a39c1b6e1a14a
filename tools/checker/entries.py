"""The messages of a queue as its users would get them."""

from dataclasses import dataclass

import numpy

from checker.image import Image
from checker.messages import message_bytes
from checker.queue import Queue, queues_of
from checker.ring import Ring
from checker.words import ENTRY_LIVE, REDELIVERED, STATE_NAMES


@dataclass(frozen=True)
class Message:
    """An entry of a queue. `delivery` counts failed attempts, `deaths` deliveries that ended with their process."""

    position: int
    state: str
    redelivered: bool
    delivery: int
    deaths: int
    message_id: int
    owner: int
    headers: bytes
    body: bytes


PLACE_BITS = 48  # of the position in a level


def queue_named(image: Image, queue_name: str) -> Queue:
    for queue in queues_of(image):
        if queue.name == queue_name and queue.entry.state == ENTRY_LIVE:
            return queue
    raise KeyError(queue_name)


def entries(image: Image, queue_name: str) -> list[Message]:
    """In queue order: what is available, and what somebody has in hand. KeyError: there is no such queue.

    A message whose bytes lie nowhere is left out; `judge` tells of it. Those on disk are in no segment.
    """
    found = [message for ring in queue_named(image, queue_name).rings for message in entries_of(ring)]
    return sorted(found, key=lambda message: message.position)


def entries_of(ring: Ring) -> list[Message]:
    use = ring.use
    found = []
    for i in numpy.flatnonzero(use.is_entry).tolist():
        parts = message_bytes(ring, i)
        if parts is None:
            continue
        found.append(
            Message(
                position=(ring.level << PLACE_BITS) + int(ring.places[i]),
                state=STATE_NAMES.get(int(use.state[i]), "?"),
                redelivered=bool(int(use.flags[i]) & REDELIVERED),
                delivery=int(use.delivery[i]),
                deaths=int(use.tally[i]) & 0xFFFF,
                message_id=int(use.message_id[i]),
                owner=int(use.owner[i]),
                headers=parts[0],
                body=parts[1],
            )
        )
    return found
