"""A process with a membership of its own that does with one queue what it is told through a pipe."""

import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import shmq
from shmq.core.queue import reap
from shmq.selector import compiled
from tests.model.entry import Row
from tests.support.health import usage

MEMORY = "16MiB"
# A machine under load stops who waits for longer than the usual patience; who is first by rank is to stay first.
PATIENCE = 20.0  # seconds
LIMIT = 60.0  # seconds; a machine under load is slow, a hang lasts for ever

compiled("a = 1")  # its parser is made once, and not in each child


@dataclass(frozen=True)
class Raised:
    """An error of shmq, in place of an answer."""

    name: str
    accepted: int = 0
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Broken:
    """Anything else that went wrong in there."""

    text: str


@dataclass(frozen=True)
class View:
    """A queue as a process sees it at one moment."""

    rows: list[Row]
    statistics: dict[str, Any]
    faults: list[str]


def row_of(m: shmq.Message[bytes]) -> Row:
    death = None if m.death is None else (m.death.reason, m.death.error, m.death.pids)
    return (
        m.position, m.id, m.body, dict(m.headers), m.priority,
        m.redelivered, m.delivery_count, m.expires_at is not None, m.group, death,
    )  # fmt: skip


def view_of(queue: shmq.Queue[bytes]) -> View:
    statistics, faults = queue.statistics(), []
    rows = [row_of(m) for m in queue.browse()]
    census = queue._census()
    damage = queue._check()
    if damage is not None:
        faults.append(str(damage))
    faults += [f"{name}: {census[name]}" for name in ("claimed", "holes", "broken") if census[name]]
    names = [name for name in statistics.__dataclass_fields__ if name not in ("name", "oldest_age", "memory_bytes")]
    figures = {name: getattr(statistics, name) for name in names}
    return View(rows, {"qsize": queue.qsize(), **figures}, faults)


