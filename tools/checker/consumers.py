"""Rules for consumer rows, their bits, and all owners, which hold at any moment."""

from dataclasses import dataclass, field

import numpy

from checker.image import Image
from checker.layout import CONSUMER, CONSUMER_ROWS, COUNTERS, PROCESS, QUEUE, ROWS_A_CHUNK, SLEEPERS, TARGETS
from checker.queue import Queue
from checker.ring import Ring
from checker.violation import Findings
from checker.words import (
    ACQUIRED,
    ENTRY_LIVE,
    LOCKED,
    PROCESS_OWNER,
    QUEUE_DELETED,
    ROW_CLOSING,
    ROW_FREE,
    ROW_LIVE,
    state_name,
)

GROUPS = CONSUMER_ROWS // ROWS_A_CHUNK
NEWS = 0  # the bit of browse by which consumers of several queues ask for news; no row has it


@dataclass
class Consumers:
    """The consumer rows of one queue."""

    queue: Queue
    used: dict[int, int] = field(default_factory=dict)  # row: its word
    targets: dict[int, int] = field(default_factory=dict)  # row: the word it sleeps on, if not its own
    seated: set[int] = field(default_factory=set)
    idle: set[int] = field(default_factory=set)
    browse: set[int] = field(default_factory=set)

    def process_of(self, owner: int) -> int | None:
        """The process row behind an owner; None: a consumer row that is in nobody's use."""
        if owner & PROCESS_OWNER:
            return owner & 0xFFF
        word = self.used.get(owner)
        return None if word is None else word >> 8 & 0xFFFFFF


def bits_of(word: int, group: int) -> set[int]:
    return {group * ROWS_A_CHUNK + bit for bit in range(64) if word >> bit & 1} if word else set()


