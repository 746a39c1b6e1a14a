"""The core reads heads as Python does, and leaves to Python those that it does not read."""

from __future__ import annotations

import random
import struct

import pytest

import shmq
from shmq.core.queue import head_columns
from shmq.engine.arrow.head_columns import heads_as_columns, heads_by_python
from shmq.headers import encode_headers
from tests.spark.heads import any_headers, in_columns

pytestmark = pytest.mark.usefixtures("with_spark")  # for its pyarrow


def broken(rng: random.Random, head: bytes) -> bytes:
    """Another one, which may make sense or not."""
    at, changed = rng.randrange(len(head)), bytearray(head)
    which = rng.randrange(5)
    if which == 0:
        changed[at] = rng.randrange(256)
    elif which == 1:
        del changed[at:]
    elif which == 2:
        changed[at] = (changed[at] + rng.choice([-1, 1])) & 0xFF
    elif which == 3:  # a text of any bytes
        length = rng.choice([1, 2, 3, 4])
        more = bytes(rng.choice([rng.randrange(256), rng.randrange(0x80, 0xC0)]) for _ in range(4))
        changed = bytearray(struct.pack("<BH3sH", 1, 5 + length, b"\1k\x08", length) + rng.choice(LEADS) + more)
        del changed[8 + length :]
    else:  # fields of shmq's own, once more or unfit
        content = rng.choice([b"", b"a", b"\xff", "ü".encode(), b"a" * 256, rng.randbytes(3)])
        changed += struct.pack("<BH", rng.choice([1, 3, 3, 4, 77]), len(content)) + content
    return bytes(changed)


# Beginnings of characters, at the ends of what UTF-8 allows.
LEADS = [b"a", b"\x80", b"\xc1", b"\xc2", b"\xdf", b"\xe0\x9f", b"\xe0\xa0", b"\xed\x9f", b"\xed\xa0", b"\xef\xbf",
         b"\xf0\x8f", b"\xf0\x90", b"\xf4\x8f", b"\xf4\x90", b"\xf5"]  # fmt: skip


def test_the_core_reads_a_head_as_python_does_or_leaves_it_to_python(seed: int) -> None:
    rng = random.Random(seed)
    left = plain = 0
    for _ in range(6_000):
        group = rng.choice([None, "a", "日本"])
        named = rng.choice([None, "application/x-own"])
        head = encode_headers(any_headers(rng), group=group, content_type=named)
        if head and rng.random() < 0.8:
            head = broken(rng, head)
        columns = in_columns([head, b"", head])
        try:
            expected = heads_by_python(*columns)
        except shmq.DecodeError:
            assert head_columns(*columns) is None, head
            left += 1
            continue
        found = heads_as_columns(*columns)
        assert head_columns(*columns) is not None, head
        for made, wanted in zip(found, expected, strict=True):
            made.validate(full=True)
            assert made.equals(wanted), head
        plain += 1
    assert left > 500
    assert plain > 500


def test_ends_that_do_not_fit_are_refused() -> None:
    for ends in ([0, 5], [-1, 0], [2, 1], [0, 9, 1]):
        with pytest.raises(ValueError, match="do not match"):
            head_columns(struct.pack(f"<{len(ends)}i", *ends), b"")
