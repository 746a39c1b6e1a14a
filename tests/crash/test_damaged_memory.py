"""A live segment is damaged at random, under a process that works with it: errors or right results, no hang, no crash.

What is damaged: words of rings, queue pages, consumer and process rows, maps, headers of blocks and bodies. Each call
must come back with an answer or one of shmq's errors. What it answers is not judged but for bodies: they are among
those that were put.
"""

import errno
import mmap
import os
import random
import sys
from multiprocessing import get_context
from pathlib import Path

import pytest

import shmq
from tests.support.size import sized

ROUNDS = sized(12, 200)
TURNS = 150
SECONDS = 30.0  # for one victim; undisturbed it takes a fraction of one


def damage(memory: mmap.mmap, words: list[int], numbers: random.Random) -> None:
    """Changes one word that was not zero at the start: a bit of it, or all of it."""
    at = numbers.choice(words)
    word = int.from_bytes(memory[at : at + 8], "little")
    word = word ^ (1 << numbers.randrange(64)) if numbers.random() < 0.5 else numbers.getrandbits(64)
    memory[at : at + 8] = word.to_bytes(8, "little")


def words_in_use(memory: mmap.mmap, extents: list[tuple[int, int]]) -> list[int]:
    """Offsets of the words behind the header that are not zero."""
    return [
        at
        for start, end in extents
        for at in range(max(start, 8192), end, 8)
        if memory[at : at + 8] != b"\0\0\0\0\0\0\0\0"
    ]


def victim(name: str, extents: list[tuple[int, int]], url: str, seed: int) -> None:
    numbers = random.Random(seed)
    broker = shmq.open(url)
    queue = broker.queue("jobs", codec="bytes")
    with open(f"/dev/shm/{name}", "r+b") as file:
        memory = mmap.mmap(file.fileno(), os.path.getsize(file.name))
    words = words_in_use(memory, extents)
    calls = [
        lambda: queue.put(b"known" * 30, timeout=0),
        lambda: queue.put(b"known", timeout=0),
        lambda: queue.put_many([b"known"] * 5, timeout=0),
        lambda: queue.get(timeout=0),
        lambda: queue.get_many(3, timeout=0),
        lambda: queue.receive(timeout=0).ack(),
        lambda: [m.body for m in queue.browse()],
        queue.qsize,
        queue.statistics,
    ]
    for _ in range(TURNS):
        damage(memory, words, numbers)
        for _ in range(4):
            try:
                got = numbers.choice(calls)()
            except shmq.ShmqError:
                continue
            bodies = got if isinstance(got, list) else [got]
            wrong = [body for body in bodies if isinstance(body, bytes) and body not in (b"known", b"known" * 30)]
            if wrong:
                print(f"seed {seed}: a body that nobody put: {wrong[0]!r}", file=sys.stderr)
                os._exit(3)
    os._exit(0)  # nothing is to be closed: what is closed is damaged


def extents_of(name: str) -> list[tuple[int, int]]:
    """Where the segment has memory: elsewhere a look alone could ask for more."""
    extents = []
    descriptor = os.open(f"/dev/shm/{name}", os.O_RDONLY)
    try:
        end = 0
        while True:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, start, os.SEEK_HOLE)
            extents.append((start, end))
    except OSError as error:
        if error.errno != errno.ENXIO:  # no data behind here
            raise
    finally:
        os.close(descriptor)
    return extents


@pytest.mark.timeout(sized(900, 3600))
def test_no_damage_of_a_live_segment_crashes_hangs_or_shows_a_wrong_body(tmp_path: Path, seed: int) -> None:
    numbers = random.Random(seed)
    for number in range(ROUNDS):
        broker = shmq.open(tmp_path / f"broker-{number}", memory="8MiB")
        queue = broker.queue("jobs", codec="bytes", maxsize=2000)
        queue.put_many([b"known", b"known" * 30] * 40)
        name = broker._membership.member.name
        url = broker.url
        broker.close()
        child_seed = numbers.getrandbits(32)
        process = get_context("fork").Process(target=victim, args=(name, extents_of(name), url, child_seed))
        process.start()
        process.join(SECONDS)
        hung = process.is_alive()
        if hung:
            process.kill()
            process.join()
        Path(f"/dev/shm/{name}").unlink()
        assert not hung, f"round {number}, child seed {child_seed}: a call did not come back"

        assert process.exitcode == 0, f"round {number}, child seed {child_seed}: an assertion of the core"
