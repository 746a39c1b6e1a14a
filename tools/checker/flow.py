"""Rules for a queue that may flow to disk, which hold at any moment. Its rows are in no segment: words say how many."""

import numpy

from checker.layout import RING
from checker.queue import Queue
from checker.ring import FETCH_WORDS, FLOW_WORDS, Flow, Mask, Ring
from checker.slots import tell
from checker.violation import Findings
from checker.words import (
    AVAILABLE,
    CLAIMED,
    ENTRY_LIVE,
    FETCHED,
    IMMEDIATE,
    INTENT,
    MOVING,
    NOT_BEFORE,
    PENDING,
    QUARANTINED,
    REDELIVERED,
    WAITED,
)

BACK_ONLY = numpy.isin(numpy.arange(16), [CLAIMED, PENDING, QUARANTINED, MOVING])


def judge_flow(queue: Queue, findings: Findings) -> None:
    for ring in queue.fronts:
        # Of a front ring: the file that its mover writes, the first one perhaps, or has left.
        others = [RING[word] for word in (*FETCH_WORDS, "writing_bytes")]
        its = [*(word for word in FLOW_WORDS if RING[word] not in others), "rows_due", "tried"]
        said = [word for word in its if queue.image.u64(ring.at + RING[word]) != 0]
        findings.expect(not said, "flow.words", ring.title, f"does not flow, and has {', '.join(said)}")
    if queue.entry.state == ENTRY_LIVE:
        for back, front in zip(queue.backs, queue.fronts, strict=True):
            judge_level(back, front, findings)


def judge_level(back: Ring, front: Ring, findings: Findings) -> None:
    flow = back.flow
    judge_words(back, front, findings)
    judge_moving(back, findings)
    if not front.is_unused:
        judge_front(front, flow, findings)
    if flow.is_on and not back.is_unused:
        judge_gap(back, flow, findings)


def judge_words(back: Ring, front: Ring, findings: Findings) -> None:
    flow, where = back.flow, back.title
    text = f"P {flow.place}, low {flow.low}, {flow.flushed} flushed, {flow.pulled} pulled, tail {back.tail}"
    # The flush ends at what nobody has claimed, the slot of the tail perhaps among what was.
    findings.expect(flow.place <= back.tail + 1, "flow.place", where, f"beyond the tail: {text}")
    findings.expect(back.tried <= back.tail + 1, "flow.tried", where, f"{back.tried}, beyond the tail: {text}")
    findings.expect(not flow.is_on or flow.low <= flow.place, "flow.low", where, f"low above P: {text}")
    findings.expect(flow.pulled <= flow.flushed, "flow.rows", where, f"more came back than went: {text}")
    moved = f"{flow.flushed_bytes} bytes flushed, {flow.pulled_bytes} pulled"
    findings.expect(flow.row_bytes >= 0, "flow.bytes", where, f"more came back than went: {moved}")
    singly = f"{flow.erased} fetched by themselves, {flow.passed} of them passed"
    findings.expect(flow.passed <= flow.erased, "flow.fetched", where, singly)
    records = flow.word == 0 or front.geometry.cold != 0 or front.tail == 0
    findings.expect(records, "flow.cold", where, "messages came back, and its front ring has no cold records")
    findings.expect(flow.missed <= 1, "flow.missed", where, f"missed: {flow.missed}")
    text = f"{flow.waiting} went to disk to wait, {flow.came} came back, low {flow.waiting_low}"
    findings.expect(max(flow.came, flow.waiting_low) <= flow.waiting, "flow.waiting", where, text)
    if flow.is_amid:
        return  # what follows holds when a turn has ended: whoever comes next sees to that first
    most = flow.place - flow.low - left(back, flow) if flow.is_on else 0
    findings.expect(flow.rows <= max(most, 0), "flow.rows", where, f"no room for {flow.rows} rows: {text}")
    findings.expect(flow.rows >= 0, "flow.fetched", where, f"more than there were: {singly}")
    findings.expect(flow.rows != 0 or flow.row_bytes == 0, "flow.bytes", where, f"of no row: {moved}")
    said = (flow.flushing_count, flow.flushing_bytes)
    known = flow.flushing_at != flow.place or said == (flow.flushed, flow.flushed_bytes)
    text = f"{said[0]} and {said[1]} bytes at P, and {flow.flushed} and {flow.flushed_bytes} bytes flushed"
    findings.expect(known, "flow.flushing", where, text)
    findings.expect(flow.dropping_at == 0, "flow.dropping", where, f"rows below {flow.dropping_at} are to go")
    text = f"{flow.waiting_bytes} bytes went to disk to wait, {flow.came_bytes} came back"
    none_waits = flow.waiting_rows == 0
    findings.expect(not none_waits or flow.waiting_bytes == flow.came_bytes, "flow.waiting", where, text)
    findings.expect(flow.waiting_from == 0, "flow.waiting", where, "a turn that writes waiting rows has not ended")


