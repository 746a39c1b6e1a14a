"""Heads of all kinds, by a seed."""

from __future__ import annotations

import itertools
import math
import random
import struct

from shmq.headers import Header


def any_header(rng: random.Random) -> Header:
    """A value of any kind, the unusual ones often."""
    (bits,) = struct.unpack("<d", rng.randbytes(8))
    numbers = [
        0.0,
        -0.0,
        1e16,
        1e-5,
        123456789012345680.0,
        0.1,
        5e-324,
        1.7976931348623157e308,
        float(rng.randrange(99)),
    ]
    wide = rng.choice([7, 8, 15, 16, 31, 32, 62, 63])
    return rng.choice(
        [
            None,
            rng.random() < 0.5,
            rng.choice([-1, 0, (1 << wide) - 1, -(1 << wide), rng.randrange(1 << wide)]),
            rng.choice([*numbers, rng.uniform(-9, 9), bits if math.isfinite(bits) else 2.5]),
            rng.choice(
                ["", "plain", "\0", "ü" * rng.randrange(9), "日本", "\U0001f600\uffff\U0010ffff", "a\u0301" * 300]
            ),
            rng.randbytes(rng.choice([0, 1, 2, 3, 4, 5, 500])),
        ]
    )


def any_headers(rng: random.Random) -> dict[str, Header]:
    names = ["text", "n", "ü", "日本", "x" * 255, "j" * 4, "shmq", "JM", *(f"key {n}" for n in range(90))]
    return {name: any_header(rng) for name in rng.sample(names, rng.choice([0, 1, 2, 3, 8]))}


def in_columns(heads: list[bytes]) -> tuple[bytes, bytes]:
    """The ends, and the bytes."""
    ends = [0, *itertools.accumulate(map(len, heads))]
    return struct.pack(f"<{len(ends)}i", *ends), b"".join(heads)
