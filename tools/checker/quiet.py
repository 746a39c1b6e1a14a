"""Rules that hold besides when nobody is inside an operation, and every dead process has been reaped.

Some words may be off for ever after a death, as the protocol pages say. Each death, and each thread of the dead, leaves
one such trace at the most; `Slack` says how many there may be.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy

from checker.blocks import names_of
from checker.consumers import Consumers, waiting_lines
from checker.groups import judge_groups_at_rest
from checker.image import Image, Slab
from checker.layout import COUNTERS, PROCESS, QUEUE, RING, SEGMENT, SETTINGS
from checker.limits import measures
from checker.line import line_of
from checker.processes import pins_of
from checker.queue import Queue, rings_of
from checker.ring import Mask, Ring
from checker.slots import epoch_lead, is_behind, is_given_back, tell
from checker.violation import Findings
from checker.words import (
    AVAILABLE,
    BLOCK_BUILDING,
    BLOCK_FREE,
    BLOCK_RETIRED,
    BLOCK_SHARED,
    CLAIMED,
    DEQUEUED,
    ENTRY_LIVE,
    HELD,
    OFFERED,
    PENDING,
    QUARANTINED,
    QUEUE_DELETED,
    ROW_FREE,
    ROW_LIVE,
    TENTATIVE,
    VIEW_SHIFT,
)

UNFINISHED = numpy.isin(numpy.arange(16), [CLAIMED, PENDING, OFFERED, DEQUEUED, QUARANTINED])


@dataclass
class Slack:
    """How many traces of the dead there may be."""

    deaths: int
    threads: int

    @property
    def most(self) -> int:
        return self.deaths * self.threads


def judge_rest(
    image: Image,
    queues: list[Queue],
    consumers: list[Consumers],
    held: dict[int, int],
    live: Collection[int],
    slack: Slack,
    findings: Findings,
) -> None:
    dirty = image.u64(SEGMENT["dirty"])
    findings.expect(dirty == 0, "quiet.dirty", "header", f"0x{dirty:x}: somebody died in the structure lock")
    judge_rows(image, live, held, findings)
    judge_seats(image, consumers, findings)
    judge_memory_waiters(image, findings)
    judge_watch(image, live, findings)
    for queue in queues:
        judge_page(image, queue, live, findings)
    for crowd in consumers:
        if crowd.queue.entry.state == ENTRY_LIVE:
            judge_queue(image, crowd, live, slack, findings)
            judge_groups_at_rest(crowd, live, slack.most, findings)
    judge_blocks(image, rings_of(queues), live, slack, findings)


def judge_rows(image: Image, live: Collection[int], held: dict[int, int], findings: Findings) -> None:
    for row in sorted(set(live) - {process.row for process in image.processes}):
        findings.add("quiet.row", f"process row {row}", "alive, and was never used")
    for process in image.processes:
        where = f"process row {process.row}"
        state, wanted = process.state, ROW_LIVE if process.row in live else ROW_FREE
        findings.expect(state == wanted, "quiet.row", where, f"state {state}, not {wanted}")
        said, has = image.u32(process.offset + PROCESS["unsettled"]), held.get(process.row, 0)
        findings.expect(said == has, "quiet.held", where, f"has {has} messages in hand, says {said}")
        for pin in pins_of(image, process):
            good = process.row in live and pin.view != TENTATIVE
            findings.expect(good, "quiet.pin", pin.where, f"0x{pin.cell:016x}")
        for entry in image.entries:
            line = image.line(process, entry.index)
            if line is None:
                continue
            moving = image.u32(line + COUNTERS["moving"])
            findings.expect(moving == 0, "quiet.moving", where, f"{moving} on the way on queue {entry.index}")
            changing = image.u32(line + COUNTERS["changing"])
            findings.expect(changing == 0, "quiet.changing", where, f"{changing} join or leave queue {entry.index}")
            if process.row not in live:
                left = image.u64(line + COUNTERS["attached"]) or image.u32(line + COUNTERS["waiting"])
                findings.expect(not left, "quiet.line", where, f"FREE, and uses queue {entry.index}")


def judge_seats(image: Image, consumers: list[Consumers], findings: Findings) -> None:
    """The count is never too low, or the watch does not look after a process for which others wait. Privileges without
    a consumer stand in a process's own memory, and count, too."""
    crowds = [crowd for crowd in consumers if crowd.queue.entry.state == ENTRY_LIVE]
    owners = [crowd.process_of(row) for crowd in crowds for row in crowd.seated]
    for process in image.processes:
        said, has = image.u32(process.offset + PROCESS["privileges"]), owners.count(process.row)
        text = f"{has} of its consumers have a privilege, says {said}"
        findings.expect(said >= has, "quiet.privileges", f"process row {process.row}", text)


