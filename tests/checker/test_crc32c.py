"""The judge's own checksum against the definition and against the engine's."""

import random

import pytest

from checker.crc32c import LONG, POLYNOMIAL, crc32c, crc32c_of_all


def by_definition(message: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in message:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_the_check_value_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, LONG - 1, LONG, LONG + 1, 3 * LONG + 17, 70_000])
def test_every_way_to_compute_it_agrees_with_the_definition(length: int, seed: int) -> None:
    message = random.Random(seed).randbytes(length)
    assert crc32c(message) == by_definition(message)


def test_many_messages_of_all_lengths_at_once(seed: int) -> None:
    chance = random.Random(seed)
    messages = [chance.randbytes(chance.randrange(400)) for _ in range(200)] + [chance.randbytes(2 * LONG)]
    assert crc32c_of_all(messages) == [by_definition(message) for message in messages]


def test_one_flipped_bit_is_seen(seed: int) -> None:
    chance = random.Random(seed)
    message = bytearray(chance.randbytes(500))
    before = crc32c(bytes(message))
    for _ in range(50):
        bit = chance.randrange(len(message) * 8)
        message[bit // 8] ^= 1 << bit % 8
        assert crc32c(bytes(message)) != before
        message[bit // 8] ^= 1 << bit % 8