class Actor:
    """The commands, in the child."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open()

    def open(self) -> None:
        self.broker = shmq.open(self.path, memory=MEMORY, disk="8GiB", patience=PATIENCE)
        self.consumers: dict[int, shmq.Consumer[bytes]] = {}
        self.messages: dict[int, shmq.Message[bytes]] = {}
        self.taken: list[shmq.Message[bytes]] = []  # from us, and we have got the same ones again
        self.follower: Iterator[shmq.Message[bytes]] = iter(())

    def use(self, name: str, options: dict[str, Any]) -> None:
        self.queue: shmq.Queue[bytes] = self.broker.queue(name, **options)

    def forget(self) -> None:
        """The queue is over."""
        for consumer in self.consumers.values():
            consumer.close()
        for m in [*self.messages.values(), *self.taken]:
            self.late(m)  # or its consumer would keep it
        self.consumers, self.messages, self.taken, self.follower = {}, {}, [], iter(())
        gc.collect()

    def remains(self) -> tuple[int, int]:
        """Deletes all queues, when all players have forgotten them. Returns the blocks still in use, and the damage."""
        for queue in self.broker.queues():
            queue.delete()
        assert self.broker._membership.live().valid() is None
        found = usage(self.broker)
        return found["blocks_used"] + found["blocks_building"], found["damage"]

    def look(self, names: list[str]) -> list[View | None]:
        """None: there is no such queue."""
        return [self.look_at(name) for name in names]

    def look_at(self, name: str) -> View | None:
        try:
            return view_of(self.broker.queue(name, create=False))
        except shmq.NotFound:
            return None

    def declare(self, name: str, options: dict[str, Any]) -> None:
        self.broker.queue(name, **options)

    def until_crowd(self, who: str, count: int) -> None:
        """So many sleep: consumers and getters ("asleep"), or producers for whom there is no room."""
        end = time.monotonic() + LIMIT / 2
        while self.queue._waiters()[who] != count:  # type: ignore[literal-required]
            assert time.monotonic() < end, f"{self.queue._waiters()} instead of {count} {who}"
            time.sleep(0.0005)

    # ---- produce and take

    def put(self, body: bytes, options: dict[str, Any], timeout: float = 0) -> int:
        return self.queue.put(body, timeout=timeout, **options)

    def put_by_loan(self, body: bytes, options: dict[str, Any]) -> int:
        loan = self.queue.loan(len(body), timeout=0, **options)
        loan.view[:] = body
        return loan.commit()

    def put_many(self, bodies: list[bytes], options: dict[str, Any]) -> None:
        self.queue.put_many(bodies, timeout=0, **options)

    def get(self) -> bytes:
        return self.queue.get(timeout=0)

    def get_many(self, limit: int) -> list[bytes]:
        return self.queue.get_many(limit, timeout=0)

    def lend(self, m: shmq.Message[bytes]) -> Row:
        earlier = self.messages.pop(m.position, None)
        if earlier is not None:
            self.taken.append(earlier)
        self.messages[m.position] = m
        return row_of(m)

    def receive(self, number: int, timeout: float) -> Row:
        taker = self.consumers[number] if number else self.queue
        return self.lend(taker.receive(timeout=timeout))

    def receive_many(self, number: int, limit: int) -> list[Row]:
        taker = self.consumers[number] if number else self.queue
        return [self.lend(m) for m in taker.receive_many(limit, timeout=0)]

    def receive_briefly(self, number: int) -> Row | None:
        """None: its time was over before it could be read."""
        taker = self.consumers[number] if number else self.queue
        m = taker.receive(timeout=0)
        try:
            return self.lend(m)
        except shmq.SettlementError:
            return None

    def settle(self, position: int, outcome: str, options: dict[str, Any]) -> None:
        getattr(self.messages.pop(position), outcome)(**options)

    def touch(self, position: int) -> None:
        self.messages[position].touch()

    def settle_late(self, position: int, outcome: str) -> None:
        """Settles a message that was taken from us; the oldest first, if we have it again."""
        for m in self.taken:
            if m.position == position:
                self.taken.remove(m)
                break
        else:
            m = self.messages.pop(position)
        getattr(m, outcome)()

    def turn(self, count: int) -> None:
        """So many messages pass, whatever else is there: the ring turns under what stays."""
        with self.queue.consumer(selector="turn = TRUE") as consumer:
            for _ in range(count):
                self.queue.put(b"", headers={"turn": True}, timeout=0)
                consumer.receive(timeout=0).ack()

    # ---- consumers and processes

    def sweep(self, names: list[str], limit: int, options: dict[str, Any]) -> tuple[list[tuple[str, bytes]], bool]:
        """Through a consumer of several queues: what came from which, and whether all of them are shut down."""
        queues = [self.broker.queue(name, create=False) for name in names]
        found: list[shmq.Message[bytes]] = []
        with self.broker.consumer(*queues, **options) as consumer:
            shut = False
            try:
                for _ in range(limit):
                    found += consumer.receive_many(1, timeout=0)
            except shmq.ShutDown:
                shut = True
            bodies = [(m.queue.name, m.body) for m in found]
            for m in found:
                m.ack()
            return bodies, shut

    def subscribe(self, number: int, options: dict[str, Any]) -> None:
        self.consumers[number] = self.queue.consumer(**options)

    def unsubscribe(self, number: int) -> list[str]:
        """Answers what the settlement of each message that it had raises now."""
        consumer = self.consumers.pop(number)
        late = [m for m in [*self.taken, *self.messages.values()] if m._consumer is consumer]
        consumer.close()
        self.messages = {position: m for position, m in self.messages.items() if m not in late}
        self.taken = [m for m in self.taken if m not in late]
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

    def part(self) -> None:
        """Out of the broker and back in, without the queue."""
        self.broker.close()
        self.open()

    def reap_the_dead(self) -> None:
        reap(self.broker._membership.live())

    # ---- look and manage

    def join(self) -> None:
        self.queue.join(timeout=0)

    def follow(self, start: str, selector: str | None) -> None:
        self.follower = self.queue.browse(start=start, follow=True, selector=selector)  # type: ignore[arg-type]

    def followed(self, count: int | None) -> list[Row]:
        """So many of the next messages; None: all, up to the end."""
        return [row_of(m) for m in islice(self.follower, count)]

    def browse(self, start: int | str, selector: str | None) -> list[Row]:
        return [row_of(m) for m in self.queue.browse(start=start, selector=selector)]  # type: ignore[arg-type]

    def purge(self, selector: str | None) -> int:
        return self.queue.purge(selector=selector)

    def move(self, names: tuple[str, str], options: dict[str, Any]) -> int:
        source, to = (self.broker.queue(name, create=False) for name in names)
        return source.move(to, **options)

    def delete(self) -> None:
        self.queue.delete()

    def shutdown(self, immediate: bool) -> None:
        self.queue.shutdown(immediate=immediate)

    def reopen(self) -> None:
        self.queue.reopen()

    def alter(self, options: dict[str, Any]) -> None:
        self.queue.alter(**options)


def act(path: Path, make: Callable[[Path], Actor], pipe: Connection, parent: int) -> None:
    gc.freeze()  # what is here is the parent's; a collection need not look at it
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
            answer = Raised(type(error).__name__, getattr(error, "accepted", 0), str(error))
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
