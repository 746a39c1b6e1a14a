"""Rules for a ring's words, which hold at any moment: slots against the tail, head, floor, epochs, cells."""

import numpy

from checker.layout import CONSUMER_ROWS, PROCESS_ROWS
from checker.ring import Mask, Ring
from checker.violation import Findings
from checker.words import (
    ACQUIRED,
    AVAILABLE,
    BROKEN,
    CARRIED,
    CLAIMED,
    DEQUEUED,
    EPOCH_MASK,
    FETCHED,
    FREE,
    HELD,
    INTENT,
    LOCKED,
    MOVING,
    NEXT,
    NOT_BEFORE,
    OFFERED,
    PENDING,
    POSITION_BITS,
    POSITION_MASK,
    PROCESS_OWNER,
    QUARANTINED,
    RECORDED,
    REDELIVERED,
    WAITED,
    WAITS,
    slot_text,
)

# The owner that a word in each state may have: 0 nobody, 1 a process row, 2 either; 3: no such state.
NOBODY, PROCESS, EITHER, UNKNOWN = range(4)
OWNERS = numpy.full(16, UNKNOWN, dtype=numpy.uint8)
OWNERS[[FREE, AVAILABLE, HELD, BROKEN, MOVING]] = NOBODY
OWNERS[[CLAIMED, PENDING, QUARANTINED]] = PROCESS
OWNERS[[OFFERED, ACQUIRED, LOCKED, DEQUEUED]] = EITHER
IS_CLAIM = numpy.isin(numpy.arange(16), [CLAIMED, QUARANTINED])
HAS_POSITION = numpy.isin(numpy.arange(16), [PENDING, AVAILABLE, HELD, OFFERED, ACQUIRED, LOCKED, DEQUEUED, MOVING])
NOT_PASSED = numpy.isin(numpy.arange(16), [CLAIMED, AVAILABLE, OFFERED])
UNSETTLED = numpy.isin(numpy.arange(16), [CLAIMED, PENDING, AVAILABLE, HELD, OFFERED, ACQUIRED, LOCKED, MOVING])


def judge_ring(ring: Ring, findings: Findings) -> None:
    judge_laps(ring, findings)
    judge_pointers(ring, findings)
    judge_cells(ring, findings)
    if not ring.is_unused:
        judge_words(ring, findings)
        judge_positions(ring, findings)
        judge_records(ring, findings)


def tell(ring: Ring, findings: Findings, rule: str, wrong: Mask, why: str) -> None:
    """One violation for each slot in use where the mask is set."""
    if numpy.count_nonzero(wrong):
        use = ring.use
        for i in numpy.flatnonzero(wrong).tolist():
            text = f"{slot_text(int(use.word[i]))}, position {int(use.position[i])}: {why}"
            findings.add(rule, ring.where(int(use.slots[i])), text)


def judge_laps(ring: Ring, findings: Findings) -> None:
    """Below the tail every position has been claimed; at the tail perhaps; beyond it none."""
    free = ring.state == FREE
    wrong = (ring.ahead != free) & (ring.state != BROKEN)
    at = ring.tail % ring.count
    if wrong[at]:
        # The slot of the tail itself: the tail follows a claim, so the slot may be in use, or used and free again.
        ahead = int(ring.ahead[at])
        wrong[at] = not (ahead == 1 or (ahead == 2 and free[at]))
    for slot in wrong.nonzero()[0].tolist():
        text = f"{slot_text(int(ring.word[slot]))} does not go with the tail {ring.tail}"
        findings.add("slot.lap", ring.where(slot), text)
    stale = free & (ring.word & 0xFFFFFFEF != 0)
    for slot in stale.nonzero()[0].tolist():
        findings.add("slot.free", ring.where(slot), f"{slot_text(int(ring.word[slot]))}: FREE with owner, tag or R")


def judge_words(ring: Ring, findings: Findings) -> None:
    use = ring.use
    kinds = OWNERS[use.state]
    tell(ring, findings, "slot.state", kinds == UNKNOWN, "no such state")
    tell(ring, findings, "slot.broken", use.state == BROKEN, "found broken by a process")
    nobody = use.owner == 0
    row, by_process = use.owner & 0xFFF, use.owner >= PROCESS_OWNER
    wrong = (kinds == NOBODY) & ~nobody
    wrong |= (kinds == PROCESS) & ~by_process
    wrong |= (kinds == EITHER) & nobody
    wrong |= (kinds != NOBODY) & (kinds != UNKNOWN) & (row >= numpy.where(by_process, PROCESS_ROWS, CONSUMER_ROWS))
    tell(ring, findings, "slot.owner", wrong, "not an owner for this state")
    claim = IS_CLAIM[use.state]
    tell(ring, findings, "slot.claim", claim & ((use.tag != 0) | (use.flags != 0)), "a claim with a tag or flags")
    unknown = use.flags & ~numpy.uint64(CARRIED | REDELIVERED | WAITS) != 0
    unknown |= use.waits & (use.state != MOVING)
    tell(ring, findings, "slot.flags", unknown, "flags that are not written yet")


