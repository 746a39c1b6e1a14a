"""SIGSTOP at any moment, of several processes at once, for shorter and for longer than the patience: nobody is robbed.

A stopped process is alive, and keeps what it holds, however long it sleeps. Nobody else is given its messages. Its
settlement counts when it goes on, and a put in whose midst it was stopped arrives. No process dies here, and nobody
releases anything: so each message is delivered once, and never as one that was delivered before. 500 stops in the
suite, 10,000 with SHMQ_FULL=1.
"""

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.crash.test_killed_producer import Ledger
from tests.support.health import check_empty, usage
from tests.support.offspring import Offspring, Say, family
from tests.support.size import sized

Queue = shmq.Queue[Any]
PATIENCE = 0.02
STOPS = sized(500, 10_000)
PRODUCERS, CONSUMERS = 3, 5


def produce(queue: Queue, producer: int, say: Say) -> None:
    """One by one, in batches, and in place; bodies in slots and in blocks."""
    numbers = random.Random(producer)
    number = 0
    say("here")
    try:
        while True:
            kind = numbers.randrange(4)
            if kind == 0:
                queue.put_many(body_of(producer, n) for n in range(number, number + 10))
                number += 10
                continue
            body = body_of(producer, number)
            if kind == 1:
                with queue.loan(len(body)) as loan:
                    loan.view[:] = body
            else:
                queue.put(body)
            number += 1
    except shmq.ShutDown as error:
        say(number + getattr(error, "accepted", 0))


def body_of(producer: int, number: int) -> bytes:
    return b"%d %d " % (producer, number) + b"x" * (number * 37 % 3000 if number % 3 == 0 else 0)


def settle(queue: Queue, book: Path, seed: int, say: Say) -> None:
    """Holds up to eight messages at a time; writes each down before it is settled. A robbery is an error here."""
    numbers = random.Random(seed)
    held: list[shmq.Message[Any]] = []
    say("here")
    robbed = again = 0
    with book.open("wb") as file:
        open_ = True
        while open_ or held:
            if open_ and len(held) < 8 and numbers.random() < 0.6:
                try:
                    held += queue.receive_many(numbers.choice([1, 3]))
                except shmq.ShutDown:
                    open_ = False
            elif held:
                message = held.pop(numbers.randrange(len(held)))
                again += message.redelivered or message.delivery_count != 1
                file.write(bytes(message.body[:24]).ljust(24) + b"\n")
                try:
                    message.ack()
                except shmq.SettlementError:
                    robbed += 1
    say(f"{robbed} {again}")


def stop_some(rng: random.Random, children: list[Offspring], count: int) -> int:
    """Stops up to `count` times, a few processes at once and at any moment of theirs; the number of stops."""
    stops = 0
    while stops < count:
        stopped = rng.sample(children, rng.choice([1, 1, 2, 3, 4]))
        for child in stopped:
            child.signal(signal.SIGSTOP)
            time.sleep(rng.random() * 0.001)
        time.sleep(rng.choice([0.2, 1, 1, 2, 4]) * PATIENCE * (0.8 + 0.4 * rng.random()))
        rng.shuffle(stopped)
        for child in stopped:
            child.signal(signal.SIGCONT)
        stops += len(stopped)
        time.sleep(rng.random() * 0.004)
    return stops


@pytest.mark.timeout(sized(900, 3600))
@pytest.mark.parametrize("maxsize", [0, 100], ids=["unlimited", "full_all_the_time"])
def test_no_stopped_process_is_robbed(
    broker_dir: Path, tmp_path: Path, seed: int, maxsize: int, figure: Callable[..., None]
) -> None:
    """Shows R3, G3."""
    rng = random.Random(seed)
    books = [tmp_path / f"book-{number}" for number in range(CONSUMERS)]
    with shmq.open(broker_dir, memory="64MiB", patience=PATIENCE) as broker, family() as children:
        queue = broker.queue("jobs", codec="bytes", maxsize=maxsize)
        for number in range(PRODUCERS):
            children.append(Offspring(produce, queue, number))
        for number, book in enumerate(books):
            children.append(Offspring(settle, queue, book, number))
        for child in children:
            child.expect("here")
        stops = stop_some(rng, children, STOPS // 2)
        queue.shutdown()
        accepted = [int(child.line()) for child in children[:PRODUCERS]]
        told = [child.line().split() for child in children[PRODUCERS:]]
        for child in children:
            assert child.wait() == 0
        robbed = sum(int(words[0]) for words in told)
        again = sum(int(words[1]) for words in told)
        figure("stops", stops=stops, robbed=robbed + again)
        print(f"{stops} stops, {sum(accepted)} messages, rescues {usage(broker)['rescues']}")
        assert (robbed, again) == (0, 0)
        came = sorted(line.split(b" ")[:2] for book in books for line in book.read_bytes().splitlines())
        for producer, count in enumerate(accepted):
            numbers = sorted(int(number) for name, number in came if int(name) == producer)
            # The last call may have put more than it came to tell, when the queue was shut down under it.
            assert numbers == list(range(len(numbers))), f"producer {producer}: lost or doubled"
            assert count <= len(numbers) <= count + 10
        check_empty(broker, queue)


def put_batches(queue: Queue, say: Say) -> None:
    say("here")
    number = 0
    while True:
        queue.put_many(b"0 %d " % n for n in range(number, number + 50))
        number += 50


def test_puts_that_stop_in_their_midst_arrive_after_all(broker_dir: Path, seed: int) -> None:
    """One producer that does nothing but put, stopped for longer than the patience: what others passed by as a hole
    comes later, and in the producer's order. Shows S3."""
    rng = random.Random(seed)
    stops = sized(60, 2000)
    with shmq.open(broker_dir, memory="64MiB", patience=0.005) as broker:
        queue = broker.queue("jobs", codec="bytes", maxsize=200)
        ledger = Ledger()
        with Offspring(put_batches, queue) as child:
            child.expect("here")
            for _ in range(stops):
                for _ in range(rng.randrange(1, 300)):
                    ledger.note(queue.get(timeout=30))
                child.signal(signal.SIGSTOP)
                deadline = time.monotonic() + 0.015
                while time.monotonic() < deadline:
                    ledger_note_if_there(queue, ledger)
                child.signal(signal.SIGCONT)
            child.signal(signal.SIGCONT)
            child.kill()
        while ledger_note_if_there(queue, ledger):
            pass
        print(f"{stops} stops, {ledger.next[0]} messages")
        check_empty(broker, queue)


def ledger_note_if_there(queue: Queue, ledger: Ledger) -> bool:
    try:
        ledger.note(queue.get(timeout=0.002))
    except shmq.Empty:
        return False
    return True