def judge_memory_waiters(image: Image, findings: Findings) -> None:
    waiters = image.u32(SEGMENT["memory_waiters"])
    said = sum(image.u32(process.offset + PROCESS["memory_waiting"]) for process in image.processes)
    text = f"{waiters} wait for memory, the rows say {said}"
    findings.expect(waiters == said, "quiet.memory_waiters", "header", text)


def judge_watch(image: Image, live: Collection[int], findings: Findings) -> None:
    for place in range(2):
        word = image.u64(SEGMENT["watch"] + 8 * place)
        row = (word & 0xFFFF) - 1
        known = word == 0 or (row in live and image.processes[row].generation == word >> 32)
        findings.expect(known, "quiet.watch", f"watch[{place}]", f"0x{word:x} names nobody who lives")


def judge_page(image: Image, queue: Queue, live: Collection[int], findings: Findings) -> None:
    where = queue.title
    if image.u32(queue.page + QUEUE["state"]) == QUEUE_DELETED:
        judge_ending(image, queue, findings)
    elif image.u32(queue.page + QUEUE["temporary"]):
        row = image.u32(queue.page + QUEUE["temporary_row"])
        generation = image.u32(queue.page + QUEUE["temporary_generation"])
        there = row in live and image.processes[row].generation == generation
        findings.expect(there, "quiet.temporary", where, f"should have gone with process row {row}")


def judge_ending(image: Image, queue: Queue, findings: Findings) -> None:
    """Deleted: what nobody has in hand goes at once, or waits for its burial; then somebody is to look."""
    loose = sum(int(numpy.isin(ring.use.state, [AVAILABLE, HELD, OFFERED]).sum()) for ring in queue.rings)
    if queue.entry.state == ENTRY_LIVE and loose:
        letters = image.u64(queue.page + QUEUE["settings"] + SETTINGS["dead_letter"]) & 0xFFFFFFFF
        known = letters != 0 and image.u64(SEGMENT["due"]) != 0
        findings.expect(known, "quiet.deleted", queue.title, f"{loose} messages that nobody has in hand are left")


def judge_queue(image: Image, consumers: Consumers, live: Collection[int], slack: Slack, findings: Findings) -> None:
    queue = consumers.queue
    where = queue.title
    for row, word in consumers.used.items():
        process = word >> 8 & 0xFFFFFF
        findings.expect(process in live, "quiet.consumer", where, f"row {row} is process {process}'s, which is dead")
    for ring in queue.rings:
        judge_slots(ring, consumers, live, slack, findings)
    for back in queue.backs:
        known = back.rows_due == 0 or image.u64(SEGMENT["due"]) != 0
        findings.expect(known, "quiet.due", back.title, "messages expire on disk, and nobody is to look")
        due = min(image.u64(back.at + RING["waiting_due"]), image.u64(SEGMENT["due"]))
        known = back.flow.waiting_rows == 0 or due != 0
        findings.expect(known, "quiet.due", back.title, "messages wait on disk, and nobody is to look")
    turn = f"unfinished {queue.flow.unfinished}, missed {queue.flow.missed}, and {slack.deaths} processes died"
    findings.expect(slack.deaths or not (queue.flow.is_amid or queue.flow.missed), "quiet.mover", where, turn)
    waiting, tickets = waiting_lines(image, queue), len(line_of(queue).held)
    findings.expect(tickets <= waiting, "quiet.tickets", where, f"{tickets} tickets are held, {waiting} wait for room")
    sure = image.u32(queue.page + QUEUE["recount_due"]) == 0
    for one in measures(queue) if sure else []:
        text = f"{one.said} by the word of {one.option}, {one.found} found"
        findings.expect(one.said == one.found, one.exactly, where, text)
    lines = waiting_lines(image, queue)
    text = f"{queue.waiters} blocked producers, their lines say {lines}"
    findings.expect(queue.waiters == lines, "quiet.waiters", where, text)


