"""Each word of a queue's settings, and of its name, overwritten: nobody is blamed for it but the memory. Shows G7."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.core.layout import STRUCTS
from tests.support.health import usage
from tests.support.segment_bytes import SegmentBytes, place_of

OPTIONS: dict[str, Any] = {
    "maxsize": 100,
    "max_bytes": 1_000_000,
    "max_ttl": 3600.0,
    "lease": 600.0,
    "retry_delay": [0.5, 1.0],
    "dead_letter": "dead_letters",
    "priorities": 3,
    "overflow": "reject",
    "live_consumers": 2,
}
# These errors blame nobody: an altered limit, time, or way to wait may lead to them.
SAID_OF_THE_QUEUE = (shmq.CorruptionError, shmq.Empty, shmq.Full, shmq.SettlementError, shmq.NotFound, shmq.Returned)
SETTINGS_END = place_of("settings", "unused_since")  # these words are written while the queue is in use


def words(memory: SegmentBytes, queue: shmq.Queue[Any]) -> dict[str, int]:
    """Where each word is that is written when a queue is made or altered, and never else."""
    page = memory.page(queue)
    settings = page + place_of("queue", "settings")
    places = {f"settings + {at}": settings + at for at in range(0, SETTINGS_END, 8)}
    own = [name for name, *_ in STRUCTS["settings"][1] if name == "given_by"]
    assert own, "who gave a setting is told to people only"
    first = place_of("settings", "given_by")
    places = {
        name: at for name, at in places.items() if not first <= at - settings < place_of("settings", "dead_letter")
    }
    places |= {f"page + {at}": page + at for at in range(place_of("queue", "given"), place_of("queue", "limited"), 8)}
    places |= {f"name + {at}": page + place_of("queue", "name") + at for at in range(0, 8, 8)}
    return places | {"name_hash": memory.entry(queue) + place_of("directory", "name_hash")}


@pytest.fixture
def hurt(broker_dir: Path) -> Iterator[tuple[shmq.Broker, SegmentBytes, shmq.Queue[Any]]]:
    broker = shmq.open(broker_dir, memory="16MiB")
    queue = broker.queue("jobs", **OPTIONS)
    broker.queue("other").put("here")
    with SegmentBytes.of(broker) as memory:
        yield broker, memory, queue
    broker.close()


def reject(queue: shmq.Queue[Any]) -> None:
    queue.put("dies", timeout=0)
    queue.receive(timeout=0).reject("no use")


def retry(queue: shmq.Queue[Any]) -> None:
    queue.put("again", timeout=0)
    queue.receive(timeout=0).retry("no use")


def calls(broker: shmq.Broker, queue: shmq.Queue[Any]) -> dict[str, Callable[[], object]]:
    return {
        "declare": lambda: broker.queue("jobs", **OPTIONS),
        "find": lambda: broker.queue("jobs", create=False),
        "options": lambda: queue.options,
        "statistics": queue.statistics,
        "put": lambda: queue.put("a", timeout=0),
        "put with a ttl": lambda: queue.put("a", timeout=0, ttl=5.0),
        "put delayed": lambda: queue.put("a", timeout=0, delay=0.5),
        "put with a priority": lambda: queue.put("a", timeout=0, priority=4),
        "put at once": lambda: queue.put("a", immediate=0.01),
        "put many": lambda: queue.put_many(["a", "b"], timeout=0),
        "get": lambda: queue.get(timeout=0),
        "consume": lambda: queue.consumer().close(),
        "retry": lambda: retry(queue),
        "reject": lambda: reject(queue),
        "alter": lambda: queue.alter(max_attempts=7),
        "names": broker.queues,
        "broker statistics": broker.statistics,
        "purge": queue.purge,
    }


@pytest.mark.parametrize("value", [0, 1, 7, 1 << 40, 0x0B00_0000_0B00, (1 << 64) - 1])
def test_no_overwritten_word_of_the_settings_blames_the_caller(
    hurt: tuple[shmq.Broker, SegmentBytes, shmq.Queue[Any]], value: int
) -> None:
    broker, memory, queue = hurt
    blamed: list[str] = []
    for place, at in words(memory, queue).items():
        before = memory.word(at)
        if before == value:
            continue
        memory.write(at, value)
        for name, call in calls(broker, queue).items():
            try:
                call()
            except SAID_OF_THE_QUEUE:
                pass
            except Exception as error:
                blamed.append(f"{name} with {place} = {value:#x}: {type(error).__name__}: {error}")
        memory.write(at, before)
    assert blamed == []
    assert usage(broker)["damage"] > 0
    assert broker.queue("other").get(timeout=0) == "here"


@pytest.mark.parametrize("field", ["max_ttl_ns", "lease_ns", "max_bytes", "live_consumers", "dead_letter", "overflow"])
def test_another_possible_value_of_a_setting_is_damage_where_nobody_has_given_it(
    hurt: tuple[shmq.Broker, SegmentBytes, shmq.Queue[Any]], field: str
) -> None:
    broker, memory, queue = hurt
    at = memory.page(queue) + place_of("queue", "settings") + place_of("settings", field)
    memory.flip(at, 1)
    for call in (lambda: queue.options, lambda: broker.queue("jobs", **OPTIONS), lambda: queue.alter(max_deaths=7)):
        with pytest.raises(shmq.CorruptionError):
            call()
    memory.flip(at, 1)
    queue.alter(max_deaths=7)
    assert broker.queue("jobs", max_deaths=7).options["max_deaths"] == 7


@pytest.mark.parametrize("byte", [0, 0x10, 0xFF])
def test_a_damaged_name_is_damage_and_no_second_queue_is_made_beside_it(
    hurt: tuple[shmq.Broker, SegmentBytes, shmq.Queue[Any]], byte: int
) -> None:
    broker, memory, queue = hurt
    queue.put("kept")
    at = memory.page(queue) + place_of("queue", "name") + 1
    memory.write(at, byte, 1)
    for call in (lambda: broker.queue("jobs"), lambda: broker.queue("jobs", create=False), broker.queues):
        with pytest.raises(shmq.CorruptionError):
            call()
    memory.write(at, ord("o"), 1)
    assert sorted(found.name for found in broker.queues()) == ["dead_letters", "jobs", "other"][1:]
    assert broker.queue("jobs").get(timeout=0) == "kept"
