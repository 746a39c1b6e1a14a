"""Mistakes, in the model and in what the processes run: a search that does not find them finds nothing else either."""

from pathlib import Path
from typing import Any

import shmq
from shmq.engine.consumer import Consumer
from shmq.engine.queue import Queue
from tests.model.player import Actor
from tests.model.queue_model import Entry, QueueModel, Wants, anything

# ---- models that are wrong


class AtTheEnd(QueueModel):
    """What comes back goes behind all others."""

    def release(self, entry: Entry, delayed: bool = False, elsewhere: bool = False) -> None:
        super().release(entry, delayed, elsewhere)
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


# ---- processes that are wrong


class CountsClosing(Actor):
    """What a consumer had in hand when it was closed counts as an attempt."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)

        def give_back(consumer: Consumer[Any], rights: dict[int, object] | None = None) -> None:
            for position in sorted(consumer._held, reverse=True):
                consumer._held.pop(position)[0].release(True)

        setattr(Consumer, "_give_back", give_back)  # noqa: B010


class NeverDead(Actor):
    """Retrying goes on for ever, whatever max_deliveries says."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)

        def retry(queue: Queue[Any], delivery: Any, error: Any, delay_ns: int | None = None) -> bool:
            answer: bool = delivery.release(True, queue._retry_delay_ns(delivery) if delay_ns is None else delay_ns)
            return answer

        setattr(Queue, "_retry", retry)  # noqa: B010


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


MODELS = (AtTheEnd, DeathsForgotten, DelayedStay)
ACTORS = (CountsClosing, NeverDead, TakesTheSecond)
