"""How many queues a broker can have, and what those that are deleted leave for others."""

from contextlib import suppress
from pathlib import Path

import pytest

import shmq
from tests.engine.child import Child

MOST = 4096


def made(broker: shmq.Broker, most: int, maxsize: int) -> list[shmq.Queue[object]]:
    queues: list[shmq.Queue[object]] = []
    with suppress(shmq.Full, shmq.BrokerError):
        queues.extend(broker.queue(f"q{n}", maxsize=maxsize) for n in range(most))
    return queues


def test_as_many_come_as_the_page_says() -> None:
    """Of docs/deployment.md."""
    with shmq.open(memory="256MiB") as broker:
        for number in range(MOST):
            broker.queue(f"q{number}", maxsize=1000)
        with pytest.raises(shmq.BrokerError, match="4096 queues are all that it can have"):
            broker.queue("one more")
    for memory in ("64MiB", "256MiB"):
        with shmq.open(memory=memory) as broker:
            for number in range(1000):
                broker.queue(f"q{number}")


DELETES = """
broker = shmq.open(sys.argv[1])
options = {} if sys.argv[2] == "memory" else {"maxsize": 100}
queues = []
try:
    for number in range(4096):
        queues.append(broker.queue(f"q{number}", **options))
except shmq.Full:
    pass
for queue in queues:
    queue.delete()
say(len(queues))
listen()
"""


@pytest.mark.parametrize("lacking", ["memory", "entries"])
def test_queues_that_a_killed_process_had_deleted_are_in_nobodys_way(broker_dir: Path, lacking: str) -> None:
    """At once: by whoever makes the next one."""
    with shmq.open(broker_dir, memory="32MiB" if lacking == "memory" else "256MiB", disk=0) as broker:
        with Child(DELETES, broker_dir, lacking) as child:
            number = int(child.line())
            assert number > 500
            with pytest.raises(shmq.ShmqError):
                broker.queue("while it lives")
            child.kill()
        broker.queue("now")
        assert len(made(broker, number - 1, 0 if lacking == "memory" else 100)) == number - 1
        broker.delete()
