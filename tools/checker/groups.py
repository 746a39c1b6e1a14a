"""Groups of messages: who has one, and who was refused one, against the slots and the rows."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy

from checker.consumers import Consumers
from checker.layout import COLD, CONSUMER_ROWS, GROUP, GROUPS, GROUPS_MORE, PROCESS_ROWS, QUEUE, SETTINGS
from checker.queue import Queue
from checker.ring import Numbers, Ring
from checker.slots import tell
from checker.violation import Findings
from checker.words import (
    ACQUIRED,
    DEPTH_BITS,
    IN_GROUP,
    LOCKED,
    OWNER_BITS,
    POSITION_BITS,
    POSITION_MASK,
    PROCESS_OWNER,
    SUSPECT_BIT,
)

NONE, SHARED, STICKY = range(3)


@dataclass(frozen=True)
class Words:
    """The two words of one place; `number` is what a cold record says of it."""

    number: int
    owner: int
    refused: int

    @property
    def row(self) -> int:
        return self.owner & ((1 << OWNER_BITS) - 1)

    @property
    def generation(self) -> int:
        return self.owner >> OWNER_BITS & ((1 << (SUSPECT_BIT - OWNER_BITS)) - 1)

    @property
    def depth(self) -> int:
        """-1: nobody was refused."""
        return (self.refused >> POSITION_BITS & ((1 << DEPTH_BITS) - 1)) - 1


def grouping_of(queue: Queue) -> int:
    return queue.image.u32(queue.page + QUEUE["settings"] + SETTINGS["grouping"])


def most_groups(queue: Queue) -> int:
    return GROUPS + min(queue.rings[0].geometry.count, GROUPS_MORE)


def places_of(queue: Queue) -> list[int]:
    """Where the words of each place are: 256 in the page, others in cold records of the first ring."""
    table, cold = queue.page + QUEUE["group_table"], queue.rings[0].geometry.cold
    recorded = range(cold + COLD["ordinal"], cold + (most_groups(queue) - GROUPS) * COLD.bytes, COLD.bytes)
    return [*range(table, table + GROUPS * GROUP.bytes, GROUP.bytes), *(recorded if cold != 0 else ())]


def table_of(queue: Queue) -> Iterator[Words]:
    """Those that were ever used."""
    image, at = queue.image, numpy.array(places_of(queue)) >> 3
    for index in (image.longs[at] | image.longs[at + 1]).nonzero()[0].tolist():
        yield Words(index + 1, int(image.longs[at[index]]), int(image.longs[at[index] + 1]))


def groups_of(ring: Ring) -> Numbers:
    """For each slot in use what its record says; 0: it is in no group."""
    use = ring.use
    found = numpy.zeros(len(use.slots), dtype=numpy.int64)
    if ring.geometry.cold != 0:
        for i in (use.is_named & (use.props & IN_GROUP != 0)).nonzero()[0].tolist():
            found[i] = ring.image.u64(ring.geometry.cold + int(use.slots[i]) * COLD.bytes + COLD["group"])
    return found


def judge_groups(queue: Queue, findings: Findings) -> None:
    where, grouping = queue.title, grouping_of(queue)
    findings.expect(grouping <= STICKY, "group.kind", where, f"groups of kind {grouping}")
    words = {found.number: found for found in table_of(queue)}
    findings.expect(grouping != NONE or not words, "group.table", where, "groups, in a queue that has none")
    for found in words.values():
        here = f"{where} group {found.number}"
        limit = PROCESS_ROWS if found.row & PROCESS_OWNER else CONSUMER_ROWS
        findings.expect(found.row & 0xFFF < limit, "group.row", here, f"owner {found.row:#x}")
        depth = found.depth
        if findings.expect(depth < len(queue.rings), "group.refused", here, f"0x{found.refused:016x}") and depth >= 0:
            beyond = (found.refused - queue.rings[depth].tail) & POSITION_MASK
            text = f"refused at a place that nobody has put anything to: 0x{found.refused:016x}"
            findings.expect(beyond > POSITION_MASK // 2, "group.refused", here, text)
    for ring in queue.rings:
        if ring.is_unused:
            continue
        groups = groups_of(ring)
        if grouping != NONE:
            grouped = ring.use.is_entry & (ring.use.props & IN_GROUP != 0)
            tell(
                ring,
                findings,
                "group.record",
                grouped & ((groups < 1) | (groups > most_groups(queue))),
                "a group there is not",
            )
        judge_holders(ring, groups, words, findings)


def judge_holders(ring: Ring, groups: Numbers, words: dict[int, Words], findings: Findings) -> None:
    """An entry in hand is of a group that is its holder's: owned before, given back after.

    The entry of a stealer or a mover is LOCKED in the name of a process.
    """
    use = ring.use
    rows = numpy.array([words[number].row if number in words else 0 for number in groups.tolist()], dtype=numpy.uint64)
    held = (groups != 0) & ((use.state == ACQUIRED) | ((use.state == LOCKED) & (use.owner < PROCESS_OWNER)))
    tell(ring, findings, "group.holder", held & (use.owner != rows), "in hand, and its group is another's, or free")


def judge_groups_at_rest(consumers: Consumers, live: Collection[int], traces: int, findings: Findings) -> None:
    queue = consumers.queue
    in_flight: set[int] = set()
    idle = []
    for ring in queue.rings:
        if ring.is_unused:
            continue
        taken = (ring.use.state == ACQUIRED) | (ring.use.state == LOCKED)
        in_flight |= set(groups_of(ring)[taken].tolist())
    for found in table_of(queue):
        here = f"{queue.title} group {found.number}"
        if found.row == 0:
            findings.expect(found.depth < 0, "quiet.refused", here, "free, and nobody turns back to what was refused")
            continue
        process = consumers.process_of(found.row)
        known = process is not None and process in live
        findings.expect(known, "quiet.group", here, f"of owner {found.row:#x}, which does not live")
        if grouping_of(queue) == SHARED and found.number not in in_flight:
            idle.append(here)
    # A stealer may have died before it looked whether it had left the owner anything.
    if len(idle) > traces:
        for here in idle:
            findings.add("quiet.idle", here, "its owner has nothing of it in hand")
