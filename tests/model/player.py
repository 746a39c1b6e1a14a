"""A process with a membership of its own that does with one queue what it is told through a pipe."""

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import shmq
from shmq.core.queue import reap
from tests.model.queue_model import Row
from tests.support.health import usage

MEMORY = "16MiB"
LIMIT = 60.0  # seconds; a machine under load is slow, a hang lasts for ever


@dataclass(frozen=True)
class Raised:
    """An error of shmq, in place of an answer."""

    name: str
    accepted: int = 0


@dataclass(frozen=True)
class Broken:
    """Anything else that went wrong in there."""

    text: str


@dataclass(frozen=True)
class View:
    """What a process sees of the queue at one moment."""

    rows: list[Row]
    statistics: dict[str, Any]
    dead: list[tuple[bytes, str, tuple[int, ...]]]
    faults: list[str]


def row_of(m: shmq.Message[bytes]) -> Row:
    return (
        m.position, m.id, m.body, dict(m.headers),
        m.priority, m.redelivered, m.delivery_count, m.expires_at is not None, m.group,
    )  # fmt: skip


class Actor:
    """The commands, in the child."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open()

    def open(self) -> None:
        self.broker = shmq.open(self.path, memory=MEMORY)
        self.consumers: dict[int, shmq.Consumer[bytes]] = {}
        self.messages: dict[int, shmq.Message[bytes]] = {}
        self.past: list[shmq.Message[bytes]] = []  # of consumers that were closed

    def use(self, name: str, options: dict[str, Any]) -> None:
        self.queue: shmq.Queue[bytes] = self.broker.queue(name, **options)

    def forget(self) -> None:
        """The queue is over."""
        for consumer in self.consumers.values():
            consumer.close()
        for m in self.messages.values():
            self.late(m)  # or its consumer would keep it
        self.consumers, self.messages, self.past = {}, {}, []
        gc.collect()

    def remains(self) -> tuple[int, int]:
        """When all have forgotten it, it is deleted. What is left: blocks in use, damage."""
        for queue in self.broker.queues():
            queue.delete()
        assert self.broker._membership.live().valid() is None
        found = usage(self.broker)
        return found["blocks_used"] + found["blocks_building"], found["damage"]

    def look(self) -> View:
        statistics, faults = self.queue.statistics(), []
        rows = [row_of(m) for m in self.queue.browse()]
        census = self.queue._census()
        damage = self.queue._check()
        if damage is not None:
            faults.append(str(damage))
        faults += [f"{name}: {census[name]}" for name in ("claimed", "holes", "broken") if census[name]]
        dead: list[tuple[bytes, str, tuple[int, ...]]] = []
        if statistics.dead_lettered:
            for m in self.broker.queue(f"{self.queue.name}.dead", create=False).browse():
                assert m.death is not None
                dead.append((m.body, m.death.reason, m.death.pids))
        names = [name for name in statistics.__dataclass_fields__ if name not in ("name", "oldest_age", "memory_bytes")]
        return View(rows, {name: getattr(statistics, name) for name in names}, dead, faults)

    # ---- produce and take

    def put(self, body: bytes, options: dict[str, Any]) -> int:
        return self.queue.put(body, timeout=0, **options)

    def put_many(self, bodies: list[bytes], options: dict[str, Any]) -> None:
        self.queue.put_many(bodies, timeout=0, **options)

    def get(self) -> bytes:
        return self.queue.get(timeout=0)

    def get_many(self, limit: int) -> list[bytes]:
        return self.queue.get_many(limit, timeout=0)

    def lend(self, m: shmq.Message[bytes]) -> Row:
        self.messages[m.position] = m
        return row_of(m)

    def receive(self, number: int, timeout: float) -> Row:
        taker = self.consumers[number] if number else self.queue
        return self.lend(taker.receive(timeout=timeout))

    def receive_many(self, number: int, limit: int) -> list[Row]:
        taker = self.consumers[number] if number else self.queue
        return [self.lend(m) for m in taker.receive_many(limit, timeout=0)]

    def settle(self, position: int, outcome: str, options: dict[str, Any]) -> None:
        getattr(self.messages.pop(position), outcome)(**options)

    def turn(self, count: int) -> None:
        """So many messages pass, whatever else is there: the ring turns under what stays."""
        with self.queue.consumer(selector="turn = TRUE") as consumer:
            for _ in range(count):
                self.queue.put(b"", headers={"turn": True}, timeout=0)
                consumer.receive(timeout=0).ack()

    # ---- consumers and processes

    def subscribe(self, number: int, selector: str | None, prefetch: int | None) -> None:
        self.consumers[number] = self.queue.consumer(selector=selector, prefetch=prefetch)

    def unsubscribe(self, number: int) -> list[str]:
        """Answers what the settlement of each message that it had raises now."""
        consumer = self.consumers.pop(number)
        consumer.close()
        late = [m for m in self.messages.values() if m._consumer is consumer]
        self.messages = {position: m for position, m in self.messages.items() if m not in late}
        return [self.late(m) for m in late]

    def late(self, m: shmq.Message[bytes]) -> str:
        try:
            m.ack()
        except shmq.SettlementError:
            return "SettlementError"
        return "nothing"

    def leave(self) -> None:
        """Out of the broker and back in."""
        name = self.queue.name
        self.broker.close()
        self.open()
        self.use(name, {})

    def bury_the_dead(self) -> None:
        reap(self.broker._membership.live())

    # ---- look and manage

    def browse(self, start: int | str, selector: str | None) -> list[Row]:
        return [row_of(m) for m in self.queue.browse(start=start, selector=selector)]  # type: ignore[arg-type]

    def purge(self, selector: str | None) -> int:
        return self.queue.purge(selector=selector)

    def shutdown(self, immediate: bool) -> None:
        self.queue.shutdown(immediate=immediate)

    def reopen(self) -> None:
        self.queue.reopen()

    def alter(self, options: dict[str, Any]) -> None:
        self.queue.alter(**options)


def act(path: Path, make: Callable[[Path], Actor], pipe: Connection, parent: int) -> None:
    actor = make(path)
    pipe.send(None)
    while True:
        while not pipe.poll(5):
            if os.getppid() != parent:
                return  # a test that was killed leaves nobody behind
        command, arguments = pipe.recv()
        if command == "end":
            actor.broker.close()
            pipe.send(None)
            return
        try:
            answer = getattr(actor, command)(*arguments)
        except shmq.ShmqError as error:
            answer = Raised(type(error).__name__, getattr(error, "accepted", 0))
        except Exception:
            answer = Broken(traceback.format_exc())
        pipe.send(answer)


class Player:
    """The child as its parent sees it."""

    def __init__(self, path: Path, make: Callable[[Path], Actor] = Actor) -> None:
        self.pipe, theirs = Pipe()
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                self.pipe.close()
                act(path, make, theirs, parent)
                code = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
                sys.stderr.flush()
            finally:
                os._exit(code)
        theirs.close()
        self.alive = True
        self.answer()

    def tell(self, command: str, *arguments: Any) -> None:
        self.pipe.send((command, arguments))

    def answer(self) -> Any:
        try:
            if not self.pipe.poll(LIMIT):
                raise AssertionError(f"player {self.pid} said nothing for {LIMIT} s")
            answer = self.pipe.recv()
        except (AssertionError, EOFError, OSError) as error:
            self.kill()
            raise AssertionError(f"player {self.pid} does not answer: {error!r}") from error
        assert not isinstance(answer, Broken), answer.text
        return answer

    def ask(self, command: str, *arguments: Any) -> Any:
        self.tell(command, *arguments)
        return self.answer()

    def kill(self) -> None:
        if self.alive:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.alive = False
            self.pipe.close()

    def end(self) -> None:
        if self.alive:
            self.ask("end")
            os.waitpid(self.pid, 0)
            self.alive = False
            self.pipe.close()
