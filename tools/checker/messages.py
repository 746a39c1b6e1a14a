"""Rules for each message that somebody still may get: lengths, checksum, ids, deliveries."""

import struct

import numpy
from numpy.typing import NDArray

from checker.crc32c import crc32c_of_all
from checker.image import Words
from checker.layout import QUEUE, SEGMENT, round_up
from checker.queue import level_of
from checker.ring import Mask, Ring
from checker.slots import tell
from checker.violation import Findings
from checker.words import AVAILABLE, DEATH_COUNTED, LOCKED, OFFERED, PENDING, REDELIVERED

SLOT_HEADER = 64
Place = tuple[int, int, int, int, int]

# Slots whose checksum was found right, by place and size of the ring, and its queue: the same bytes are right in the
# next image, too.
_verified: dict[Place, Words] = {}
_bodies: dict[bytes, int] = {}
_bodies_bytes = 0
BODIES_BYTES = 64 << 20


def judge_messages(ring: Ring, findings: Findings) -> None:
    if ring.is_unused:
        return
    use = ring.use
    entry = use.is_entry
    if not numpy.count_nonzero(entry):
        return
    room = ring.geometry.slot_size - SLOT_HEADER
    inline = use.body == 0
    too_long = entry & inline & (use.headers_len + use.body_len > room)
    tell(ring, findings, "message.length", too_long, f"headers and body do not fit into {room} bytes")
    tell(ring, findings, "message.block", entry & inline & (use.body_gen != 0), "a generation, and no block")
    bits = use.body >> numpy.uint64(40)
    tell(ring, findings, "message.block", entry & (bits > 11), "no reference bit of a put")
    priority = use.tally >> numpy.uint64(24) & 0xFF
    tell(ring, findings, "message.fields", entry & (priority > 9), "a priority above 9")
    level = numpy.array([level_of(priority, ring.levels) for priority in range(10)])
    elsewhere = entry & (priority <= 9) & (level[numpy.minimum(priority, 9)] != ring.level)
    tell(ring, findings, "message.level", elsewhere, "its priority is of another level")
    tag = use.tally >> numpy.uint64(48)
    strange = (tag != 0) & (tag & 0xF800 != DEATH_COUNTED)
    tell(ring, findings, "message.deaths", entry & strange, "the delivery whose death was counted is none")
    uncounted = (tag == 0) != (use.tally & 0xFFFF == 0)
    tell(
        ring, findings, "message.deaths", entry & uncounted, "deaths without the last one's delivery, or without deaths"
    )
    came_back = (use.delivery > 0) | (use.tally & 0xFFFF > 0)
    first = (use.flags & REDELIVERED) == 0
    free_to_take = (use.state == AVAILABLE) | (use.state == OFFERED)
    tell(ring, findings, "message.redelivered", free_to_take & came_back & first, "came back, and does not say so")
    if ring.image.u32(ring.page + QUEUE["checksum"]) != 0:
        judge_checksums(ring, findings, entry & ~too_long)


def judge_ids(rings: list[Ring], next_id: int, findings: Findings) -> None:
    """No message is in two places, and each id was handed out before it was used.

    A message that keeps its id on its way is PENDING in one queue as long as it is LOCKED in the other.
    """
    found: list[tuple[Ring, Words, NDArray[numpy.uint8]]] = []
    for ring in rings:
        if ring.is_unused:
            continue
        use = ring.use
        if numpy.count_nonzero(use.is_entry):
            found.append((ring, use.message_id[use.is_entry], use.state[use.is_entry]))
            wrong = use.is_entry & ((use.message_id == 0) | (use.message_id >= next_id))
            tell(ring, findings, "message.id", wrong, "an id that nobody was given")
    if not found:
        return
    twice = set[int]()
    for passed in (PENDING, LOCKED):
        ids = numpy.sort(numpy.concatenate([ids[states != passed] for _, ids, states in found]))
        twice.update(ids[1:][ids[1:] == ids[:-1]].tolist())
    for message in sorted(twice):
        queues = ", ".join(repr(ring.name) for ring, ids, _ in found if (ids == message).any())
        findings.add("message.twice", f"queue {queues}", f"message {message} is in two places")


