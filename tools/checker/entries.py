"""The messages of a queue as its users would get them."""

from dataclasses import dataclass

import numpy

from checker.image import Image
from checker.messages import message_bytes
from checker.ring import Ring, rings_of
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


def ring_named(image: Image, queue_name: str) -> Ring:
    for ring in rings_of(image):
        if ring.name == queue_name and ring.entry.state == ENTRY_LIVE:
            return ring
    raise KeyError(queue_name)


def entries(image: Image, queue_name: str) -> list[Message]:
    """In queue order: what is available, and what somebody has in hand. KeyError: there is no such queue.

    A message whose bytes lie nowhere is left out; `judge` tells of it.
    """
    ring = ring_named(image, queue_name)
    use = ring.use
    found = []
    for i in numpy.flatnonzero(use.is_entry).tolist():
        parts = message_bytes(ring, i)
        if parts is None:
            continue
        found.append(
            Message(
                position=int(use.position[i]),
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
    return sorted(found, key=lambda message: message.position)
