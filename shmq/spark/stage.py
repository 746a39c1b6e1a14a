"""Staged rows: what one run of a task has written, in queues of its own, which nobody reads before they are published.

Their names are random, for partition and attempt numbers come again when a batch is run again. A stage that is never
published expires.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shmq.engine.arrow.bodies import Bodies
from shmq.engine.claims.claim import identity_of
from shmq.engine.claims.staging import put_staged, roomy_stages, takes_more
from shmq.engine.handle.open_queue import membership_of
from shmq.errors import Full, NotFound, ShmqError
from shmq.spark.options import NO_QUEUE

if TYPE_CHECKING:
    from shmq.engine.arrow.outgoing import Outgoing
    from shmq.engine.broker.broker import Broker
    from shmq.engine.queue.queue import Queue

__all__ = ["Stage", "StageWriter", "drop", "is_stage_of"]

_INFIX = ".stage."
_FEW_SLOTS = 1024
_RANDOM = 8  # bytes of a name, as text two digits each
_STAGE = re.compile(rf"{re.escape(_INFIX)}[0-9a-f]{{{2 * _RANDOM}}}$")


@dataclass(frozen=True)
class Stage:
    """One staging queue.

    Arguments:
        queue: its name.
        id: its identity.
        count: how many entries were put.
        timed: any has a ttl or a delay.
        into, into_id: name and identity of the queue into which they go; "": that of the write.
    """

    queue: str
    id: str
    count: int
    timed: bool = False
    into: str = ""
    into_id: str = ""


@dataclass
class _Open:
    """A stage that still takes rows."""

    queue: Queue[Any]
    target: Queue[Any]
    count: int = 0
    timed: bool = False


def is_stage_of(name: str, queue: str) -> bool:
    """Says whether a StageWriter made the stage for this queue. Other queues may have names that begin like it."""
    return re.fullmatch(f"{re.escape(queue + _INFIX)}[0-9a-f]{{{2 * _RANDOM}}}", name) is not None


def drop(broker: Broker, stages: Iterable[Stage]) -> None:
    """Deletes staging queues, if they are still there."""
    for stage in stages:
        try:
            found = broker.queue(stage.queue, create=False)
            if identity_of(found) == stage.id:
                found.delete()
        except NotFound:
            continue


class StageWriter:
    """Puts rows into staging queues, in their order, one for each queue into which they go. It makes a new one where
    one is full, or has no slots left while there is memory for more.

    Arguments:
        home: queue of the write: into which rows go that name none. Stages are named after it, and its notes decide.
        ttl: seconds without any use after which a staging queue is deleted.
        most: so many staging queues of all queues may there be in the broker; None: no limit.
    """

    def __init__(self, home: Queue[Any], ttl: float, most: int | None = None) -> None:
        self._home = home
        self._ttl = ttl
        self._most = most
        self._open: dict[str, _Open] = {}  # by the name of the queue into which the rows go
        self._done: list[Stage] = []

    def write(self, rows: Iterable[Outgoing | Bodies]) -> list[Stage]:
        """Stages all rows, or none: after an error it drops the rows that it has staged.

        Raises Full or OutOfSpace without memory; ValueError or TypeError for a row that cannot be put.
        """
        try:
            for row in rows:
                self._put(row)
        except BaseException:
            self._close_all()
            drop(self._home.broker, self._done)
            raise
        self._close_all()
        return self._done

    def _put(self, row: Outgoing | Bodies) -> None:
        name = row.queue or self._home.name
        if name == NO_QUEUE:
            raise ValueError(
                "a row's queue is NULL, and no option queue says where it goes; give .option('queue', 'orders'), or "
                "leave such rows out: where('queue IS NOT NULL')"
            )
        while True:
            stage = self._open.get(name) or self._opened(name)
            count = row.count if isinstance(row, Bodies) else 1
            if stage.count and not takes_more(stage.queue, stage.count, count, self._there):
                self._close(name)
                continue
            try:
                stage.timed = stage.timed or row.timed
                put_staged(stage.queue, stage.target, row)
                stage.count += count
                return
            except Full as full:
                stage.count += full.accepted
                if full.resource == "memory" or not stage.count:
                    raise
                if isinstance(row, Bodies):
                    row = row.behind(full.accepted)
                self._close(name)

    def _opened(self, name: str) -> _Open:
        if self._most is not None:
            self._check_room(self._most)
        broker = self._home.broker
        target = self._home if name == self._home.name else broker.queue(name)
        stage = f"{self._home.name}{_INFIX}{secrets.token_hex(_RANDOM)}"
        made = _Open(self._made(stage), target)
        self._open[name] = made
        return made

    def _made(self, name: str) -> Queue[Any]:
        """Slots are memory until the stage is published, wherever its rows are: those of many tasks have few each."""
        few = self._there() >= roomy_stages(membership_of(self._home).memory)
        made = self._home.broker.queue(
            name, expires=self._ttl, max_attempts=0, max_deaths=0, maxsize=_FEW_SLOTS if few else 0
        )
        if few:
            made.alter(maxsize=0)  # the slots stay, and are no limit
        return made

    def _there(self) -> int:
        """Counts the staging queues of the broker."""
        return sum(1 for queue in self._home.broker.queues() if _STAGE.search(queue.name))

    def _check_room(self, most: int) -> None:
        there = self._there()
        if there >= most:
            raise ShmqError(
                f"there is no room for another staging queue of {self._home.name!r}",
                figures=f"{there:,} wait to be published, and {most:,} are the most for callers of a gateway",
                remedy="they go when their batches are published, or stageTtl is over; on the gateway's host "
                "`shmq spark publish QUEUE --drop-stages` deletes undecided ones",
            )

    def _close(self, name: str) -> None:
        stage = self._open.pop(name)
        routed = (name, identity_of(stage.target)) if name != self._home.name else ("", "")
        self._done.append(Stage(stage.queue.name, identity_of(stage.queue), stage.count, stage.timed, *routed))

    def _close_all(self) -> None:
        for name in list(self._open):
            self._close(name)
