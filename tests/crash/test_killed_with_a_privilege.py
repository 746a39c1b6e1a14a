"""One that keeps others waiting is killed with nothing in hand: no message comes back that would wake them."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.support.offspring import Offspring, Say

# Sleepers look by themselves after some ten seconds where the patience is a minute: who is told earlier has been told
# by the watch, which looks every 20 ms.
PATIENCE = 60.0
EARLY = 5.0  # seconds; a machine under load is slow
ROUNDS = 4  # that none of them profits from the death before it

# Options of the queue and of its messages, and whether the one that is killed takes by get().
PRIVILEGES: Mapping[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "live place": ({"live_consumers": 1}, {}, False),
    "sticky group": ({"groups": "sticky"}, {"group": "g"}, False),
    "sticky group of a getter": ({"groups": "sticky"}, {"group": "g"}, True),
}


def take_and_settle(path: Path, name: str, by_get: bool, say: Say) -> None:
    queue: shmq.Queue[Any] = shmq.open(path).queue(name)
    if by_get:
        queue.get()
    else:
        consumer = queue.consumer()
        consumer.receive().ack()
    say("has it")
    threading.Event().wait()


@pytest.mark.parametrize("privilege", PRIVILEGES)
def test_when_it_is_killed_the_next_one_has_what_is_there_at_once(broker_dir: Path, privilege: str) -> None:
    """Its killed process held no message. Shows G4."""
    options, extras, by_get = PRIVILEGES[privilege]
    took: list[Any] = []
    with shmq.open(broker_dir, memory="16MiB", patience=PATIENCE) as broker:
        for number in range(ROUNDS):
            queue: shmq.Queue[Any] = broker.queue(f"jobs{number}", **options)
            queue.put_many(["first", "second"], **extras)
            with Offspring(take_and_settle, broker_dir, queue.name, by_get) as child:
                child.expect("has it")
                heir = queue.consumer()
                with pytest.raises(shmq.Empty):
                    heir.receive(timeout=0)
                waits = threading.Thread(target=lambda: took.append(heir.receive().body))  # noqa: B023
                waits.start()
                child.kill()
                waits.join(EARLY)
                assert took == ["second"] * (number + 1), f"within {EARLY} s in round {number}"
                heir.close()
