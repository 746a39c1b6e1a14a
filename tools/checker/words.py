"""The words that are made of bit fields, as docs/memory-layout.md draws them. Numbers or numpy arrays alike."""

from typing import Final

# Slot states.
FREE: Final = 0
CLAIMED: Final = 1
PENDING: Final = 2
AVAILABLE: Final = 3
HELD: Final = 4
OFFERED: Final = 5
ACQUIRED: Final = 6
LOCKED: Final = 7
DEQUEUED: Final = 8
QUARANTINED: Final = 9
BROKEN: Final = 10
MOVING: Final = 11
STATE_NAMES: Final = {
    FREE: "FREE",
    CLAIMED: "CLAIMED",
    PENDING: "PENDING",
    AVAILABLE: "AVAILABLE",
    HELD: "HELD",
    OFFERED: "OFFERED",
    ACQUIRED: "ACQUIRED",
    LOCKED: "LOCKED",
    DEQUEUED: "DEQUEUED",
    QUARANTINED: "QUARANTINED",
    BROKEN: "BROKEN",
    MOVING: "MOVING",
}

# Flags of a slot word, and its owner's kind.
CARRIED: Final = 1
REDELIVERED: Final = 2
WAITS: Final = 4  # of MOVING: it was HELD
PROCESS_OWNER: Final = 0x1000
DEATH_COUNTED: Final = 0x8000

# Bits of a slot's props: which fields of its cold record say something.
EXPIRES: Final = 1 << 4
NOT_BEFORE: Final = 1 << 5
IN_GROUP: Final = 1 << 6
INTENT: Final = 1 << 7
IMMEDIATE: Final = 1 << 8
FETCHED: Final = 1 << 9  # in a front ring: before what lies below it on disk
NEXT: Final = 1 << 10  # fetched, and no earlier one of its group was on disk
WAITED: Final = 1 << 11  # fetched from among the waiting rows
RECORDED: Final = EXPIRES | NOT_BEFORE | IN_GROUP | INTENT | IMMEDIATE | FETCHED | NEXT | WAITED

# Rows of processes and consumers.
ROW_FREE: Final = 0
ROW_ATTACHING: Final = 1
ROW_LIVE: Final = 2
ROW_CLOSING: Final = 3
ROW_REAPING: Final = 4

# Directory entries.
ENTRY_FREE: Final = 0
ENTRY_LIVE: Final = 1
ENTRY_DELETED: Final = 2
QUEUE_LIVE: Final = 1
QUEUE_DELETED: Final = 2

# Kinds of granules; what of their memory was reserved: all, so many pieces of 4 KiB, the headers of a slab.
GRANULE_FREE: Final = 0
GRANULE_PAGES: Final = 1
GRANULE_RING: Final = 2
GRANULE_SLAB: Final = 3
GRANULE_INSIDE: Final = 4
RESERVED: Final = 1 << 8
HEADERS: Final = 1 << 9
BEGUN_SHIFT: Final = 10
BEGUN: Final = 15 << BEGUN_SHIFT
LAID_ALL: Final = (1 << 64) - 1

# States of blocks.
BLOCK_NONE: Final = 0
BLOCK_FREE: Final = 1
BLOCK_BUILDING: Final = 2
BLOCK_SHARED: Final = 3
BLOCK_RETIRED: Final = 4
ENTRY_BITS: Final = 0x00FFFFFF
VIEW_SHIFT: Final = 24
VIEW_BITS: Final = 8

# Kinds of rings; how many places a mover takes in one turn.
BACK: Final = 0
FRONT: Final = 1
FLOWED: Final = 1
TURN: Final = 1024

TENTATIVE: Final = 255  # view of a pin that is being taken

POSITION_BITS: Final = 44
POSITION_MASK: Final = (1 << POSITION_BITS) - 1
EPOCH_MASK: Final = (1 << 20) - 1

# Of the two words of a group: owner, generation and suspect from below; the level of what was refused, above the
# position.
OWNER_BITS: Final = 13
SUSPECT_BIT: Final = 39
DEPTH_BITS: Final = 4


def state_name(state: int) -> str:
    return STATE_NAMES.get(state, f"state {state}")


def slot_text(word: int) -> str:
    """A slot word as people read it."""
    owner = word >> 8 & 0x1FFF
    kind = "process" if owner & PROCESS_OWNER else "consumer"
    text = f"{state_name(word & 15)} lap {word >> 32} tag {word >> 21 & 0x7FF}"
    text += f" {kind} {owner & 0xFFF}" if owner else ""
    flags = word >> 4 & 15
    return text + (" C" if flags & CARRIED else "") + (" R" if flags & REDELIVERED else "") + f" (0x{word:016x})"


def row_state(word: int) -> int:
    return word & 0xFF


def row_inner(word: int) -> int:
    return word >> 8 & 0xFFFFFF


def row_generation(word: int) -> int:
    return word >> 32


def name_hash(name: bytes) -> int:
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in name:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value
