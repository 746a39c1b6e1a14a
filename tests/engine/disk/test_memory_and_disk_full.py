"""Memory and disk are both full: producers are told, consumers go on, and the budget of the disk holds. Shows G5."""

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.support.small_disk import on_a_small_disk

MIB = 1 << 20
PATIENCE = 30.0

Take = Callable[[shmq.Queue[Any]], list[bytes]]


def body(number: int, size: int) -> bytes:
    return b"%08d" % number + bytes(size)


def number_of(taken: bytes) -> int:
    return int(taken[:8])


def get(queue: shmq.Queue[Any]) -> list[bytes]:
    return [queue.get(timeout=PATIENCE)]


def get_many(queue: shmq.Queue[Any]) -> list[bytes]:
    taken: list[bytes] = queue.get_many(5, timeout=PATIENCE)
    return taken


def receive(queue: shmq.Queue[Any]) -> list[bytes]:
    """A view of the last body lives on while the next message is received."""
    with queue.receive(timeout=PATIENCE) as message:
        return [bytes(message.body)]


every_way = pytest.mark.parametrize("take", [get, get_many, receive])


def sizes_of(what: str, numbers: random.Random) -> Callable[[], int]:
    if what == "mixed":
        return lambda: numbers.randint(10, 20_000)
    if what == "seldom large":
        return lambda: 1_500_000 if numbers.random() < 0.02 else 500
    size = int(what)
    return lambda: size


def fill(queue: shmq.Queue[Any], first: int, size: Callable[[], int], **options: Any) -> int:
    """Puts numbers from this one on until one is refused; answers which."""
    while True:
        try:
            queue.put(body(first, size()), timeout=0, **options)
        except (shmq.Full, shmq.OutOfSpace):
            return first
        first += 1


def on_disk(broker: shmq.Broker) -> int:
    return sum(queue.statistics().disk_bytes for queue in broker.queues())


@pytest.mark.parametrize("memory", ["8MiB", "64MiB"])
@pytest.mark.parametrize("what", ["1000", "10000", "mixed", "seldom large", "300000", "1900000"])
def test_consumers_go_on_and_the_budget_holds_whatever_the_size(
    what: str, memory: str, tmp_path: Path, seed: int
) -> None:
    """Shows S134, S140."""
    size = sizes_of(what, random.Random(seed))
    with shmq.open(tmp_path / "b", memory=memory, disk="8MiB") as broker:
        queue = broker.queue("q", codec="bytes")
        put = taken = 0
        for _ in range(60):
            put = fill(queue, put, size)
            assert on_disk(broker) <= 8 * MIB
            assert number_of(queue.get(timeout=PATIENCE)) == taken
            taken += 1
        assert queue.statistics().flowed
        while taken < put:
            assert number_of(queue.get(timeout=PATIENCE)) == taken
            taken += 1
        assert on_disk(broker) == 0


@every_way
@pytest.mark.parametrize("options", [{}, {"priorities": 3}, {"groups": "shared"}, {"max_memory": 100_000}], ids=str)
def test_consumers_of_several_queues_go_on(take: Take, options: dict[str, Any], tmp_path: Path, seed: int) -> None:
    """Their messages lie side by side in memory, so that no piece of it is free for what one queue brings back.

    Shows S140.
    """
    numbers = random.Random(seed)
    size = sizes_of("mixed", numbers)
    with shmq.open(tmp_path / "b", memory="16MiB", disk="8MiB") as broker:
        queues = [broker.queue(f"q{n}", codec="bytes", **options) for n in range(5)]
        for queue in queues:
            queue.put(body(0, 10))
            take(queue)  # each has its consumer before the memory is used up
        left = [0] * len(queues)
        refused = set[int]()
        while len(refused) < len(queues):
            n = numbers.choice([n for n in range(len(queues)) if n not in refused])
            extra: dict[str, Any] = {"priority": numbers.randrange(3)} if "priorities" in options else {}
            extra |= {"group": f"g{numbers.randrange(9)}"} if "groups" in options else {}
            try:
                queues[n].put(body(0, size()), timeout=0, **extra)
                left[n] += 1
            except shmq.Full:
                refused.add(n)
        assert any(queue.statistics().flowed for queue in queues)
        while any(left):
            n = numbers.choice([n for n in range(len(queues)) if left[n]])
            left[n] -= len(take(queues[n]))
        assert on_disk(broker) == 0


def test_consumers_with_selectors_go_on(tmp_path: Path) -> None:
    with shmq.open(tmp_path / "b", memory="8MiB", disk="4MiB") as broker:
        queue = broker.queue("q", codec="bytes")
        end = 0
        for colour in ("red", "blue") * 1000:
            after = end
            try:
                queue.put(body(end, 10_000), headers={"colour": colour}, timeout=0)
            except shmq.Full:
                break
            end = after + 1
        with queue.consumer(selector="colour = 'blue'") as blue:
            for number in range(1, end, 2):
                with blue.receive(timeout=PATIENCE) as message:
                    assert number_of(message.body) == number
        for number in range(0, end, 2):
            assert number_of(queue.get(timeout=PATIENCE)) == number


