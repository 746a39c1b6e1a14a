"""Ends of a soak's process without a death: closes and forks amid calls of its threads, descriptors closed beneath it.

Threads use queues in which nothing is accounted for; what the process has in hand of the others goes back before.
"""

import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shmq

if TYPE_CHECKING:
    from instruments.soak_process import SoakProcess

__all__ = ["close_amid_calls", "fork_amid_calls", "forked", "lose_descriptors", "open_beside_stopped"]

THREADS = 3
WAIT = 0.02  # seconds, of every call that may wait
LIMIT = 120.0  # seconds; a thread that has not ended by then never does


def forked(work: Callable[[], object]) -> int:
    """Runs the work in a child, which ends without a word unless it fails; its pid."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    return pid


def open_beside_stopped(url: str) -> shmq.Broker:
    """Opens the broker, as often as it takes: the soak may have stopped another process amid its own open."""
    while True:
        try:
            return shmq.open(url, create=False)
        except shmq.BrokerError as error:
            if "held by a stopped process" not in str(error):
                raise


def call_on(broker: shmq.Broker, seed: int, stop: threading.Event) -> None:
    """Random calls until the broker is closed in this process, or it is told to stop."""
    numbers = random.Random(seed)
    while not stop.is_set():
        try:
            queue: Any = broker.queue(f"brief-{numbers.randrange(3)}", codec="bytes", maxsize=20)
            draw = numbers.randrange(5)
            if draw == 0:
                queue.put(bytes(numbers.choice((1, 200, 5000))), timeout=0)
            elif draw == 1:
                queue.receive(timeout=WAIT).release()
            elif draw == 2:
                with queue.consumer() as consumer:
                    consumer.receive(timeout=WAIT).ack()
            elif draw == 3:
                queue.loan(300, timeout=WAIT).abandon()
            else:
                queue.get(timeout=WAIT)
        except (shmq.Closed, shmq.BrokerError):
            return
        except shmq.ShmqError:
            pass  # others delete these queues, and shut them down


@contextmanager
def threads_at_work(broker: shmq.Broker, numbers: random.Random) -> Iterator[None]:
    stop = threading.Event()
    threads = [
        threading.Thread(target=call_on, args=(broker, numbers.randrange(1 << 32), stop), daemon=True)
        for _ in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    yield
    stop.set()
    for thread in threads:
        thread.join(LIMIT)
        if thread.is_alive():
            raise AssertionError("a thread still waits although its broker is closed")


def close_amid_calls(process: "SoakProcess") -> None:
    """The broker is closed while threads are amid calls, and opened again."""
    if not process.forked:
        with threads_at_work(process.broker, process.numbers):
            process.open_again()


def fork_amid_calls(process: "SoakProcess") -> None:
    """A child comes into being while threads of its parent are amid calls."""
    if not process.forked:
        with threads_at_work(process.broker, process.numbers):
            process.fork()


def lose_all(broker: shmq.Broker, histories: Path, numbers: random.Random) -> None:
    segment = os.stat(f"/dev/shm/{broker._membership.member.name}")
    with threads_at_work(broker, numbers):
        other = os.open(histories, os.O_TMPFILE | os.O_RDWR, 0o600)
        for name in os.listdir("/proc/self/fd"):
            try:
                if os.path.samestat(os.fstat(int(name)), segment):
                    os.dup2(other, int(name), inheritable=False)
            except OSError:
                continue  # the descriptor of the listing
        call_on(broker, numbers.randrange(1 << 32), threading.Event())  # until it is told


def lose_descriptors(process: "SoakProcess") -> None:
    """Another file gets the numbers of all that leads to the segment, amid calls of threads.

    In a child, which the soak does not stop. For a process that has lost its locks, and is stopped amid a call for
    longer than the patience, may write to memory that is another's by then (docs/guarantees.md).
    """
    if process.forked:
        return
    pid = forked(lambda: lose_all(open_beside_stopped(process.url), process.histories, process.numbers))
    if os.waitpid(pid, 0)[1] != 0:
        raise AssertionError("a process that had lost its descriptors did not end well")