def judge_all_ids(rings: list[Ring], findings: Findings) -> None:
    if rings:
        judge_ids(rings, rings[0].image.u64(SEGMENT["message_ids"]), findings)


def judge_checksums(ring: Ring, findings: Findings, entry: Mask) -> None:
    use, geometry = ring.use, ring.geometry
    key = (geometry.slots, geometry.slot_size, ring.count, ring.entry.index, ring.entry.incarnation)
    before = _verified.get(key)
    in_slot = entry & (use.body == 0)
    if before is not None and numpy.count_nonzero(in_slot):
        candidates = in_slot.nonzero()[0]
        same = same_rows(before, ring.raw, use.slots[candidates])
        in_slot[candidates[same]] = False
    new = in_slot.nonzero()[0].tolist()
    new += (entry & (use.body != 0)).nonzero()[0].tolist()
    wrong = numpy.zeros(len(use.slots), dtype=bool)
    for i, crc in zip(new, checksums(ring, new), strict=True):
        wrong[i] = crc is not None and crc != int(use.crc[i])
    tell(ring, findings, "message.crc", wrong, "its checksum is of other bytes")
    if before is None:
        before = _verified[key] = numpy.zeros_like(ring.raw)
    good = use.slots[numpy.array([i for i in new if not wrong[i] and use.body[i] == 0], dtype=numpy.int64)]
    before[good] = ring.raw[good]


def same_rows(before: Words, now: Words, slots: numpy.typing.NDArray[numpy.int64]) -> Mask:
    """Are the bytes of these slots those that were verified? The word and the position are under no checksum."""
    if len(slots) * 2 > len(now):
        same: Mask = (before[:, 2:] == now[:, 2:]).all(axis=1)[slots]
    else:
        same = (before[slots, 2:] == now[slots, 2:]).all(axis=1)
    return same


def checksums(ring: Ring, chosen: list[int]) -> list[int | None]:
    """Of these messages; None: its block is nowhere, which another rule tells."""
    global _bodies_bytes
    texts = [covered(ring, i) for i in chosen]
    missing = list({text for text in texts if text is not None and text not in _bodies})
    if _bodies_bytes > BODIES_BYTES:
        _bodies.clear()
        _bodies_bytes = 0
        missing = list({text for text in texts if text is not None})
    for text, crc in zip(missing, crc32c_of_all(missing), strict=True):
        _bodies[text] = crc
        _bodies_bytes += len(text)
    return [None if text is None else _bodies[text] for text in texts]


def covered(ring: Ring, i: int) -> bytes | None:
    """The bytes that the checksum of a message is made of."""
    image, use = ring.image, ring.use
    at = ring.geometry.slots + int(use.slots[i]) * ring.geometry.slot_size
    parts = message_bytes(ring, i)
    if parts is None:
        return None
    # message id and time of the put, lengths of body and headers, content and priority
    fields = image.raw(at + 16, 16) + image.raw(at + 44, 4) + image.raw(at + 52, 2) + image.raw(at + 58, 2)
    identity = struct.pack("<II", ring.entry.index, ring.entry.incarnation)
    return identity + fields + parts[0] + parts[1]


def message_bytes(ring: Ring, i: int) -> tuple[bytes, bytes] | None:
    """Headers and body; None: they do not lie where the slot says."""
    image, use = ring.image, ring.use
    head, body, reference = int(use.headers_len[i]), int(use.body_len[i]), int(use.body[i])
    if reference == 0:
        at = ring.geometry.slots + int(use.slots[i]) * ring.geometry.slot_size + SLOT_HEADER
        if head + body > ring.geometry.slot_size - SLOT_HEADER:
            return None
        return image.raw(at, head), image.raw(at + head, body)
    offset = (reference & (1 << 40) - 1) << 6
    place = image.block_at(offset)
    start = round_up(head, 64)
    if place is None or start + body > place[0].size:
        return None
    return image.raw(offset, head), image.raw(offset + start, body)
