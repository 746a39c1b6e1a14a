"""Queues that nobody reads leave memory to others: to their messages, and to new queues."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.repo.tree import ROOT
from tests.support.health import check_empty

DEEP = 4000  # messages of 1,000 bytes; four such queues have all of the memory
QUEUES = 8


def body(number: int) -> bytes:
    return b"%08d" % number + bytes(992)


def put_all(queue: shmq.Queue[Any], count: int) -> None:
    for number in range(count):
        queue.put(body(number), timeout=0)


def make_many(broker: shmq.Broker, count: int) -> None:
    for number in range(count):
        broker.queue(f"new-{number}")


def deep(broker: shmq.Broker, number: int) -> shmq.Queue[Any]:
    queue: shmq.Queue[Any] = broker.queue(f"deep-{number}", codec="bytes")
    put_all(queue, DEEP)
    return queue


def test_each_of_many_deep_queues_gets_memory(broker: shmq.Broker) -> None:
    queues = [deep(broker, number) for number in range(QUEUES)]
    assert broker.statistics().memory_used <= 2**24
    for queue in queues:
        assert [int(queue.get(timeout=0)[:8]) for _ in range(DEEP)] == list(range(DEEP))
    check_empty(broker, *queues)


def test_each_of_many_deep_queues_gets_memory_while_all_are_read_a_little(broker: shmq.Broker) -> None:
    queues = []
    for number in range(QUEUES):
        queues.append(deep(broker, number))
        for queue in queues:
            queue.get(timeout=0)
    rest = [DEEP - (QUEUES - number) for number in range(QUEUES)]
    assert [queue.qsize() for queue in queues] == rest
    for queue, left in zip(queues, rest, strict=True):
        assert [int(queue.get(timeout=0)[:8]) for _ in range(left)] == list(range(DEEP - left, DEEP))


def test_a_new_queue_gets_memory_that_messages_have(broker: shmq.Broker) -> None:
    """Shows S120, G5."""
    queue = deep(broker, 0)
    for number in range(DEEP, 4 * DEEP):
        queue.put(body(number), timeout=0)
    for number in range(20):
        broker.queue(f"new-{number}", priorities=10).put(number, timeout=0)
    assert [broker.queue(f"new-{number}").get(timeout=0) for number in range(20)] == list(range(20))
    assert [int(queue.get(timeout=0)[:8]) for _ in range(4 * DEEP)] == list(range(4 * DEEP))


def test_without_a_disk_a_new_queue_is_refused_and_the_remedy_named(memory_only: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = memory_only.queue("deep", codec="bytes")
    with pytest.raises(shmq.Full):
        put_all(queue, 4 * DEEP)
    with pytest.raises(shmq.Full, match="take messages out of 'deep'") as refused:
        make_many(memory_only, 1000)
    assert refused.value.resource == "memory"


APART = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=24m tmpfs /dev/shm && exec "$@"', "sh"]
SMALLER = f"""
import sys, shmq
broker = shmq.open(sys.argv[1], memory="64MiB", disk="1GiB")
queues = [broker.queue(f"deep-{{number}}", codec="bytes") for number in range(3)]
for queue in queues:
    for number in range(3 * {DEEP}):
        queue.put(b"%08d" % number + bytes(992), timeout=0)
queues[0].move(to=broker.queue("new", codec="bytes"))
for queue in [broker.queue("new"), *queues[1:]]:
    assert [int(queue.get(timeout=0)[:8]) for _ in range(3 * {DEEP})] == list(range(3 * {DEEP}))
print("each once, in order")
"""


def test_where_dev_shm_is_smaller_than_the_memory_queues_flow_as_if_that_were_it(
    broker_dir: Path, tool: Callable[[str], str]
) -> None:
    tool("unshare")
    if subprocess.run([*APART, "true"], capture_output=True, check=False).returncode:
        pytest.skip("not allowed to mount: run the tests as root, or in a user namespace")
    done = subprocess.run(
        [*APART, sys.executable, "-c", SMALLER, str(broker_dir)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "each once, in order"), done.stderr[-4000:]


MUCH_SMALLER = """
import sys, shmq
place, memory, disk = sys.argv[1:]
broker = shmq.open(place, memory=memory, disk=disk)
queue = broker.queue("q", codec="bytes")
put = 0
try:
    while put < 100_000:
        queue.put(b"%08d" % put + bytes(992), timeout=0)
        put += 1
except (shmq.Full, shmq.OutOfSpace) as error:
    print(error)
assert (disk == "0") == (put < 100_000), put
assert put > 20_000, put  # of 1 KiB and a slot each, in 64 MB
for number in range(put):
    assert int(queue.get(timeout=5)[:8]) == number
queue.put(bytes(1000), timeout=0)
print("each once, in order")
"""


@pytest.mark.parametrize("disk", ["0", "1GiB"])
@pytest.mark.parametrize("memory", ["900MiB", "1GiB", "16GiB"])
def test_memory_may_be_many_times_what_dev_shm_has(
    memory: str, disk: str, broker_dir: Path, tool: Callable[[str], str]
) -> None:
    tool("unshare")
    apart = [part.replace("24m", "64m") for part in APART]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("not allowed to mount: run the tests as root, or in a user namespace")
    done = subprocess.run(
        [*apart, sys.executable, "-c", MUCH_SMALLER, str(broker_dir), memory, disk],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[-1] == "each once, in order", done.stdout
    if disk == "0":
        assert "kept for slots" in done.stdout, done.stdout