def judge_slots(ring: Ring, consumers: Consumers, live: Collection[int], slack: Slack, findings: Findings) -> None:
    lead = epoch_lead(ring)
    text = f"{lead} releases turned the head and did not raise the epoch, {slack.deaths} processes died"
    findings.expect(lead <= slack.most, "quiet.epoch", ring.title, text)
    if ring.is_unused:
        return
    image, where, use = ring.image, ring.title, ring.use
    tell(ring, findings, "quiet.slot", UNFINISHED[use.state], "nobody is at work on it")
    for owner in numpy.unique(use.owner[use.owner != 0]).tolist():
        process = consumers.process_of(owner)
        known = process is not None and process in live
        findings.expect(known, "quiet.owner", where, f"process row {process} owns messages, and does not live")
    forgotten = (use.state == HELD) & ((ring.due == 0) or (image.u64(SEGMENT["due"]) == 0))
    tell(ring, findings, "quiet.due", forgotten, "held, and no due word says that anybody is to look")
    stranded = use.state == AVAILABLE
    position = use.position.astype(numpy.int64)
    stranded &= is_behind(ring, position) & ~is_given_back(ring, position)
    tell(ring, findings, "quiet.stranded", stranded, f"no scan meets it: they begin at {ring.head}")


def judge_blocks(image: Image, rings: list[Ring], live: Collection[int], slack: Slack, findings: Findings) -> None:
    if not image.slabs:
        return
    viewed: dict[tuple[int, int], int] = {}
    for process in image.processes:
        for pin in pins_of(image, process):
            if pin.view != TENTATIVE:
                key = pin.offset, pin.generation
                viewed[key] = viewed.get(key, 0) | 1 << (pin.view - 1)
    named = {(name.offset, name.generation) for ring in rings for name in names_of(ring)}
    leaked: list[str] = []
    for slab in image.slabs.values():
        judge_slab(image, slab, named, live, slack, findings)
        leaked += unviewed(slab, viewed)
    if len(leaked) > slack.most:
        for where in leaked:
            findings.add("quiet.view", where, f"view bits that no pin names, and {slack.deaths} processes died")


def unviewed(slab: Slab, viewed: dict[tuple[int, int], int]) -> list[str]:
    """Blocks with view bits that no pin names, one for each bit."""
    found = []
    for index in numpy.flatnonzero((slab.words[: slab.blocks] & 0xFFFFFFFF) >> VIEW_SHIFT).tolist():
        word, offset = int(slab.words[index]), slab.offset_of(index)
        bits = word >> VIEW_SHIFT & 0xFF & ~viewed.get((offset, word >> 32), 0)
        found += [f"block 0x{offset:x}"] * bits.bit_count()
    return found


def judge_slab(
    image: Image,
    slab: Slab,
    named: set[tuple[int, int]],
    live: Collection[int],
    slack: Slack,
    findings: Findings,
) -> None:
    words, states = slab.words[: slab.blocks], slab.states[: slab.blocks]
    kind = states & 0xFF
    in_use: Mask = (kind == BLOCK_BUILDING) | (kind == BLOCK_SHARED)
    for index in numpy.flatnonzero(in_use).tolist():
        word, state, offset = int(words[index]), int(states[index]), slab.offset_of(index)
        where = f"block 0x{offset:x}"
        findings.expect(word & 0xFFFFFFFF, "quiet.freeing", where, "freed by half")
        if state & 0xFF == BLOCK_BUILDING:
            row = state >> 8 & 0xFFFF
            text = f"BUILDING of process row {row}"
            good = row in live and (offset, state >> 32) not in named
            findings.expect(good, "quiet.building", where, text + ": dead, or its message is in a queue")
    retired = numpy.flatnonzero(kind == BLOCK_RETIRED).tolist()
    if retired and slack.deaths == 0:
        findings.add("quiet.retired", f"slab at granule {slab.granule}", f"{len(retired)} RETIRED blocks")
    free = numpy.flatnonzero(kind == BLOCK_FREE)
    if len(free) == 0:
        return
    kept = image.u64(SEGMENT["kept_block"]) & ~1  # no hint leads to the block that is kept for rows
    free = free[[slab.offset_of(index) != kept for index in free.tolist()]]
    if len(free) == 0:
        return
    hinted = slab.free[free >> 6] >> (free & 63).astype(numpy.uint64) & 1
    for index in free[hinted == 0].tolist():
        findings.add("quiet.hint", f"block 0x{slab.offset_of(index):x}", "FREE, and not among the slab's free bits")
    at = image.regions.class_bitmaps + slab.size_class * image.regions.class_bitmap_bytes
    bit = image.u64(at + slab.granule // 64 * 8) >> slab.granule % 64 & 1
    text = f"{len(free)} FREE blocks, and not in the bitmap of its class"
    findings.expect(bit, "quiet.hint", f"slab at granule {slab.granule}", text)
