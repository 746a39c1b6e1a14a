"""Rules for the queue directory and each queue's page, which hold at any moment."""

from functools import lru_cache

from checker.image import Entry, Image
from checker.layout import DIRECTORY, QUEUE
from checker.queue import Queue, levels_fault, queue_of
from checker.violation import Findings
from checker.words import ENTRY_DELETED, ENTRY_LIVE, QUEUE_DELETED, QUEUE_LIVE, name_hash

hash_of = lru_cache(maxsize=8192)(name_hash)


def judge_directory(image: Image, findings: Findings) -> list[Queue]:
    """Answers the queues whose rings' places and geometry make sense: the other rules are about them."""
    queues = []
    names: dict[bytes, int] = {}
    for entry in image.entries:
        where = f"directory entry {entry.index}"
        good = entry.state <= ENTRY_DELETED and entry.word >> 8 & 0xFFFFFF == 0
        findings.expect(good, "directory.word", where, f"0x{entry.word:016x}")
        if not findings.expect(image.is_page(entry.page), "directory.page", where, f"0x{entry.page:x} is no page"):
            continue
        name = judge_page(image, findings, entry, where)
        in_service = image.u32(entry.page + QUEUE["state"]) == QUEUE_LIVE
        if name is not None and entry.state == ENTRY_LIVE and in_service:
            other = names.setdefault(name, entry.index)
            findings.expect(other == entry.index, "directory.twice", where, f"{name!r} is entry {other}, too")
        fault = levels_fault(image, entry.page)
        if findings.expect(fault is None, "ring.geometry", where, fault or ""):
            queues.append(queue_of(image, entry))
    return queues


def judge_page(image: Image, findings: Findings, entry: Entry, where: str) -> bytes | None:
    page = entry.page
    index, incarnation = image.u32(page + QUEUE["index"]), image.u32(page + QUEUE["incarnation"])
    findings.expect(
        (index, incarnation) == (entry.index, entry.incarnation),
        "directory.page",
        where,
        f"incarnation {entry.incarnation}; its page says entry {index}, incarnation {incarnation}",
    )
    state = image.u32(page + QUEUE["state"])
    # The page says first that the queue is deleted; the entry follows when no message of it is in hand any more.
    states = (QUEUE_LIVE, QUEUE_DELETED) if entry.state == ENTRY_LIVE else (QUEUE_DELETED,)
    findings.expect(state in states, "queue.state", where, f"state {state} of a page, its entry has {entry.state}")
    shut = image.u32(page + QUEUE["shut_down"])
    findings.expect(shut <= 2, "queue.shut_down", where, f"shut down: {shut}")
    groups = image.u32(page + QUEUE["chunk_count"])
    findings.expect(groups <= 16, "consumer.groups", where, f"{groups} groups of consumer rows")
    length = image.u32(page + QUEUE["name_len"])
    if not findings.expect(1 <= length <= 200, "directory.name", where, f"a name of {length} bytes"):
        return None
    name = image.raw(page + QUEUE["name"], length)
    hashed = image.u64(entry.offset + DIRECTORY["name_hash"])
    findings.expect(hashed == hash_of(name), "directory.name", where, f"{name!r} does not have the hash 0x{hashed:x}")
    return name