def judge_positions(ring: Ring, findings: Findings) -> None:
    use = ring.use
    has = HAS_POSITION[use.state]
    position = use.position.astype(numpy.int64)
    in_lap = has & ~use.carried
    tell(ring, findings, "slot.position", in_lap & (position != use.at_lap), "not the position of its lap")
    carried = has & use.carried
    if numpy.count_nonzero(carried):
        behind = (position < use.at_lap) & (position >= 0) & (position % ring.count == use.slots)
        tell(ring, findings, "slot.position", carried & ~behind, "not an earlier position of this slot")
        bits = ring.carried_bits[use.slots >> 6] >> (use.slots & 63).astype(numpy.uint64) & 1
        tell(ring, findings, "slot.carried", carried & (bits == 0), "carried without its bit in the bitmap")
    # Nobody passes an entry that was never handed out, held, nor pending; what came back turned the scans round, or is
    # about to. Without R comes back what nobody received: who brings it back counts it as held until that is done.
    first = ((use.flags & REDELIVERED) == 0) & ((use.props & (NOT_BEFORE | INTENT)) == 0)
    first &= (use.tag == 0) | (not ring.image.somebody_holds)
    place = numpy.where(use.state == CLAIMED, use.at_lap, position)
    passed = NOT_PASSED[use.state] & first & is_behind(ring, place) & ~is_given_back(ring, place)
    tell(ring, findings, "ring.passed", passed, f"scans begin behind it, at {ring.head}")
    below = UNSETTLED[use.state] & ~use.carried & (use.at_lap < ring.floor)
    tell(ring, findings, "ring.floor", below, f"neither settled nor carried, and below the floor {ring.floor}")


def is_given_back(ring: Ring, place: numpy.typing.NDArray[numpy.int64]) -> Mask:
    """Scans passed an entry that a mover had on its way to disk. The mover gives it back, and then turns them round."""
    flow = ring.flow
    if ring.is_front or not (flow.is_on and flow.is_amid):
        return numpy.zeros(len(place), dtype=bool)
    return flow.is_near(place) & (place >= flow.place)


def judge_records(ring: Ring, findings: Findings) -> None:
    """An entry that needs a field of a cold record has one; a held one says until when, one on its way where from."""
    use = ring.use
    held = use.state == HELD
    unknown = use.is_entry & (use.props & ~numpy.uint64(RECORDED) != 0)
    unknown |= use.is_entry & (use.props & FETCHED != 0) & (not ring.is_front)
    unknown |= use.is_entry & (use.props & (NEXT | WAITED) != 0) & (use.props & FETCHED == 0)
    tell(ring, findings, "slot.props", unknown, "properties that are not written yet")
    tell(ring, findings, "slot.held", held & (use.props & NOT_BEFORE == 0), "held, and does not say until when")
    pending = use.state == PENDING
    tell(ring, findings, "slot.pending", pending & (use.props & INTENT == 0), "on its way, and does not say where from")
    needs = use.is_entry & (use.props & RECORDED != 0)
    if ring.geometry.cold == 0:
        tell(ring, findings, "slot.cold", needs, "needs a cold record, and the ring has none")


def is_behind(ring: Ring, position: numpy.typing.NDArray[numpy.int64]) -> Mask:
    """Would a scan from the head as it is now miss an entry at this position?

    A scan that begins below tail - N looks at all that is older first; one that begins later meets what follows.
    """
    old = ring.tail - ring.count
    begins = ring.head
    return (position < begins) & ((position >= old) | (begins >= old))


def judge_pointers(ring: Ring, findings: Findings) -> None:
    where = ring.title
    ahead = (ring.head_word - ring.tail) & POSITION_MASK
    findings.expect(
        ahead <= 1 or ahead > POSITION_MASK // 2, "ring.head", where, f"the head is {ahead} beyond the tail {ring.tail}"
    )
    findings.expect(ring.floor <= ring.tail + 1, "ring.floor", where, f"floor {ring.floor}, tail {ring.tail}")
    # The head's epoch rises first, the ring's after it.
    lead = epoch_lead(ring)
    findings.expect(
        lead <= EPOCH_MASK // 2,
        "ring.epoch",
        where,
        f"the ring's epoch {ring.epoch} is further than the head's {ring.head_word >> POSITION_BITS}",
    )


def epoch_lead(ring: Ring) -> int:
    """Releases that have turned the head and have not raised the ring's epoch (yet, or ever: they died)."""
    return ((ring.head_word >> POSITION_BITS) - ring.epoch) & EPOCH_MASK


def judge_cells(ring: Ring, findings: Findings) -> None:
    if not ring.cells.any():
        return
    for number in numpy.flatnonzero(ring.cells).tolist():
        cell = int(ring.cells[number])
        epoch, position = cell >> POSITION_BITS, cell & POSITION_MASK
        # Neither is of the future; one of long ago may say anything else.
        early = (epoch - ring.epoch) & EPOCH_MASK
        beyond = (position - ring.tail) & POSITION_MASK
        good = epoch % 64 == number and not 0 < early <= 64 and not 0 < beyond <= ring.count
        text = f"cell {number} says epoch {epoch}, position {position}; ring: epoch {ring.epoch}, tail {ring.tail}"
        findings.expect(good, "ring.cell", ring.title, text)