def test_a_move_without_room_is_told_and_consumers_go_on(tmp_path: Path) -> None:
    with shmq.open(tmp_path / "b", memory="8MiB", disk="4MiB") as broker:
        queue, other = broker.queue("q", codec="bytes"), broker.queue("other", codec="bytes")
        end = fill(queue, 0, lambda: 20_000)
        with pytest.raises((shmq.Full, shmq.OutOfSpace)) as told:
            queue.move(other)
        moved = told.value.accepted
        assert queue.qsize() + other.qsize() == end
        assert other.qsize() == moved
        assert [number_of(queue.get(timeout=PATIENCE)) for _ in range(moved, end)] == list(range(moved, end))
        assert [number_of(other.get(timeout=PATIENCE)) for _ in range(moved)] == list(range(moved))
        queue.join(timeout=PATIENCE)


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
@pytest.mark.parametrize("what", ["2000", "20000", "mixed", "900000"])
def test_consumers_go_on_beside_a_file_system_that_is_full(kind: str, what: str, tmp_path: Path, seed: int) -> None:
    """Shows S140."""

    def work(place: Path) -> None:
        size = sizes_of(what, random.Random(seed))
        with shmq.open(place / "broker", memory="8MiB", disk="1GiB") as broker:
            queue = broker.queue("q", codec="bytes")
            put = taken = 0
            flowed = False
            for _ in range(40):
                put = fill(queue, put, size)
                flowed = flowed or queue.statistics().flowed
                assert number_of(queue.get(timeout=PATIENCE)) == taken
                taken += 1
            assert flowed
            while taken < put:
                assert number_of(queue.get(timeout=PATIENCE)) == taken
                taken += 1

    on_a_small_disk(work, kind, tmp_path)


def test_what_a_deleted_queue_had_on_disk_is_there_for_others_at_once(tmp_path: Path) -> None:
    """Shows S134."""
    with shmq.open(tmp_path / "b", memory="8MiB", disk="4MiB") as broker:
        room = fill(broker.queue("alone", codec="bytes"), 0, lambda: 2000)
        broker.queue("alone").delete()
        first = broker.queue("first", codec="bytes", max_memory=1)
        for number in range(6000):
            first.put(body(number, 500))
        first.delete()  # it is still referred to
        assert fill(broker.queue("second", codec="bytes"), 0, lambda: 2000) > room * 9 // 10


def test_a_look_changes_nothing_on_disk(tmp_path: Path) -> None:
    with shmq.open(tmp_path / "b", memory="8MiB", disk="64MiB") as broker:
        queue = broker.queue("q", codec="bytes", max_memory=5000)
        for number in range(200):
            queue.put(body(number, 500))
        for number in range(150):
            assert number_of(queue.get(timeout=PATIENCE)) == number
            before = queue.statistics().disk_bytes
            assert [number_of(message.body) for message in queue.browse()] == list(range(number + 1, 200))
            assert queue.statistics().disk_bytes == before


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_alerts_and_long_waits_name_the_file_system_that_is_nine_tenths_full(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("shmq.engine.handle.long_wait.LONG_WAIT", 0.2)

    def work(place: Path) -> None:
        system = os.statvfs(place)
        left = system.f_bavail - system.f_blocks // 20
        (place / "filler").write_bytes(bytes(left * system.f_frsize))
        with shmq.open(place / "broker", memory="8MiB") as broker:
            queue = broker.queue("q", codec="bytes")
            fill(queue, 0, lambda: 1000)
            timer = threading.Timer(2, queue.purge)
            timer.start()
            queue.put(body(0, 1000))
            timer.join()
            queue.statistics()
        said = [record.getMessage() for record in caplog.records if "disk" in record.getMessage()]
        alerts = [text for text in said if "found no room on disk" in text]
        waits = [text for text in said if "goes on waiting" in text]
        assert alerts, said
        assert waits, said
        for text in alerts + waits:
            for part in (str(place), "bytes free, a tenth stays free", "make room there"):
                assert part in text, text

    on_a_small_disk(work, kind, tmp_path)


def test_drop_oldest_drops_nothing_for_want_of_room_on_disk(tmp_path: Path) -> None:
    """Below maxsize every put waits there, whatever overflow says."""
    with shmq.open(tmp_path / "b", memory="16MiB", disk="1MiB") as broker:
        other = broker.queue("other", codec="bytes", max_memory=1)
        fill(other, 0, lambda: 3000)
        queue = broker.queue("q", codec="bytes", maxsize=200, max_memory=4000, overflow="drop_oldest")
        end = fill(queue, 0, lambda: 900)
        assert 1 <= end < 200
        for size in (3500, 3900, 5000):
            with pytest.raises(shmq.Full) as full:
                queue.put(body(end, size), timeout=0.3)
            assert full.value.resource == "disk"
        assert queue.statistics().dropped == 0
        assert [number_of(queue.get(timeout=0)) for _ in range(end)] == list(range(end))
        other.purge()
        for number in range(300):
            queue.put(body(number, 900), timeout=PATIENCE)
        assert queue.statistics().dropped == 100
