"""`shmq check` beside processes that do everything at once and are killed anywhere: no false alarm, damage found."""

import mmap
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import shmq
import shmq._native
from shmq.cli.check import Report, examine
from tests.support.fire import QUEUES, queue_of
from tests.support.health import reap_the_dead
from tests.support.size import sized

ROOT = Path(__file__).resolve().parents[2]
CHECKS = sized(300, 10_000)
PROCESSES = 3
KILL_EVERY = 12  # checks


class Fire:
    """Processes at work, one of which is killed and replaced now and then."""

    def __init__(self, path: Path, numbers: random.Random) -> None:
        self.path = path
        self.numbers = numbers
        self.kills = 0
        self.processes = [self.start() for _ in range(PROCESSES)]

    def start(self) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "tests.support.fire", str(self.path), str(self.numbers.getrandbits(32))]
        return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE)

    def kill_one(self) -> None:
        """Kill one that is at work: on a busy machine all would else be killed while they start, check after check."""
        at = self.numbers.randrange(PROCESSES)
        process = self.processes[at]
        assert process.stdout is not None
        assert process.stdout.readline() == b"at work\n"
        assert process.poll() is None, "a process ended by itself"
        self.end_of(process)
        self.processes[at] = self.start()
        self.kills += 1

    @staticmethod
    def end_of(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.communicate()

    def end(self) -> None:
        for process in self.processes:
            self.end_of(process)


@contextmanager
def burning(path: Path, numbers: random.Random) -> Iterator[Fire]:
    fire = Fire(path, numbers)
    try:
        yield fire
    finally:
        fire.end()


def look(path: Path) -> Report:
    return examine(str(path))


@pytest.mark.timeout(sized(900, 3600))
def test_no_check_of_a_sound_broker_under_fire_finds_anything(broker_dir: Path, seed: int) -> None:
    """Shows G7."""
    numbers = random.Random(seed)
    with shmq.open(broker_dir, memory="64MiB") as broker:
        queues = [queue_of(broker, name) for name in QUEUES]
        verified = 0
        with burning(broker_dir, numbers) as fire:
            for number in range(CHECKS):
                report = look(broker_dir)
                assert report.findings == [], f"check {number}: {report}"
                verified += report.verified
                if number % KILL_EVERY == KILL_EVERY - 1:
                    fire.kill_one()
        assert verified > CHECKS
        assert sum(queue.statistics().put for queue in queues) > CHECKS
        reap_the_dead(broker)
        last = look(broker_dir)
        assert last.findings == [], last
        print(f"{CHECKS} checks, {fire.kills} kills, {verified:,} checksums")


# ---- real damage, under fire and without ----------------------------------------------------------------------------

MARK = b"a body that is looked for"
Damage = Callable[[mmap.mmap, int], None]


def change_word(memory: mmap.mmap, slot: int, change: Callable[[int], int]) -> None:
    word = int.from_bytes(memory[slot : slot + 8], "little")
    memory[slot : slot + 8] = change(word).to_bytes(8, "little")


def flip_a_bit_of_the_body(memory: mmap.mmap, slot: int) -> None:
    memory[slot + shmq._native.SLOT_HEADER] ^= 4


def give_it_to_a_process_that_is_not_there(memory: mmap.mmap, slot: int) -> None:
    change_word(memory, slot, lambda word: (word & ~0xF) | 6 | (0x1000 | 1000) << 8)


def give_it_to_a_consumer_that_is_not_there(memory: mmap.mmap, slot: int) -> None:
    change_word(memory, slot, lambda word: (word & ~0xF) | 6 | 1000 << 8)


def raise_its_lap(memory: mmap.mmap, slot: int) -> None:
    change_word(memory, slot, lambda word: word + (5 << 32))


def move_its_position(memory: mmap.mmap, slot: int) -> None:
    change_word(memory, slot + 8, lambda position: position + 1)


def point_its_body_elsewhere(memory: mmap.mmap, slot: int) -> None:
    change_word(memory, slot + 32, lambda _: 12345)


def write_a_state_that_there_is_not(memory: mmap.mmap, slot: int) -> None:
    change_word(memory, slot, lambda word: word | 0xF)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (flip_a_bit_of_the_body, "the message does not match its checksum"),
        (give_it_to_a_process_that_is_not_there, "the message's owner is a process that does not exist"),
        (give_it_to_a_consumer_that_is_not_there, "the message's owner is a consumer that does not exist"),
        (raise_its_lap, "the slot's lap is ahead of the tail"),
        (move_its_position, "the message's position is that of another slot"),
        (point_its_body_elsewhere, "the offset of the message's body is not that of a block"),
        (write_a_state_that_there_is_not, "the slot is in a state that this version does not know"),
    ],
)
def test_real_damage_is_found_beside_traffic(broker_dir: Path, seed: int, damage: Damage, words: str) -> None:
    with shmq.open(broker_dir, memory="64MiB") as broker:
        still = broker.queue("still", codec="bytes")  # nobody else uses it: what is damaged stays
        still.put(MARK)
        segment = Path("/dev/shm", broker._membership.member.name)
        with burning(broker_dir, random.Random(seed)), segment.open("r+b") as file:
            while queue_of(broker, "plain").statistics().put == 0:
                look(broker_dir)  # until somebody is at work
            with mmap.mmap(file.fileno(), os.path.getsize(segment)) as memory:
                slot = memory.find(MARK) - shmq._native.SLOT_HEADER
                assert slot > 0
                before = look(broker_dir)
                assert before.findings == [], before
                undamaged = memory[slot : slot + 128]
                damage(memory, slot)
                found = look(broker_dir).findings
                memory[slot : slot + 128] = undamaged
            assert ("queue 'still'", 0, words) in [(finding.place, finding.slot, finding.fault) for finding in found]


def test_a_message_behind_the_head_is_found_once_nobody_can_be_releasing_it(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="64MiB") as broker:
        queue = broker.queue("still", codec="bytes")
        queue.put_many([MARK, b"second", b"third"])
        segment = Path("/dev/shm", broker._membership.member.name)
        with segment.open("r+b") as file, mmap.mmap(file.fileno(), os.path.getsize(segment)) as memory:
            slot = memory.find(MARK) - shmq._native.SLOT_HEADER
            available = memory[slot : slot + 8]
            assert queue.get() == MARK
            taken = memory[slot : slot + 8]
            holding = queue.receive()
            memory[slot : slot + 8] = available  # as if released; nobody turns the head back
            assert look(broker_dir).findings == []  # this process holds a message: it may be about to
            holding.ack()
            found = look(broker_dir).findings
            memory[slot : slot + 8] = taken
        expected = ("queue 'still'", 0, "the message is available, but no consumer will be offered it")
        assert [(finding.place, finding.slot, finding.fault) for finding in found] == [expected]
        assert queue.get() == b"third"