def left(back: Ring, flow: Flow) -> int:
    """Entries of the back ring that rows lie around: no row has their place."""
    if back.is_unused:
        return 0
    use = back.use
    among = use.is_entry & (back.places >= flow.low) & (back.places < flow.place)
    return int(numpy.count_nonzero(among))


def judge_moving(ring: Ring, findings: Findings) -> None:
    """On its way to disk is nothing but what a mover has, or a dead one had, in its turn."""
    flow = ring.flow
    if not ring.is_unused and ring.use.moving.any():
        use = ring.use
        flushed = use.moving & ~use.waits
        wrong = flushed & ~flow.is_near(ring.places)
        if not (flow.is_on and flow.is_amid):
            wrong = flushed
        wrong |= use.moving & use.waits & (flow.waiting_from == 0)
        tell(ring, findings, "flow.moving", wrong, f"no mover has it: P {flow.place}, unfinished {flow.unfinished}")


def judge_front(front: Ring, flow: Flow, findings: Findings) -> None:
    """Only the mover puts there: entries, in the order of their places, but for those that came in by themselves."""
    use = front.use
    strange = BACK_ONLY[use.state] & ~(use.moving & use.waits)
    tell(front, findings, "front.state", strange, "no state of a front ring")
    if front.geometry.cold == 0:
        return  # told by others
    entry = use.is_entry
    places, ordinals = front.places, front.ordinals
    fetched = entry & (use.props & FETCHED != 0)
    if not flow.is_amid:
        late = fetched & (use.position.astype(numpy.int64) >= flow.scattered)
        tell(front, findings, "front.fetched", late, f"fetched, and the last one lies before {flow.scattered}")
    waited = use.props & WAITED != 0  # it went from anywhere
    beyond = entry & ~waited & (places >= flow.place)
    tell(front, findings, "front.place", beyond, f"not below P, which is {flow.place}")
    entry = entry & ~fetched
    if not flow.is_amid:
        tell(front, findings, "front.place", entry & (places >= flow.low), f"not below low, which is {flow.low}")
        tell(front, findings, "front.ordinal", entry & (ordinals > flow.pulled), f"{flow.pulled} were pulled")
    # An entry that is handed over is no row, and has the ordinal of the last one that has come in.
    for rule, values, by in (("front.place", places, 1), ("front.ordinal", ordinals, 0)):
        tell(front, findings, rule, entry & ~grows(front, entry, values, by), "not in the order of their positions")


def grows(front: Ring, among: Mask, values: numpy.typing.NDArray[numpy.int64], by: int) -> Mask:
    """Is it higher than that of each of these entries before it, by so many at least?"""
    entries = numpy.flatnonzero(among)
    order = entries[numpy.argsort(front.use.position[entries], kind="stable")]
    good = numpy.ones(len(values), dtype=bool)
    good[order[1:]] = values[order[1:]] >= numpy.maximum.accumulate(values[order])[:-1] + by
    return good


def judge_gap(back: Ring, flow: Flow, findings: Findings) -> None:
    """From low to P are rows. A flush had to pass each entry that stays there in the back ring: a process had it, it
    was not due, or it waits for a taker. A flush passes no claim."""
    use = back.use
    place = numpy.where(use.state == CLAIMED, use.at_lap, back.places)
    among = (place >= flow.low) & (place < flow.place)
    tell(back, findings, "flow.gap", among & (use.state == CLAIMED), f"claimed, and P is {flow.place}")
    untouched = (use.state == AVAILABLE) & (use.tag == 0) & (use.flags & REDELIVERED == 0)
    untouched &= use.props & (NOT_BEFORE | INTENT | IMMEDIATE) == 0
    text = f"nobody has had it, and rows are [{flow.low}, {flow.place})"
    tell(back, findings, "flow.gap", among & untouched, text)
