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
from shmq.engine.claims.staging import put_staged
from shmq.errors import Full, NotFound, ShmqError

if TYPE_CHECKING:
    from shmq.engine.arrow.outgoing import Outgoing
    from shmq.engine.broker.broker import Broker
    from shmq.engine.queue.queue import Queue

__all__ = ["Stage", "StageWriter", "drop", "is_stage_of"]

_INFIX = ".stage."
_RANDOM = 8  # bytes of a name, as text two digits each
_STAGE = re.compile(rf"{re.escape(_INFIX)}[0-9a-f]{{{2 * _RANDOM}}}$")


@dataclass(frozen=True)
class Stage:
    """One staging queue: its name, its identity, how many entries were put, and whether any has a ttl or a delay."""

    queue: str
    id: str
    count: int
    timed: bool = False


def is_stage_of(name: str, queue: str) -> bool:
    """Made by a StageWriter for this queue? Other queues may have names that begin so: nothing is done to them."""
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
    """Puts rows into staging queues, in their order; into a new one where one is full.

    Arguments:
        target: into which the rows shall go one day.
        ttl: seconds without any use after which a staging queue is deleted.
        most: so many staging queues of all queues may there be in the broker; None: no limit.
    """

    def __init__(self, target: Queue[Any], ttl: float, most: int | None = None) -> None:
        self._target = target
        self._ttl = ttl
        self._most = most
        self._queue: Queue[Any] | None = None
        self._count = 0
        self._timed = False
        self._done: list[Stage] = []

    def write(self, rows: Iterable[Outgoing | Bodies]) -> list[Stage]:
        """All of them, or none: what was staged before an error is dropped.

        Raises Full, OutOfSpace without memory; ValueError, TypeError for what cannot be put.
        """
        try:
            for row in rows:
                self._put(row)
        except BaseException:
            self._close()
            drop(self._target.broker, self._done)
            raise
        self._close()
        return self._done

    def _put(self, row: Outgoing | Bodies) -> None:
        while True:
            if self._queue is None:
                self._queue = self._new()
            try:
                self._timed = self._timed or row.timed
                put_staged(self._queue, self._target, row)
                self._count += row.count if isinstance(row, Bodies) else 1
                return
            except Full as full:
                self._count += full.accepted
                if full.resource == "memory" or not self._count:
                    raise
                if isinstance(row, Bodies):
                    row = row.behind(full.accepted)
                self._close()

    def _new(self) -> Queue[Any]:
        if self._most is not None:
            self._check_room(self._most)
        name = f"{self._target.name}{_INFIX}{secrets.token_hex(_RANDOM)}"
        return self._target.broker.queue(name, expires=self._ttl, max_deliveries=0, max_deaths=0)

    def _check_room(self, most: int) -> None:
        there = sum(1 for queue in self._target.broker.queues() if _STAGE.search(queue.name))
        if there >= most:
            raise ShmqError(
                f"there is no room for another staging queue of {self._target.name!r}",
                figures=f"{there:,} wait to be published, and {most:,} are the most for callers of a gateway",
                remedy="they go when their batches are published, or stageTtl is over; on the gateway's host "
                "`shmq spark publish QUEUE --drop-stages` deletes those that nobody has decided",
            )

    def _close(self) -> None:
        if self._queue is not None:
            self._done.append(Stage(self._queue.name, identity_of(self._queue), self._count, self._timed))
        self._queue, self._count, self._timed = None, 0, False
