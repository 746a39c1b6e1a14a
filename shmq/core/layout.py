"""The bytes of the shared segment, for tools that look at a live one with numpy. Written by tools/layout_map.

A view takes part in no protocol and must not write. What it shows is a moment of each word, not one moment of all.
Only memory that was reserved may be touched: reading a hole of a full /dev/shm ends the process. So look at tables,
and at what they point to.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy

__all__ = ["FINGERPRINT", "STRUCTS", "dtype"]

FINGERPRINT: Final = 0x4F8D61B2B6800C9E  # of the layout that is described here

# name: (bytes, ((field, format or struct, elements or 0, offset), ...))
STRUCTS: Final[dict[str, tuple[int, tuple[tuple[str, str, int, int], ...]]]] = {
    "death_record": (
        32,
        (
            ("message_id", "<u8", 0, 0),
            ("at_ns", "<u8", 0, 8),
            ("pid", "<u4", 0, 16),
            ("signal", "<i4", 0, 20),
        ),
    ),
    "clock_step": (
        32,
        (
            ("from_ns", "<u8", 0, 0),
            ("offset_ns", "<u8", 0, 8),
            ("asleep_ns", "<u8", 0, 16),
        ),
    ),
    "segment": (
        8192,
        (
            ("magic", "<u8", 0, 0),
            ("version", "<u4", 0, 8),
            ("byte_order", "<u4", 0, 12),
            ("fingerprint", "<u8", 0, 16),
            ("size", "<u8", 0, 24),
            ("boot_id", "u1", 16, 32),
            ("uuid", "u1", 16, 48),
            ("features_required", "<u8", 0, 64),
            ("features", "<u8", 0, 72),
            ("created_ns", "<u8", 0, 80),
            ("patience_ns", "<u8", 0, 88),
            ("granule_count", "<u4", 0, 96),
            ("process_rows", "<u4", 0, 100),
            ("queue_count", "<u4", 0, 104),
            ("uid", "<u4", 0, 108),
            ("anonymous", "<u4", 0, 112),
            ("mode", "<u4", 0, 116),
            ("header_crc", "<u4", 0, 120),
            ("processes", "<u8", 0, 128),
            ("directory", "<u8", 0, 136),
            ("granules", "<u8", 0, 144),
            ("class_bitmaps", "<u8", 0, 152),
            ("slabs", "<u8", 0, 160),
            ("data", "<u8", 0, 168),
            ("clock_offset_ns", "<u8", 0, 176),
            ("directory_device", "<u8", 0, 184),
            ("directory_inode", "<u8", 0, 192),
            ("directory_uuid", "u1", 16, 200),
            ("memory", "<u8", 0, 216),
            ("disk", "<u8", 0, 224),
            ("key_check", "u1", 16, 232),
            ("clock_asleep_ns", "<u8", 0, 248),
            ("path", "S1024", 0, 256),
            ("state", "<u4", 0, 1280),
            ("due", "<u8", 0, 1288),
            ("message_ids", "<u8", 0, 1408),
            ("dirty", "<u8", 0, 1536),
            ("reserved_bytes", "<u8", 0, 1544),
            ("process_high", "<u4", 0, 1552),
            ("queue_high", "<u4", 0, 1556),
            ("turns", "<u8", 0, 1560),
            ("slab_high", "<u4", 0, 1568),
            ("memory_full", "<u4", 0, 1664),
            ("flushes", "<u4", 0, 1668),
            ("memory_waiters", "<u8", 0, 1672),
            ("kept_block", "<u8", 0, 1680),
            ("watch", "<u8", 2, 1792),
            ("watch_wake", "<u8", 2, 1808),
            ("watch_looked", "<u8", 2, 1824),
            ("volunteers", "<u8", 10, 1840),
            ("damage", "<u8", 0, 1920),
            ("rescues", "<u8", 0, 1928),
            ("deaths", "<u8", 0, 1936),
            ("disk_told", "<u8", 2, 1944),
            ("disk_refused", "<u8", 0, 1960),
            ("death_records_next", "<u8", 0, 2048),
            ("clock_steps_count", "<u8", 0, 2176),
            ("clock_steps", "clock_step", 32, 2304),
            ("death_records", "death_record", 128, 4096),
        ),
    ),
    "directory": (
        64,
        (
            ("word", "<u8", 0, 0),
            ("page", "<u8", 0, 8),
            ("name_hash", "<u8", 0, 16),
        ),
    ),
    "process": (
        640,
        (
            ("word", "<u8", 0, 0),
            ("pid", "<u4", 0, 8),
            ("flags", "<u4", 0, 12),
            ("start_time", "<u8", 0, 16),
            ("pid_namespace", "<u8", 0, 24),
            ("attached_ns", "<u8", 0, 32),
            ("name", "S40", 0, 40),
            ("pins", "<u8", 0, 80),
            ("pin_cells", "<u4", 0, 88),
            ("counters", "<u8", 0, 96),
            ("magazines", "<u8", 0, 104),
            ("progress", "<u8", 0, 128),
            ("inside", "<u4", 0, 136),
            ("unsettled", "<u4", 0, 140),
            ("pinned_bytes", "<u8", 0, 144),
            ("memory_waiting", "<u4", 0, 152),
            ("memory_changing", "<u4", 0, 156),
            ("wake_words", "<u4", 16, 160),
            ("privileges", "<u4", 0, 224),
            ("log_io", "<u8", 0, 480),
            ("env_io", "<u8", 0, 488),
        ),
    ),
    "pin": (
        16,
        (
            ("cell", "<u8", 0, 0),
            ("generation", "<u8", 0, 8),
        ),
    ),
    "counters": (
        128,
        (
            ("attached", "<u8", 0, 0),
            ("put", "<u8", 0, 8),
            ("got", "<u8", 0, 16),
            ("received", "<u8", 0, 24),
            ("acked", "<u8", 0, 32),
            ("redelivered", "<u8", 0, 40),
            ("dead_lettered", "<u8", 0, 48),
            ("purged", "<u8", 0, 56),
            ("died", "<u8", 0, 64),
            ("moving", "<u4", 0, 72),
            ("waiting", "<u4", 0, 76),
            ("changing", "<u4", 0, 80),
            ("expired", "<u8", 0, 88),
            ("dropped", "<u8", 0, 96),
        ),
    ),
    "process_page": (
        8192,
        (
            ("pins", "pin", 256, 0),
            ("chunks", "<u8", 64, 4096),
            ("receipts", "<u8", 64, 4608),
        ),
    ),
    "settings": (
        704,
        (
            ("max_bytes", "<u8", 0, 0),
            ("max_ttl_ns", "<u8", 0, 8),
            ("lease_ns", "<u8", 0, 16),
            ("expires_ns", "<u8", 0, 24),
            ("retry_delay_ns", "<u8", 8, 32),
            ("retry_steps", "<u4", 0, 96),
            ("overflow", "<u4", 0, 100),
            ("priorities", "<u4", 0, 104),
            ("grouping", "<u4", 0, 108),
            ("dead_letter_expired", "<u4", 0, 112),
            ("live_consumers", "<u4", 0, 116),
            ("given_by", "<u4", 24, 120),
            ("dead_letter", "<u8", 0, 216),
            ("dead_letter_names", "<u8", 50, 224),
            ("unused_since", "<u8", 0, 624),
            ("unused_taken", "<u8", 0, 632),
            ("seal", "<u8", 0, 640),
            ("max_memory", "<u8", 0, 648),
            ("alerts", "<u8", 5, 656),
        ),
    ),
    "ring": (
        1280,
        (
            ("kind", "<u4", 0, 0),
            ("shift", "<u4", 0, 4),
            ("slot_size", "<u4", 0, 8),
            ("features", "<u4", 0, 12),
            ("slots", "<u8", 0, 16),
            ("cold", "<u8", 0, 24),
            ("carried", "<u8", 0, 32),
            ("run_granules", "<u8", 0, 40),
            ("back", "<u8", 0, 48),
            ("aside", "<u8", 0, 56),
            ("level_shift", "<u8", 0, 64),
            ("run", "<u8", 0, 72),
            ("tail", "<u8", 0, 128),
            ("laid", "<u8", 0, 136),
            ("head", "<u8", 0, 256),
            ("floor", "<u8", 0, 264),
            ("epoch", "<u8", 0, 384),
            ("cells", "<u8", 64, 512),
            ("full", "<u4", 0, 1024),
            ("drained", "<u4", 0, 1032),
            ("joiners", "<u4", 0, 1036),
            ("due", "<u8", 0, 1040),
            ("waiters", "<u8", 0, 1048),
            ("flow", "<u8", 0, 1152),
            ("low", "<u8", 0, 1160),
            ("flushed", "<u8", 0, 1168),
            ("pulled", "<u8", 0, 1176),
            ("flushing_at", "<u8", 0, 1184),
            ("flushing_count", "<u8", 0, 1192),
            ("flushed_bytes", "<u8", 0, 1200),
            ("pulled_bytes", "<u8", 0, 1208),
            ("flushing_bytes", "<u8", 0, 1216),
            ("dropping_at", "<u8", 0, 1224),
            ("dropping_count", "<u8", 0, 1232),
            ("dropping_bytes", "<u8", 0, 1240),
            ("rows_due", "<u8", 0, 1248),
            ("tried", "<u8", 0, 1256),
            ("freed", "<u8", 0, 1264),
            ("freed_bytes", "<u8", 0, 1272),
        ),
    ),
    "sleepers": (
        32,
        (
            ("idle", "<u8", 0, 0),
            ("browse", "<u8", 0, 8),
            ("want", "<u8", 0, 16),
            ("used", "<u8", 0, 24),
        ),
    ),
    "group": (
        16,
        (
            ("owner", "<u8", 0, 0),
            ("refused", "<u8", 0, 8),
        ),
    ),
    "alerts": (
        64,
        (
            ("looked", "<u8", 0, 0),
            ("told", "<u8", 4, 8),
            ("largest", "<u8", 0, 40),
            ("flow", "<u8", 0, 48),
            ("flushed", "<u8", 0, 56),
        ),
    ),
    "queue": (
        8192,
        (
            ("index", "<u4", 0, 0),
            ("incarnation", "<u4", 0, 4),
            ("name_len", "<u4", 0, 8),
            ("created_by", "<u4", 0, 12),
            ("created_ns", "<u8", 0, 16),
            ("name", "S200", 0, 128),
            ("given", "<u8", 0, 384),
            ("maxsize", "<u8", 0, 392),
            ("max_deliveries", "<u4", 0, 400),
            ("max_deaths", "<u4", 0, 404),
            ("checksum", "<u4", 0, 408),
            ("temporary", "<u4", 0, 412),
            ("temporary_row", "<u4", 0, 416),
            ("temporary_generation", "<u4", 0, 420),
            ("limited", "<u4", 0, 424),
            ("state", "<u4", 0, 768),
            ("shut_down", "<u4", 0, 772),
            ("chunk_count", "<u4", 0, 776),
            ("levels", "<u4", 0, 780),
            ("level_rings", "<u8", 0, 784),
            ("terms", "<u4", 0, 792),
            ("opened", "<u8", 0, 800),
            ("ring", "ring", 0, 896),
            ("sleepers", "sleepers", 17, 2176),
            ("chunks", "<u8", 17, 2720),
            ("count", "<u8", 0, 2944),
            ("recount_due", "<u4", 0, 2952),
            ("weight", "<u8", 0, 2960),
            ("line", "<u8", 0, 2968),
            ("resident", "<u8", 0, 2976),
            ("settings", "settings", 0, 3072),
            ("unfinished", "<u4", 0, 3776),
            ("missed", "<u4", 0, 3780),
            ("unswept", "<u4", 0, 3784),
            ("turns_begun", "<u4", 0, 3788),
            ("chances", "<u8", 0, 3792),
            ("alerts", "alerts", 0, 3840),
            ("group_table", "group", 256, 4096),
        ),
    ),
    "ticket": (
        16,
        (
            ("word", "<u8", 0, 0),
            ("wake", "<u4", 0, 8),
            ("bytes", "<u4", 0, 12),
        ),
    ),
    "consumer": (
        128,
        (
            ("word", "<u8", 0, 0),
            ("sleeps_on", "<u8", 0, 8),
            ("wake", "<u4", 0, 16),
            ("sleeps", "<u4", 0, 20),
            ("kind", "<u4", 0, 24),
            ("implicit", "<u4", 0, 28),
            ("progress", "<u8", 0, 32),
            ("priority", "<u4", 0, 40),
            ("exclusive", "<u4", 0, 44),
            ("live", "<u4", 0, 48),
            ("rounds", "<u4", 0, 52),
            ("order", "<u8", 0, 56),
            ("privileged", "<u4", 0, 64),
            ("awaited", "<u8", 0, 72),
        ),
    ),
    "slot": (
        64,
        (
            ("word", "<u8", 0, 0),
            ("position", "<u8", 0, 8),
            ("message_id", "<u8", 0, 16),
            ("enqueued_ns", "<u8", 0, 24),
            ("body", "<u8", 0, 32),
            ("body_gen", "<u4", 0, 40),
            ("body_len", "<u4", 0, 44),
            ("summary", "<u8", 0, 48),
            ("crc", "<u4", 0, 48),
            ("headers_len", "<u2", 0, 52),
            ("delivery", "<u2", 0, 54),
            ("tally", "<u8", 0, 56),
            ("deaths", "<u2", 0, 56),
            ("content", "u1", 0, 58),
            ("priority", "u1", 0, 59),
            ("props", "<u2", 0, 60),
            ("death_tag", "<u2", 0, 62),
        ),
    ),
    "cold": (
        64,
        (
            ("place", "<u8", 0, 0),
            ("back", "<u8", 0, 8),
            ("ordinal", "<u8", 0, 16),
            ("ordinal_bytes", "<u8", 0, 24),
            ("expires_ns", "<u8", 0, 32),
            ("not_before_ns", "<u8", 0, 40),
            ("group", "<u8", 0, 48),
            ("intent", "<u8", 0, 56),
        ),
    ),
    "block": (
        16,
        (
            ("word", "<u8", 0, 0),
            ("state", "<u8", 0, 8),
        ),
    ),
    "slab": (
        4096,
        (
            ("class_word", "<u8", 0, 0),
            ("free", "<u8", 4, 8),
            ("block", "block", 248, 128),
        ),
    ),
}


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
