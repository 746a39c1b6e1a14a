"""Consumers in threads of their own, of which each keeps what it gets."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import shmq
from tests.engine.child import eventually
from tests.engine.lifecycle.test_shutdown import in_thread


def begin(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Starts the call in a thread; the list gets what it answers or raises."""
    return in_thread(call)


def settled(consumer: shmq.Consumer[Any]) -> list[Any]:
    """The bodies of all messages up to the shutdown, each settled."""
    bodies = []
    for m in consumer:
        with m:
            bodies.append(m.body)
    return bodies


def asleep(queue: shmq.Queue[Any]) -> int:
    """How many sleep at the queue."""
    return queue._waiters()["asleep"]


class Crowd:
    """Threads that take until the queue is shut down; `taken` has what each of them got, by its number."""

    def __init__(self, queue: shmq.Queue[Any], size: int, settle: bool = True) -> None:
        self.queue, self.size = queue, size
        self.taken: list[list[Any]] = [[] for _ in range(size)]
        self._settle = settle
        self._may_go = threading.Event()
        self._threads = [threading.Thread(target=self._take, args=(number,), daemon=True) for number in range(size)]
        for thread in self._threads:
            thread.start()

    def _take(self, number: int) -> None:
        with self.queue.consumer() as consumer:
            held = []  # what is not settled must live until the end, or it would count as forgotten
            while True:
                try:
                    m = consumer.receive()
                except shmq.ShutDown:
                    return
                self.taken[number].append(m.body)
                if self._settle:
                    m.ack()
                    continue
                held.append(m)
                self._may_go.wait()
                return

    def all_sleep(self, count: int | None = None) -> None:
        eventually(lambda: asleep(self.queue) == (self.size if count is None else count), "a sleeping crowd")

    def have(self, count: int) -> None:
        """Waits until so many messages are with them."""
        eventually(lambda: sum(map(len, self.taken)) == count, f"{count} taken")

    def end(self) -> None:
        self._may_go.set()
        self.queue.shutdown(immediate=True)
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive()


@contextmanager
def crowd(queue: shmq.Queue[Any], size: int, settle: bool = True) -> Iterator[Crowd]:
    it = Crowd(queue, size, settle)
    try:
        it.all_sleep()
        yield it
    finally:
        it.end()
