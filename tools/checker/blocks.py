"""Rules for blocks, which hold at any moment: words against states, references against the slots that name them."""

from dataclasses import dataclass

import numpy

from checker.image import Image, Slab
from checker.ring import Ring
from checker.violation import Findings
from checker.words import (
    BLOCK_BUILDING,
    BLOCK_FREE,
    BLOCK_NONE,
    BLOCK_RETIRED,
    BLOCK_SHARED,
    DEQUEUED,
    ENTRY_BITS,
    ENTRY_DELETED,
    ROW_FREE,
)

FIRST_ENTRY = 1  # the only reference bit that puts take


@dataclass(frozen=True)
class Name:
    """A slot that names a block."""

    where: str
    offset: int
    generation: int
    bit: int
    length: int
    is_dropped: bool  # the reference may be gone already


def names_of(ring: Ring) -> list[Name]:
    if ring.is_unused:
        return []
    use = ring.use
    named = use.is_named & (use.body != 0)
    found = []
    for i in numpy.flatnonzero(named).tolist():
        body, head = int(use.body[i]), int(use.headers_len[i])
        found.append(
            Name(
                where=ring.where(int(use.slots[i])),
                offset=(body & (1 << 40) - 1) << 6,
                generation=int(use.body_gen[i]),
                bit=body >> 40 & 0xFF,
                length=-(-head // 64) * 64 + int(use.body_len[i]),
                is_dropped=int(use.state[i]) == DEQUEUED or bool(use.is_row[i]) or ring.entry.state == ENTRY_DELETED,
            )
        )
    return found


def judge_blocks(image: Image, rings: list[Ring], findings: Findings) -> None:
    references: dict[tuple[int, int], int] = {}
    for name in (name for ring in rings for name in names_of(ring)):
        judge_name(image, name, references, findings)
    for slab in image.slabs.values():
        judge_slab(image, slab, references, findings)


def judge_name(image: Image, name: Name, references: dict[tuple[int, int], int], findings: Findings) -> None:
    place = image.block_at(name.offset)
    if place is None:
        findings.add("message.block", name.where, f"no block begins at 0x{name.offset:x}")
        return
    slab, index = place
    fits = name.length <= slab.size
    findings.expect(fits, "message.length", name.where, f"{name.length} bytes in a block of {slab.size}")
    bits = references.get((name.offset, name.generation), 0)
    if bits >> name.bit & 1 and not name.is_dropped:
        findings.add("block.twice", name.where, f"a reference of 0x{name.offset:x} that another slot names, too")
    references[name.offset, name.generation] = bits | 1 << name.bit
    word, state = int(slab.words[index]), int(slab.states[index])
    there = word >> 32 == name.generation and word >> name.bit & 1
    if not there and not name.is_dropped:
        text = f"generation {name.generation} of 0x{name.offset:x}, whose word is 0x{word:016x}, state 0x{state:016x}"
        findings.add("block.gone", name.where, text)


def judge_slab(image: Image, slab: Slab, references: dict[tuple[int, int], int], findings: Findings) -> None:
    words, states = slab.words[: slab.blocks], slab.states[: slab.blocks]
    if (slab.states[slab.blocks :] & 0xFF != BLOCK_NONE).any():
        findings.add("block.state", f"slab at granule {slab.granule}", "blocks beyond its last one are in use")
    kind, row = states & 0xFF, states >> numpy.uint64(8) & 0xFFFF
    gen, word_gen = states >> numpy.uint64(32), words >> numpy.uint64(32)
    bits = words & 0xFFFFFFFF
    building, shared = kind == BLOCK_BUILDING, kind == BLOCK_SHARED
    free = (kind == BLOCK_FREE) | (kind == BLOCK_RETIRED)
    freeing = (building | shared) & (word_gen == gen + 1) & (bits == 0)
    wrong = ~(building | shared | free)
    wrong |= states >> numpy.uint64(24) & 0xFF != slab.size_class
    wrong |= ~building & (row != 0)
    tell(slab, wrong, "block.state", "no state of this slab", findings)
    tell(slab, free & (bits != 0), "block.free", "FREE with references", findings)
    tell(slab, ~wrong & (word_gen != gen) & ~freeing, "block.generation", "word and state disagree", findings)
    tell(slab, bits & (ENTRY_BITS & ~FIRST_ENTRY) != 0, "block.bits", "a reference that no put takes", findings)
    tell(slab, shared & (bits == 0) & ~freeing, "block.shared", "SHARED without a reference", findings)
    for index in numpy.flatnonzero(building & ~wrong).tolist():
        owner = int(row[index])
        used = owner < image.process_high and image.processes[owner].state != ROW_FREE
        where = f"block 0x{slab.offset_of(index):x}"
        findings.expect(used, "block.owner", where, f"BUILDING of process row {owner}, which is in nobody's use")
    for index in numpy.flatnonzero(shared & (bits & ENTRY_BITS != 0)).tolist():
        named = references.get((slab.offset_of(index), int(word_gen[index])), 0)
        unnamed = int(bits[index]) & ENTRY_BITS & ~named
        where = f"block 0x{slab.offset_of(index):x}"
        findings.expect(unnamed == 0, "block.unnamed", where, f"reference bits 0x{unnamed:x} that no slot names")


def tell(slab: Slab, wrong: numpy.typing.NDArray[numpy.bool_], rule: str, why: str, findings: Findings) -> None:
    if wrong.any():
        for index in numpy.flatnonzero(wrong).tolist():
            text = f"word 0x{int(slab.words[index]):016x}, state 0x{int(slab.states[index]):016x}: {why}"
            findings.add(rule, f"block 0x{slab.offset_of(index):x}", text)
