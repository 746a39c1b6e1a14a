"""Sleeps have a time limit, in case that somebody who owed a wake-up was stopped. It is counted when it was needed.

That it never is needed while nobody is stopped is asked for where there is much traffic, in tests/load.
"""

import threading
from pathlib import Path

import shmq
from tests.support.health import check_empty, usage
from tests.support.offspring import eventually
from tests.support.segment_bytes import SegmentBytes, place_of

PATIENCE = 1.0  # seconds; long, so that the sleep's limit is long against what the steps of a test take


def test_a_sleeper_whose_wake_up_was_suppressed_gets_its_message_late_and_is_counted(broker_dir: Path) -> None:
    """As if a notifier had been stopped for ever after it had claimed the sleeper's bit. Shows R4, G4."""
    with shmq.open(broker_dir, memory="16MiB", patience=PATIENCE) as broker, SegmentBytes.of(broker) as memory:
        queue = broker.queue("jobs")
        idle = memory.page(queue) + place_of("queue", "sleepers") + place_of("sleepers", "idle")
        for _ in range(20):  # a consumer that has announced its sleep looks once more, and may have it then
            got: list[str] = []
            sleeper = threading.Thread(target=lambda got=got: got.append(queue.get(timeout=30)))
            sleeper.start()
            eventually(lambda: memory.word(idle) != 0 and queue._waiters()["asleep"] == 1, "the consumer sleeps")
            memory.write(idle, 0)
            queue.put("owed")
            sleeper.join(30)
            assert got == ["owed"]
            if usage(broker)["rescues"]:
                break
        assert usage(broker)["rescues"] == 1
        check_empty(broker, queue)


def test_a_sleeper_that_is_woken_is_not_counted(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="16MiB", patience=PATIENCE) as broker:
        queue = broker.queue("jobs")
        got: list[str] = []
        sleeper = threading.Thread(target=lambda: got.append(queue.get(timeout=30)))
        sleeper.start()
        eventually(lambda: queue._waiters()["asleep"] == 1, "the consumer sleeps")
        queue.put("owed")
        sleeper.join(30)
        assert got == ["owed"]
        assert usage(broker)["rescues"] == 0
