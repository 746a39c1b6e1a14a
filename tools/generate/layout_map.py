"""Draws the bytes of the shared segment.

tools/layout_map            writes docs/memory-layout.md and shmq/core/layout.py anew from the C headers
tools/layout_map --print    prints the page
tools/layout_map --check    fails if one of the two files differs from what the headers say
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from generate.shared_structs import FORMATS, NAMELESS, ROOT, Field, SharedLayout, Struct, Unreadable, shared_layout

PAGE: Final = ROOT / "docs" / "memory-layout.md"
MODULE: Final = ROOT / "shmq" / "core" / "layout.py"

HEAD = """\
# Memory layout

Every byte of the shared segment, as the C compiler lays it out. `tools/layout_map` writes this page and
`shmq/core/layout.py` from the headers in `native/src/layout`; a test fails if they differ. The headers say who writes
and who reads each field.

Everything is little endian and made of fixed-width fields. An offset in a field counts from the first byte of the
segment. Words that belong to different writers are 128 bytes apart. A process whose library was compiled with other
numbers computes another fingerprint, and is refused when it attaches.

## Regions

| region | begins at | made of |
| --- | --- | --- |
| header | 0 | one [segment](#segment) |
| process table | `segment.processes` | 1,024 rows: [process](#process) |
| queue directory | `segment.directory` | 4,096 entries: [directory](#directory) |
| granule map | `segment.granules` | a word for each 64 KiB of data |
| class bitmaps | `segment.class_bitmaps` | 43 size classes, a bit for each granule |
| slab table | `segment.slabs` | 4,096 bytes for each granule: [slab](#slab) |
| data | `segment.data` | granules of 64 KiB: rings, slabs, or eight pages of 8 KiB |

A page is a queue's ([queue](#queue)), 64 consumer rows ([consumer](#consumer)), a process's
([process_page](#process_page)) or 64 counter lines ([counters](#counters)).

A queue's run has, in this order:

* 256 tickets of blocked producers ([ticket](#ticket))
* the [ring](#ring) of each level but the first, which is in the page, and those of the front rings
* for each ring a bitmap, and behind it the words of its stretches (`native/src/ring/stretch.h`)
* the [slots](#slot) of the first level

A bitmap has one bit for each slot, the words four bytes for each 1,024 slots; both fill up to a multiple of 64 bytes.
The slots of each other ring begin at the next granule. All levels have slots of one number, 2^shift, and of one size.
The front ring has slots of that size, 2^(shift - 2) of them, but no more than 2^12. It has memory for them, and for
[cold](#cold) records, once its queue has flowed. Only the first level's ring says `run` and `run_granules`. The process
that makes the segment reserves memory for the header and the tables. Parts of the slab table and of the data get theirs
when they are first used.

The size of the segment, a multiple of 64 KiB, alone decides where the regions lie. They lie in this order, each at the
next multiple of 4,096 bytes, the data at the next of 64 KiB. The bitmap of one class has a multiple of 128 bytes. There
are as many granules as fit.

## Numbers

The magic is 0x31514d48530a1a89, the version 8, the byte order 0x01020304. The fingerprint of this layout is
`%s`.

Checksums are CRC-32C. That of the header covers its bytes 0 to 119 and 128 to 1279. That of a message, where its queue
has checksums, covers 32 bytes, then headers and body. The 32 bytes are

* the queue's entry in the directory (4 bytes), its incarnation (4)
* message id (8), enqueued_ns (8)
* length of the body (4), length of the headers (2), content (1), priority (1)

So a message that damage to the map of the memory lays into another queue is no message there. Headers and body lie in
the slot from byte 64 on, one after the other. Or they lie in a block, the headers at its start, the body at the next
multiple of 64. The page [headers.md](headers.md) has the bytes of the headers. A name's hash is FNV-1a with 64 bits.

Blocks have 43 sizes. They begin with 256 bytes, then 1.5 times and twice that, and so on up to 16,384. Then come 21,760
(a third of a granule), 32,768 and 65,536. From there on they are whole granules, 2, 3, 4, 6, 8, 12 to 16,384. A slab of
blocks below a granule is one granule and has as many as fit, 248 at most; any other slab is one block. A block's number
follows from its place: the slab's first byte plus number times size.

## Words

Fields of words, from the lowest bit on. Bits that are not named are 0.

| word | bits |
| --- | --- |
| `slot.word` | state 4, flags 4 (C 1, R 2), owner 13, tag 11, lap 32: [the ring](protocol-ring.md#the-slot-word) |
| `slot.body` | offset of the block / 64: 40, number of the reference bit 8; 0: the body lies in the slot |
| `slot.death_tag` | 0x8000 and the tag of the delivery that was counted last; 0: none |
| `ring.head`, `ring.cells[e %% 64]` | position 44, epoch 20; a cell of epoch e names e, but for those that are 0 |
| `ring.kind` | 0: producers put into it; 1: the front ring |
| `ring.flow` | FLOWED 1, P 63; 0: never flowed: [the flow](protocol-flow.md#rings-rows-words) |
| `queue.count` | count 32, version 32 |
| `queue.line` | number of the ticket after the last 32, of the first that may be held 32 |
| `ticket.word` | state 8 (FREE 0, WAITING, CALLED, PASSED 3), process row 16, 8 unused, lap 32: number / 256 |
| `process.word` | state 8 (FREE 0, ATTACHING, LIVE, CLOSING, REAPING 4), 24 unused, generation 32 |
| `consumer.word` | state 8 (FREE 0, LIVE 2, CLOSING 3), process row 24, generation 32 |
| `directory.word` | state 8 (FREE 0, LIVE, DELETED 2), 24 unused, incarnation 32 |
| `queue.state` | LIVE 1, DELETED 2 |
| `counters.attached` | incarnation + 1 of the queue; 0: none |
| granule | kind 8 (free 0, pages, ring, slab, inside 4), reserved 1, headers 1, 6 unused, pages in use 8, 8 unused, \
run's length 32 |
| `pin.cell` | offset of the block / 64: 40, view bit + 1 (255: being taken) 8, low half of the row's generation 16 |
| `block.word` | entry bits 24 (only bit 0 is used), view bits 8, generation 32 |
| `block.state` | state 8 (NONE 0, FREE, BUILDING, SHARED, RETIRED 4), process row 16, class 8, generation 32 |
| `slab.class_word` | class + 1; 0: no slab begins at this granule |
| `slab.free[]`, class bitmaps | hints: bit b of word b / 64 |
| `segment.watch[]` | process row + 1: 16, mode 2, 14 unused, generation 32 |
"""

MODULE_HEAD = '''\
"""The bytes of the shared segment, for tools that look at a live one with numpy. Written by tools/layout_map.

A view takes part in no protocol and must not write. It shows a moment of each word, not one moment of all.
Only memory that was reserved may be touched: reading a hole of a full /dev/shm ends the process. So look at tables,
and at what they point to.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy

__all__ = ["FINGERPRINT", "STRUCTS", "dtype"]

'''

MODULE_TAIL = '''

@functools.cache
def dtype(name: str) -> numpy.dtype[numpy.void]:
    """The numpy structure of one struct; padding and what later versions will use has no names.

    Example:
        rows = numpy.frombuffer(segment, dtype("process"), count=PROCESS_ROWS, offset=header["processes"])
    """
    import numpy  # when first needed: it takes longer to import than all of shmq

    size, fields = STRUCTS[name]
    formats: list[object] = []
    for _, kind, count, _ in fields:
        element: object = dtype(kind) if kind in STRUCTS else kind
        formats.append((element, (count,)) if count else element)
    return numpy.dtype(
        {
            "names": [field for field, _, _, _ in fields],
            "formats": formats,
            "offsets": [offset for _, _, _, offset in fields],
            "itemsize": size,
        }
    )
'''


def type_of(part: Field) -> str:
    """How a reader thinks of the type: u64, 12 x u64, char[40], 128 x death_record."""
    if part.struct is not None:
        name = f"[{part.struct}](#{part.struct})"
    elif part.type in {"char", NAMELESS}:
        name = f"char[{part.bytes}]" if part.type == "char" else "struct"
        return f"{part.count} x {name}" if part.type == NAMELESS and part.count else name
    else:
        name = FORMATS[part.type].lstrip("<")
        name = f"{name[0]}{int(name[1:]) * 8}"
    return f"{part.count} x {name}" if part.count else name


def rows_of(struct: Struct) -> list[str]:
    """The table of one struct. Bytes between two fields without a name would be a hole that nobody drew."""
    rows, end = [], 0
    for part in struct.fields:
        if part.offset > end:
            raise Unreadable(f"{struct.c_name}: nothing stands at {end} to {part.offset}")
        end = max(end, part.offset + part.bytes)
        note = part.remark.replace("|", "\\\\|")
        rows.append(
            f"| {part.offset} | {part.bytes or ''} | `{part.path}` | {type_of(part)} | {note} |".replace("|  |", "| |")
        )
    return rows


def page(layout: SharedLayout) -> str:
    parts = [HEAD % f"0x{layout.fingerprint:016x}"]
    for struct in layout.structs:
        parts.append(f"\n## {struct.name}\n\n`{struct.c_name}` of `{struct.header}`, {struct.bytes} bytes\n")
        parts.append("| offset | bytes | field | type | remark |\n| ---: | ---: | --- | --- | --- |")
        parts += rows_of(struct)
    return "\n".join(parts).rstrip() + "\n"


def format_of(part: Field) -> tuple[str, int]:
    """Format, or name of a struct, of one element, and the number of elements (0: no array)."""
    if part.struct is not None:
        return part.struct, part.count
    if part.type == "char":
        return f"S{part.bytes}", 0
    return FORMATS[part.type], part.count


def named_fields(struct: Struct) -> list[tuple[str, str, int, int]]:
    """Fields of the numpy structure. Parts of a nameless struct are left out: no tool reads them in this stage."""
    return [
        (part.path, *format_of(part), part.offset)
        for part in struct.fields
        if not part.is_padding and "." not in part.path and part.type != NAMELESS and part.bytes != 0
    ]


def dependencies_first(structs: list[Struct]) -> list[Struct]:
    """A struct after those that it holds, so that a reader meets nothing that he does not know."""
    placed: list[Struct] = []
    waiting = list(structs)
    while waiting:
        known = {struct.name for struct in placed}
        for struct in waiting:
            if all(part.struct is None or part.struct in known for part in struct.fields):
                placed.append(struct)
                waiting.remove(struct)
                break
        else:
            raise Unreadable(f"structs that hold each other: {[struct.name for struct in waiting]}")
    return placed


def module(layout: SharedLayout) -> str:
    lines = [
        MODULE_HEAD,
        f"FINGERPRINT: Final = 0x{layout.fingerprint:016X}  # of the layout that is described here\n\n",
    ]
    lines.append("# name: (bytes, ((field, format or struct, elements or 0, offset), ...))\n")
    lines.append("STRUCTS: Final[dict[str, tuple[int, tuple[tuple[str, str, int, int], ...]]]] = {\n")
    for struct in dependencies_first(layout.structs):
        lines.append(f'    "{struct.name}": (\n        {struct.bytes},\n        (\n')
        for name, kind, count, offset in named_fields(struct):
            lines.append(f'            ("{name}", "{kind}", {count}, {offset}),\n')
        lines.append("        ),\n    ),\n")
    return "".join([*lines, "}\n", MODULE_TAIL])


def outdated(wanted: dict[Path, str]) -> list[Path]:
    return [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]


def main(arguments: Sequence[str]) -> int:
    if arguments not in ([], ["--print"], ["--check"]):
        print(__doc__)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    try:
        layout = shared_layout()
        wanted = {PAGE: page(layout), MODULE: module(layout)}
    except Unreadable as error:
        print(f"layout_map: {error}", file=sys.stderr)
        return 1
    if arguments == ["--print"]:
        print(wanted[PAGE], end="")
        return 0
    stale = outdated(wanted)
    for path in stale:
        if arguments != ["--check"]:
            path.write_text(wanted[path])
        print(f"{path.relative_to(ROOT)}: {'differs from the headers' if arguments else 'written'}")
    if stale and arguments == ["--check"]:
        print("run tools/layout_map, and look at the changes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
