"""Mistakes, in the model and in what the processes run: a search that does not find them finds nothing else either."""

from pathlib import Path
from typing import Any

import shmq
from shmq.engine.consumer.consumer import Consumer
from shmq.engine.dead_lettering.outcome import retry_delay_ns
from shmq.engine.message import message as message_module
from shmq.engine.queue.queue import Queue
from tests.model.entry import Entry, Wants, anything
from tests.model.player import Actor
from tests.model.queue_model import QueueModel

# ---- models that are wrong


class AtTheEnd(QueueModel):
    """A message that comes back goes behind all others."""

    def release(self, entry: Entry, delay: float = 0, elsewhere: bool = False) -> None:
        super().release(entry, delay, elsewhere)
        self.entries.remove(entry)
        self.entries.append(entry)

    def in_order(self) -> list[Entry]:
        return sorted(self.entries, key=lambda entry: (entry.depth, self.entries.index(entry)))


class DeathsForgotten(QueueModel):
    """A message that was with a process that died is as before."""

    def die(self, player: int, pid: int) -> None:
        self.leave(player)


class DelayedStay(QueueModel):
    """Purging takes what is ready only."""

    def purge(self, wants: Wants = anything) -> int:
        return super().purge(lambda entry: entry.state == "ready" and wants(entry))


class KeepsNobodyOut(QueueModel):
    """An exclusive consumer is one among others."""

    def admits(self, exclusive: bool = False) -> bool:
        return True


class MovedStay(QueueModel):
    """A move only copies."""

    def move(self, to: QueueModel, wants: Wants, limit: int | None, copy: bool) -> tuple[str | None, int]:
        return super().move(to, lambda entry: entry.holder is None and wants(entry), limit, True)


class NoReserve(QueueModel):
    """All consumers are served, however many are to be live."""

    def choose_live(self) -> None:
        for subscriber in self.subscribers.values():
            subscriber.live = True


# ---- processes that are wrong


class CountsClosing(Actor):
    """A delivery that ends with the close of its consumer counts as an attempt."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)

        def give_back(consumer: Consumer[Any], loop: int) -> None:
            for message in sorted(consumer._in_hand(), key=lambda message: -message.position):
                message._claimed().release(True)

        setattr(Consumer, "_give_back", give_back)  # noqa: B010


class NeverDead(Actor):
    """Retrying goes on for ever, whatever max_attempts says."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)

        def retry(queue: Queue[Any], delivery: Any, error: Any, delay_ns: int | None = None) -> bool:
            answer: bool = delivery.release(True, retry_delay_ns(queue, delivery) if delay_ns is None else delay_ns)
            return answer

        setattr(message_module, "retry", retry)  # noqa: B010


class TakesTheSecond(Actor):
    """Now and then a message is passed over, and comes back a moment later."""

    def receive(self, number: int, timeout: float) -> Any:
        taker = self.consumers[number] if number else self.queue
        first = taker.receive(timeout=timeout)
        try:
            second = taker.receive(timeout=0)
        except shmq.ShmqError:
            return self.lend(first)
        first.release()
        return self.lend(second)


# Each with the kind of queue in which it is looked for, and with the steps that lead to it besides the usual ones: all
# others would only take time.
USUAL = ("put", "put_many", "receive")
MODELS: dict[type[QueueModel], tuple[str, tuple[str, ...]]] = {
    AtTheEnd: ("plain", ("release",)),
    DeathsForgotten: ("plain", ("kill",)),
    DelayedStay: ("plain", ("purge",)),
    KeepsNobodyOut: ("plain", ("get", "subscribe", "unsubscribe", "leave", "make_exclusive")),
    MovedStay: ("plain", ("move",)),
    NoReserve: ("reserve", ("subscribe", "unsubscribe")),
}
ACTORS: dict[type[Actor], tuple[str, tuple[str, ...]]] = {
    CountsClosing: ("strict", ("subscribe", "unsubscribe")),
    NeverDead: ("strict", ("retry",)),
    TakesTheSecond: ("strict", ()),
}
