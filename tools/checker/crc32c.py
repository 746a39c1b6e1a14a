"""CRC-32C (Castagnoli), from its polynomial alone, for many messages at once.

A remainder is linear, and zeros in front of a message do not change one that starts from 0. So messages of different
lengths stand right-aligned in a table of bytes and are done column by column. A long one is cut into lanes. To join
their remainders the left one is moved over as many zeros as the right one has bytes.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy
from numpy.typing import NDArray

Remainders = NDArray[numpy.uint32]

POLYNOMIAL: Final = 0x82F63B78  # 0x1EDC6F41, its bits reversed
LANE: Final = 256
LONG: Final = 16 * LANE


def byte_table() -> Remainders:
    table = numpy.arange(256, dtype=numpy.uint32)
    for _ in range(8):
        table = numpy.where(table & 1, table >> 1 ^ POLYNOMIAL, table >> 1).astype(numpy.uint32)
    return table


TABLE: Final = byte_table()


def after_bytes(remainders: Remainders, columns: NDArray[numpy.uint8]) -> Remainders:
    """The remainders after so many more bytes each: one row of `columns` for one byte of every message."""
    for column in columns:
        remainders = TABLE[(remainders ^ column) & 0xFF] ^ (remainders >> 8)
    return remainders


@lru_cache(maxsize=8192)
def zeros_tables(zeros: int) -> tuple[Remainders, ...]:
    """Four tables that move a remainder over so many zero bytes: one for each of its own bytes."""
    if zeros == 1:
        values = [numpy.arange(256, dtype=numpy.uint32) << shift for shift in (0, 8, 16, 24)]
        return tuple(TABLE[value & 0xFF] ^ (value >> 8) for value in values)
    half = zeros // 2
    tables = tuple(over_zeros(table, half) for table in zeros_tables(half)) if half else ()
    if zeros % 2 == 0:
        return tables
    return tuple(over_zeros(table, 1) for table in tables)


def over_zeros(remainders: Remainders, zeros: int) -> Remainders:
    if zeros == 0:
        return remainders
    first, second, third, fourth = zeros_tables(zeros)
    low: Remainders = first[remainders & 0xFF] ^ second[remainders >> 8 & 0xFF]
    high: Remainders = third[remainders >> 16 & 0xFF] ^ fourth[remainders >> 24]
    return low ^ high


def remainder_of_long(message: NDArray[numpy.uint8]) -> int:
    """Of one message, from 0, in lanes; the first lane gets zeros in front."""
    lanes = -(-len(message) // LANE)
    lanes = 1 << (lanes - 1).bit_length()
    padded = numpy.zeros(lanes * LANE, dtype=numpy.uint8)
    padded[len(padded) - len(message) :] = message
    columns = numpy.ascontiguousarray(padded.reshape(lanes, LANE).T)
    remainders = after_bytes(numpy.zeros(lanes, dtype=numpy.uint32), columns)
    zeros = LANE
    while len(remainders) > 1:
        remainders = over_zeros(remainders[0::2], zeros) ^ remainders[1::2]
        zeros *= 2
    return int(remainders[0])


@lru_cache(maxsize=65536)
def ones_over_zeros(length: int) -> int:
    return int(over_zeros(numpy.array([0xFFFFFFFF], dtype=numpy.uint32), length)[0])


def finished(remainder: int, length: int) -> int:
    """The result of the standard's first and last step for a remainder that started from 0."""
    return remainder ^ ones_over_zeros(length) ^ 0xFFFFFFFF


def crc32c(message: bytes) -> int:
    return crc32c_of_all([message])[0]


def crc32c_of_all(messages: Sequence[bytes]) -> list[int]:
    short = [i for i, message in enumerate(messages) if len(message) < LONG]
    results = [0] * len(messages)
    width = max((len(messages[i]) for i in short), default=0)
    table = numpy.zeros((len(short), width), dtype=numpy.uint8)
    for row, i in enumerate(short):
        table[row, width - len(messages[i]) :] = numpy.frombuffer(messages[i], dtype=numpy.uint8)
    remainders = after_bytes(numpy.zeros(len(short), dtype=numpy.uint32), numpy.ascontiguousarray(table.T))
    for i, remainder in zip(short, remainders.tolist(), strict=True):
        results[i] = finished(remainder, len(messages[i]))
    for i, message in enumerate(messages):
        if len(message) >= LONG:
            remainder = remainder_of_long(numpy.frombuffer(message, dtype=numpy.uint8))
            results[i] = finished(remainder, len(message))
    return results
