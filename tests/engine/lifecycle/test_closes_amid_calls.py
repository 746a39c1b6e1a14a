"""Closes, ends of processes and forks while other threads of the process are amid calls: nothing is left in no hand.

Shows G2.
"""

import gc
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import eventually
from tests.engine.lifecycle import ending_threads
from tests.engine.lifecycle.test_shutdown import finish, in_thread
from tests.support.health import check_sound
from tests.support.size import sized

PROGRAM = Path(ending_threads.__file__)
ROUNDS = sized(5, 60)  # processes with each ending


def in_hand_and_ready(directory: Path) -> tuple[int, int]:
    """As a member sees it that has just come."""
    with shmq.open(directory) as broker:
        statistics = broker.queue("jobs", codec="bytes").statistics()
        return statistics.unsettled, statistics.ready


@pytest.mark.parametrize("outcome", ["released", "retried", "dropped"])
def test_a_message_whose_settlement_has_begun_goes_back_with_a_close(broker_dir: Path, outcome: str) -> None:
    """The thread that settles has the right to it, and no consumer lists it any more. Shows G5, R3."""
    broker = shmq.open(broker_dir, memory="16MiB")
    queue = broker.queue("jobs", codec="bytes")
    queue.put(b"a")
    message = queue.receive()
    delivery = message._claimed()  # as far as release() and its like have come when another thread closes
    assert delivery is not None
    broker.close()
    if outcome == "dropped":
        del delivery
        gc.collect()
    else:
        with pytest.raises(shmq.Closed):
            delivery.release(outcome == "retried")
    assert in_hand_and_ready(broker_dir) == (0, 1)


def test_a_settlement_that_has_begun_ends_behind_the_close_of_its_consumer(queue: shmq.Queue[Any]) -> None:
    """Until then no other consumer gets the row in whose name the message is in hand."""
    queue.put("a")
    consumer = queue.consumer()
    delivery = consumer.receive()._claimed()
    assert delivery is not None
    consumer.close()
    assert queue.statistics().unsettled == 1
    other = queue.consumer()
    assert other._row != consumer._row
    assert delivery.release(False)
    assert queue.statistics().consumers == 1
    with other.receive(timeout=0) as m:
        assert m.body == "a"


def test_a_view_that_goes_while_a_close_waits_for_a_call_does_not_give_the_row_back(broker_dir: Path) -> None:
    broker = shmq.open(broker_dir, memory="16MiB")
    queue = broker.queue("jobs", codec="bytes")
    queue.put(bytes(5000))
    view = queue.receive().view()
    member = broker._membership.member
    empty = broker.queue("none")
    waiting, told = in_thread(empty.get)
    eventually(lambda: empty._waiters()["asleep"] == 1, "a call under way")
    closer = threading.Thread(target=broker.close)
    closer.start()
    while not member.closed:
        pass
    del view
    for thread in (closer, waiting):
        finish(thread)
    assert isinstance(told[0], shmq.Closed)
    assert in_hand_and_ready(broker_dir) == (0, 1)


@pytest.mark.parametrize("ending", ending_threads.ENDINGS)
def test_no_message_is_left_in_no_hand_however_threads_are_cut_off(broker_dir: Path, seed: int, ending: str) -> None:
    """Random calls of five threads, cut off anywhere. Shows G2, G5."""
    numbers = random.Random(seed)
    with shmq.open(broker_dir, memory="32MiB", disk="64MiB") as broker:
        for number in range(ROUNDS):
            arguments = [sys.executable, str(PROGRAM), broker.url, str(numbers.randrange(1 << 32)), ending]
            run = subprocess.run(arguments, capture_output=True, text=True, timeout=240)
            assert run.returncode == 0, f"{arguments}: {run.returncode}\n{run.stderr}"
            # Dead messages are logged.
            words = [line for line in run.stderr.splitlines() if "message" not in line.split(" of queue")[0]]
            assert not words, f"{arguments}: {run.stderr}"
            if ending == "delete":
                continue
            queue = broker.queue("jobs", codec="bytes")
            statistics = queue.statistics()
            assert statistics.unsettled == 0, f"round {number}: {arguments}: {statistics}"
            there = statistics.ready + statistics.delayed
            settled = statistics.acked + statistics.dead_lettered
            assert there == statistics.put - settled, f"round {number}: {arguments}: {statistics}"
        check_sound(broker, *broker.queues())
