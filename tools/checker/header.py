"""Rules for the header, which hold at any moment."""

import numpy

from checker.crc32c import crc32c
from checker.granules import reserved_of
from checker.image import Image
from checker.layout import FINGERPRINT_DOCUMENTED, PROCESS, PROCESS_ROWS, QUEUES, SEGMENT, SLAB, TARGETS
from checker.violation import Findings
from checker.words import HEADERS

MAGIC = 0x31514D48530A1A89
CONSTANTS = 1280  # bytes of the header that never change
_known_good: set[bytes] = set()


def judge_header(image: Image, findings: Findings) -> None:
    judge_constants(image, findings)
    judge_marks(image, findings)
    judge_watch(image, findings)
    judge_reserved(image, findings)
    damage = image.u64(SEGMENT["damage"])
    findings.expect(damage == 0, "header.damage", "header", f"{damage} broken words were found by processes")
    state = image.u32(SEGMENT["state"])
    findings.expect(state <= 1, "header.state", "header", f"state {state}")


def judge_constants(image: Image, findings: Findings) -> None:
    """Written before the segment had a name. One that was found good stays good."""
    constants = image.raw(0, CONSTANTS)
    if constants in _known_good:
        return
    before = len(findings.violations)
    regions = image.regions
    expected = {
        "magic": MAGIC,
        "fingerprint": FINGERPRINT_DOCUMENTED,
        "size": image.size,
        "processes": regions.processes,
        "directory": regions.directory,
        "granules": regions.granules,
        "class_bitmaps": regions.class_bitmaps,
        "slabs": regions.slabs,
        "data": regions.data,
    }
    for field, value in expected.items():
        found = image.u64(SEGMENT[field])
        findings.expect(found == value, f"header.{field}", "header", f"0x{found:x}, not 0x{value:x}")
    counts = {
        "version": 8,
        "byte_order": 0x01020304,
        "granule_count": regions.granule_count,
        "process_rows": PROCESS_ROWS,
        "queue_count": QUEUES,
    }
    for field, value in counts.items():
        found = image.u32(SEGMENT[field])
        findings.expect(found == value, f"header.{field}", "header", f"{found}, not {value}")
    at = SEGMENT["header_crc"]
    found, wanted = image.u32(at), crc32c(constants[:at] + constants[SEGMENT["processes"] :])
    findings.expect(found == wanted, "header.crc", "header", f"0x{found:08x}, its bytes have 0x{wanted:08x}")
    if len(findings.violations) == before:
        _known_good.add(constants)


def judge_marks(image: Image, findings: Findings) -> None:
    """Nothing above the high marks was ever used."""
    rows, entries = image.u32(SEGMENT["process_high"]), image.u32(SEGMENT["queue_high"])
    if findings.expect(rows <= PROCESS_ROWS, "header.process_high", "header", f"{rows} rows"):
        stride = PROCESS.bytes // 8
        words = image.words_at(image.regions.processes, PROCESS_ROWS * stride)[::stride]
        above = numpy.count_nonzero(words[rows:])
        findings.expect(above == 0, "header.process_high", "header", f"a row above {rows} was used")
    if findings.expect(entries <= QUEUES, "header.queue_high", "header", f"{entries} entries"):
        above = numpy.count_nonzero(image.words_at(image.regions.directory, QUEUES * 8)[::8][entries:])
        findings.expect(above == 0, "header.queue_high", "header", f"an entry above {entries} was used")
    slabs, all_granules = image.u32(SEGMENT["slab_high"]), image.regions.granule_count
    if findings.expect(slabs <= all_granules, "header.slab_high", "header", f"{slabs} granules of {all_granules}"):
        above = numpy.count_nonzero(image.granule_words[slabs:] & HEADERS)
        findings.expect(above == 0, "header.slab_high", "header", f"a slab above granule {slabs} was made")


def is_target(image: Image, offset: int) -> bool:
    """Is it one of the words on which a process waits for several queues?"""
    row, within = divmod(offset - image.regions.processes, PROCESS.bytes)
    place = within - PROCESS["wake_words"]
    return 0 <= row < PROCESS_ROWS and 0 <= place < 4 * TARGETS and place % 4 == 0


def judge_watch(image: Image, findings: Findings) -> None:
    for place in range(2):
        word = image.u64(SEGMENT["watch"] + 8 * place)
        row = (word & 0xFFFF) - 1
        plausible = word == 0 or (0 <= row < image.process_high and word >> 17 & 0x7FFF == 0)
        findings.expect(plausible, "watch.word", f"watch[{place}]", f"0x{word:x}")
    for field, count in (("watch_wake", 2), ("volunteers", 10)):
        for i, offset in enumerate(image.words_at(SEGMENT[field], count).tolist()):
            # A producer that waits for memory sleeps on a word of the header; a consumer of several queues on one of
            # its process row.
            if field == "volunteers" and offset != 0:
                row, offset = (offset >> 48) - 1, offset & (1 << 48) - 1
                findings.expect(0 <= row < image.process_high, "watch.wake", f"{field}[{i}]", f"of process row {row}")
            good = offset in (0, SEGMENT["memory_full"]) or image.holds(offset, 4, 4) or is_target(image, offset)
            findings.expect(good, "watch.wake", f"{field}[{i}]", f"0x{offset:x} is no wake word")


def judge_reserved(image: Image, findings: Findings) -> None:
    """Reserved first, then counted, then noted: never less counted than noted."""
    words = image.granule_words
    noted = int(reserved_of(words).sum()) + int((words & HEADERS != 0).sum()) * SLAB.bytes
    counted = image.u64(SEGMENT["reserved_bytes"])
    least = image.regions.slabs + noted
    memory = image.u64(SEGMENT["memory"])
    findings.expect(counted >= least, "header.reserved", "header", f"{counted} bytes counted, {least} noted")
    findings.expect(counted <= memory <= image.size, "header.memory", "header", f"{counted} bytes of {memory}")