def read_consumers(image: Image, queue: Queue, findings: Findings) -> Consumers:
    found = Consumers(queue)
    where = queue.title
    groups = image.u32(queue.page + QUEUE["chunk_count"])
    chunks = image.words_at(queue.page + QUEUE["chunks"], GROUPS)
    bits = image.words_at(queue.page + QUEUE["sleepers"], GROUPS * SLEEPERS.bytes // 8).reshape(GROUPS, -1)
    for group in ((chunks != 0) | bits.any(axis=1)).nonzero()[0].tolist():
        chunk = int(chunks[group])
        idle, browse, used = (int(bits[group, SLEEPERS[name] // 8]) for name in ("idle", "browse", "used"))
        if chunk == 0:
            nothing = idle == browse == used == 0
            findings.expect(nothing, "consumer.chunk", where, f"bits of group {group}, which has no rows")
            continue
        if not findings.expect(image.is_page(chunk), "consumer.chunk", where, f"0x{chunk:x} is no page"):
            continue
        findings.expect(used == 0 or group < groups, "consumer.groups", where, f"rows of group {group} of {groups}")
        found.idle |= bits_of(idle, group)
        found.browse |= bits_of(browse, group) - {NEWS}
        for row in sorted(bits_of(used, group)):
            place = chunk + row % ROWS_A_CHUNK * CONSUMER.bytes
            found.used[row] = image.u64(place)
            found.targets[row] = image.u64(place + CONSUMER["sleeps_on"])
            if image.u32(place + CONSUMER["privileged"]):
                found.seated.add(row)
    return found


def judge_consumers(image: Image, queue: Queue, findings: Findings) -> Consumers:
    found = read_consumers(image, queue, findings)
    if queue.entry.state != ENTRY_LIVE:
        return found  # out of service: nobody repairs what was left in it, and its memory goes as a whole
    where = queue.title
    findings.expect(0 not in found.used, "consumer.bits", where, "row 0, which is never used, is in use")
    for row in sorted((found.idle | found.browse) - set(found.used)):
        findings.add("consumer.bits", where, f"row {row} sleeps, and is in nobody's use")
    for row, word in found.used.items():
        process = word >> 8 & 0xFFFFFF
        good = word & 0xFF in (ROW_LIVE, ROW_CLOSING) and is_in_use(image, process)
        if findings.expect(good, "consumer.word", where, f"row {row} in use, and its word is 0x{word:016x}"):
            attached = image.is_attached(process, queue.entry.index, queue.entry.incarnation)
            text = f"row {row} of process {process}, which does not say that it uses the queue"
            findings.expect(attached, "consumer.attached", where, text)
            target = found.targets[row]
            shared = target == 0 or target in targets_of(image, process)
            text = f"row {row} of process {process} sleeps at 0x{target:x}, which is no wake word of it"
            findings.expect(shared, "consumer.target", where, text)
    for ring in queue.rings:
        if not ring.is_unused:
            judge_owners(image, found, ring, findings)
    judge_waiters(image, queue, findings)
    return found


def targets_of(image: Image, row: int) -> range:
    """Where the words lie on which a process waits for several queues."""
    start = image.processes[row].offset + PROCESS["wake_words"]
    return range(start, start + 4 * TARGETS, 4)


def is_in_use(image: Image, row: int) -> bool:
    return row < image.process_high and image.processes[row].state != ROW_FREE


def judge_owners(image: Image, consumers: Consumers, ring: Ring, findings: Findings) -> None:
    """A row is not given back while a word names it. A reaper looks for such words where the row is attached, and in
    queues that are deleted: those are emptied by whoever is about.
    """
    use = ring.use
    owned = use.owner != 0
    if not numpy.count_nonzero(owned):
        return
    is_deleted = image.u32(ring.page + QUEUE["state"]) == QUEUE_DELETED
    for owner in numpy.unique(use.owner[owned]).tolist():
        first = int(use.slots[(use.owner == owner).argmax()])
        where = f"{ring.where(first)}, {state_name(int(ring.state[first]))}"
        process = consumers.process_of(owner)
        if process is None:
            findings.add("owner.row", where, f"consumer row {owner}, which is in nobody's use")
        elif not is_in_use(image, process):
            findings.add("owner.row", where, f"process row {process}, which is in nobody's use")
        elif not is_deleted and not image.is_attached(process, ring.entry.index, ring.entry.incarnation):
            findings.add("owner.attached", where, f"process row {process}, which does not say that it uses the queue")


def count_held(consumers: Consumers, held: dict[int, int]) -> None:
    """Adds the messages that each process has in hand on this queue."""
    for ring in consumers.queue.rings:
        if not ring.is_unused:
            count_held_in(ring, consumers, held)


def count_held_in(ring: Ring, consumers: Consumers, held: dict[int, int]) -> None:
    use = ring.use
    taken = (use.state == ACQUIRED) | (use.state == LOCKED)
    if not numpy.count_nonzero(taken):
        return
    owners, counts = numpy.unique(use.owner[taken], return_counts=True)
    for owner, count in zip(owners.tolist(), counts.tolist(), strict=True):
        process = consumers.process_of(owner)
        if process is not None:
            held[process] = held.get(process, 0) + count


def judge_held(image: Image, held: dict[int, int], findings: Findings) -> None:
    """Raised before something is taken, lowered after it is gone: never too low, or no watcher looks after it."""
    for row, count in held.items():
        if row < image.process_high:
            said = image.u32(image.processes[row].offset + PROCESS["unsettled"])
            text = f"has {count} messages in hand, says {said}"
            findings.expect(said >= count, "process.held", f"process row {row}", text)


def waiting_lines(image: Image, queue: Queue) -> int:
    """Blocked producers of this queue by what their processes say."""
    total = 0
    for process in image.processes:
        line = image.line(process, queue.entry.index)
        if line is not None and image.u64(line + COUNTERS["attached"]) == queue.entry.incarnation + 1:
            total += image.u32(line + COUNTERS["waiting"])
    return total


def judge_waiters(image: Image, queue: Queue, findings: Findings) -> None:
    """The sum is raised before the part, and lowered after it."""
    lines = waiting_lines(image, queue)
    text = f"{queue.waiters} blocked producers, their lines say {lines}"
    findings.expect(queue.waiters >= lines, "ring.waiters", queue.title, text)
