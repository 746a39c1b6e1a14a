"""Single words that random damage once turned into a crash, a hang, a wrong body or a lost broker. Shows G7."""

import json
import random
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import shmq
from tests.cli.shell import Shell
from tests.support.health import usage
from tests.support.offspring import Offspring, Say, eventually
from tests.support.segment_bytes import SegmentBytes, place_of


@pytest.fixture
def bare(tmp_path: Path, broker_dir: Path) -> Shell:
    return Shell(broker_dir, tmp_path)


@pytest.fixture
def target(broker_dir: Path) -> Iterator[tuple[shmq.Broker, SegmentBytes]]:
    """The test does not close the broker that it damages: only its file goes, with the test."""
    broker = shmq.open(broker_dir, memory="16MiB", patience=0.05)
    with SegmentBytes.of(broker) as memory:
        yield broker, memory


def has_noticed(broker: shmq.Broker) -> bool:
    """A call that finds nothing looks whether the segment is still there."""
    with pytest.raises(shmq.Empty):
        broker.queue("empty").get(timeout=0)
    return usage(broker)["damage"] > 0


def test_a_damaged_word_does_not_make_a_broker_gone_nor_remove_its_segment(
    broker_dir: Path, target: tuple[shmq.Broker, SegmentBytes]
) -> None:
    broker, memory = target
    queue = broker.queue("jobs")
    queue.put("kept")
    for value in (1, 0x40, 0xFFFFFFFF):
        memory.write(place_of("segment", "state"), value, 4)
        queue.put("taken")
        eventually(partial(has_noticed, broker), "the damage is noticed")
        memory.write(place_of("segment", "state"), value, 4)
        broker.close()
        assert memory.path.exists()
        broker = shmq.open(broker_dir, create=False)
        queue = broker.queue("jobs", create=False)
    assert queue.get_many(10, timeout=5) == ["kept", "taken", "taken", "taken"]
    broker.close()


@pytest.mark.parametrize("field", ["boot_id", "uuid", "path", "patience_ns", "created_ns", "directory_inode"])
def test_a_flipped_bit_of_the_identity_is_damage_and_no_reason_for_a_new_segment(
    broker_dir: Path, target: tuple[shmq.Broker, SegmentBytes], field: str
) -> None:
    broker, memory = target
    broker.queue("jobs").put("kept")
    broker.close()
    at = place_of("segment", field)
    memory.flip(at, 3)
    with pytest.raises(shmq.CorruptionError, match="header_crc"):
        shmq.open(broker_dir)
    memory.flip(at, 3)
    with shmq.open(broker_dir) as again:
        assert again.queue("jobs").get(timeout=5) == "kept"


@pytest.mark.parametrize("bit", [2, 5, 17, 30])
def test_a_damaged_entry_of_the_directory_is_an_error_and_hides_no_other_queue(
    target: tuple[shmq.Broker, SegmentBytes], broker_dir: Path, bit: int
) -> None:
    broker, memory = target
    hurt, other = broker.queue("hurt"), broker.queue("other")
    other.put("here")
    memory.flip(memory.entry(hurt), bit)

    def open_it(say: Say) -> None:
        mine = shmq.open(broker_dir, create=False)
        try:
            mine.queue("hurt", create=False)
            say("opened")
        except (shmq.CorruptionError, shmq.NotFound) as error:
            say(type(error).__name__)
        say(mine.queue("other").get(timeout=5))
        signal.pause()

    with Offspring(open_it) as child:
        assert child.line() in ("CorruptionError", "NotFound")
        assert child.line() == "here"
        child.kill()


@pytest.mark.parametrize("value", [1, 4096, (1 << 63) + 8192, 1 << 40])
def test_consumer_rows_that_lead_nowhere_are_an_error_for_who_wants_to_wait(
    target: tuple[shmq.Broker, SegmentBytes], value: int
) -> None:
    broker, memory = target
    queue = broker.queue("jobs")
    with pytest.raises(shmq.Empty):
        queue.get(timeout=0.01)  # its rows are laid out now
    memory.write(memory.page(queue) + place_of("queue", "chunks"), value)
    with pytest.raises(shmq.CorruptionError):
        queue.get(timeout=0.01)
    with pytest.raises(shmq.CorruptionError):
        queue.consumer().receive(timeout=0.01)
    with pytest.raises(shmq.CorruptionError):
        queue._browse_wait((0,), 0.01)
    queue.put("still")
    assert queue.get(timeout=0) == "still"


