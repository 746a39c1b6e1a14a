"""Processes that delay, retry later, lease and let expire are killed and stopped at random: nothing is lost or held.

A message that was put is acked once, or its last holder was killed in the midst of its ack; what has no time to live is
never counted as expired; and when all is drained nothing is left held, leased or due.
"""

import random
import signal
import time
from pathlib import Path
from typing import Any

import shmq
from tests.support.health import check_empty
from tests.support.offspring import Offspring, Say, family
from tests.support.size import sized

Queue = shmq.Queue[Any]
LEASE = 0.3
ROUNDS = sized(60, 1_000)
MORTAL = "m"


def produce(queue: Queue, book: Path, seed: int, say: Say) -> None:
    numbers = random.Random(seed)
    say("here")
    with book.open("a", buffering=1) as accepted:
        for number in range(1_000_000):
            name = f"{seed}-{number}"
            mortal = numbers.random() < 0.2
            body = MORTAL + name if mortal else name
            print("?" + body, file=accepted)
            queue.put(
                body, delay=numbers.choice([0, 0, 0.001, 0.02]), ttl=numbers.choice([0.005, 0.05]) if mortal else None
            )
            print("+" + body, file=accepted)
            time.sleep(0.001)


def consume(queue: Queue, book: Path, seed: int, say: Say) -> None:
    numbers = random.Random(seed)
    say("here")
    with book.open("a", buffering=1) as acked:
        while True:
            m = queue.receive(timeout=None)
            try:
                fate = numbers.random()
                if fate < 0.15:
                    m.retry(delay=numbers.choice([0, 0.005]))
                elif fate < 0.3:
                    m.release(delay=0.005)
                elif fate < 0.35:
                    m.touch()
                    m.retry()
                else:
                    print("?" + m.body, file=acked)
                    m.ack()
                    print("+" + m.body, file=acked)
            except shmq.SettlementError:
                pass  # it expired in our hands, or we were stopped for longer than the lease


def read(book: Path) -> tuple[set[str], list[str]]:
    lines = book.read_text().splitlines() if book.exists() else []
    return {line[1:] for line in lines if line[:1] == "?"}, [line[1:] for line in lines if line[:1] == "+"]


def test_kills_and_stops_amid_delays_lives_and_leases_lose_and_hold_nothing(
    broker_dir: Path, tmp_path: Path, seed: int
) -> None:
    """Shows R7, R8, R11, E11, G2."""
    numbers = random.Random(seed)
    with shmq.open(broker_dir, memory="32MiB", patience=0.02) as broker, family() as children:
        queue: Queue = broker.queue("timed", lease=LEASE, max_attempts=0, max_deaths=0, retry_delay=0.002)
        started = 0

        def start() -> Offspring:
            nonlocal started
            started += 1
            work = produce if started % 3 == 1 else consume
            kind = "put" if work is produce else "ack"
            child = Offspring(work, queue, tmp_path / f"{kind}-{started}", started)
            child.expect("here")
            return child

        children.extend(start() for _ in range(6))
        for _ in range(ROUNDS):
            victim = numbers.randrange(len(children))
            time.sleep(numbers.uniform(0.002, 0.02))
            if numbers.random() < 0.5:
                children[victim].signal(signal.SIGSTOP)
                time.sleep(numbers.choice([0.01, 0.05, LEASE * 1.3]))
                children[victim].signal(signal.SIGCONT)
            else:
                children[victim].signal(signal.SIGKILL)
                children[victim].wait()
                children[victim] = start()
        for child in children:
            child.signal(signal.SIGKILL)
            child.wait()
        put_tried, put = set(), set()
        for book in tmp_path.glob("put-*"):
            tried, done = read(book)
            put_tried |= tried
            put |= set(done)
        ack_tried: set[str] = set()
        acked: list[str] = []
        for book in tmp_path.glob("ack-*"):
            tried, done = read(book)
            ack_tried |= tried
            acked += done
        assert len(acked) == len(set(acked)), "acked twice"
        left = []
        while (s := queue.statistics()).ready + s.delayed + s.unsettled:
            try:
                with queue.receive(timeout=1) as m:
                    left.append(m.body)
            except (shmq.Empty, shmq.SettlementError):
                pass
        assert not set(left) & set(acked), "delivered after its ack"
        immortal = {body for body in put if not body.startswith(MORTAL)}
        assert immortal - set(acked) - ack_tried <= set(left), "lost"
        assert set(left) | set(acked) <= put_tried
        mortal = {body for body in put_tried if body.startswith(MORTAL)}
        assert queue.statistics().expired <= len(mortal)
        check_empty(broker, queue)
        assert broker.statistics().processes[0].unsettled == 0