@pytest.mark.parametrize("size", [5000, 200_000])  # a smaller one was copied, and checked, when it came
def test_a_body_that_is_damaged_after_its_delivery_is_not_handed_out(
    target: tuple[shmq.Broker, SegmentBytes], seed: int, size: int
) -> None:
    numbers = random.Random(seed)
    broker, memory = target
    queue = broker.queue("jobs", codec="bytes")
    body = numbers.randbytes(size)
    for index in range(5):
        queue.put(body)
        message = queue.receive(timeout=5)
        memory.flip(memory.body(queue, index), numbers.randrange(8 * size))
        with pytest.raises(shmq.CorruptionError, match="checksum"):
            _ = message.body
        message.reject()
    queue.put(body)
    message = queue.receive(timeout=5)
    assert message.body == body
    message.ack()


@pytest.mark.parametrize("size", [20, 5000])
def test_a_setting_that_is_damaged_turns_no_checksum_off(
    broker_dir: Path, target: tuple[shmq.Broker, SegmentBytes], size: int
) -> None:
    broker, memory = target
    queue = broker.queue("jobs", codec="bytes")
    queue.put(b"x" * size)
    memory.write(memory.page(queue) + place_of("queue", "checksum"), 0, 4)
    memory.flip(memory.body(queue, 0), 9)
    broker.close()
    with shmq.open(broker_dir) as again, pytest.raises(shmq.CorruptionError):
        again.queue("jobs", codec="bytes").get(timeout=1)


def test_a_damaged_slot_is_quarantined_counted_and_named_by_check_and_doctor(bare: Shell, broker_dir: Path) -> None:
    """Shows E20."""
    shell, broker = bare, shmq.open(broker_dir, memory="16MiB")
    queue = broker.queue("orders", codec="bytes")
    for number in range(5):
        queue.put(b"%d" % number)
    with SegmentBytes.of(broker) as memory:
        memory.flip(memory.body(queue, 2), 4)
    got, errors = [], 0
    for _ in range(5):
        try:
            got.append(queue.get(timeout=0))
        except shmq.CorruptionError:
            errors += 1
    assert (got, errors) == ([b"0", b"1", b"3", b"4"], 1)
    queue.put(b"5")
    assert queue.get(timeout=0) == b"5"
    assert queue._census()["broken"] == 1
    assert usage(broker)["damage"] == 1
    shown = shell("check", expected=1).out
    assert "queue 'orders', slot 2: the slot is broken, and its message is lost" in shown
    told = json.loads(shell("doctor", "--json", expected=1).out)
    bad = [check["detail"] for check in told["checks"] if check["check"] == "damage"]
    assert "queue 'orders', slot 2: the slot is broken, and its message is lost" in bad
    assert shell("stat", "--json").json["damage"] == 1
    broker.close()


@pytest.mark.parametrize("field", ["page", "slots", "carried"])
def test_a_word_that_leads_into_another_queue_is_damage(
    broker_dir: Path, target: tuple[shmq.Broker, SegmentBytes], field: str
) -> None:
    """Its content is that of another queue, so that nothing but its neighbours tells."""
    broker, memory = target
    hurt, other = broker.queue("hurt", maxsize=100), broker.queue("other", maxsize=100)
    hurt.put("of hurt")
    other.put("of other")
    places = []
    for queue in (hurt, other):
        if field == "page":
            places.append(memory.entry(queue) + place_of("directory", "page"))
        else:
            places.append(memory.page(queue) + place_of("queue", "ring") + place_of("ring", field))
    memory.write(places[0], memory.word(places[1]))
    broker.close()
    with shmq.open(broker_dir) as again:
        with pytest.raises((shmq.CorruptionError, shmq.NotFound)):
            again.queue("hurt", create=False).get(timeout=0.1)
        assert again.queue("other").get(timeout=1) == "of other"


@pytest.mark.parametrize("setting", ["overflow", "grouping", "priorities", "live_consumers"])
def test_a_setting_that_there_is_not_is_damage_also_where_an_error_was_about_to_name_it(
    target: tuple[shmq.Broker, SegmentBytes], setting: str
) -> None:
    broker, memory = target
    queue = broker.queue("jobs", maxsize=1)
    queue.put("kept")
    memory.write(memory.page(queue) + place_of("queue", "settings") + place_of("settings", setting), 0x4000_0000, 4)
    asked: list[Callable[[], object]] = [
        lambda: queue.put("refused", timeout=0),
        lambda: queue.options,
        lambda: broker.queue("jobs", maxsize=2),
    ]
    for ask in asked:
        with pytest.raises(shmq.CorruptionError, match="has a value that this version does not know"):
            ask()
    assert queue.get(timeout=0) == "kept"
