"""Ranges of entries: what one task of Spark reads. Reading has no side effect; Spark may do it twice, and twice at
once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from shmq.engine.claims.claim import entries_between, identity_of
from shmq.errors import NotFound
from shmq.spark.data_lost import DataLost

if TYPE_CHECKING:
    from shmq.core.queue import Browsed
    from shmq.engine.broker.broker import Broker
    from shmq.engine.queue.queue import Queue

__all__ = ["EntryRange", "check_found", "entries_of", "queue_of", "split"]


@dataclass(frozen=True)
class EntryRange:
    """Entries of a queue by their positions.

    Arguments:
        queue: whose entries they are, for the rows.
        held_by: the queue in which they are.
        id: of that one; "": whichever has the name.
        begin, end: positions; end is exclusive.
        rows: how many there are; None: as many as are found.
    """

    queue: str
    held_by: str
    id: str
    begin: int
    end: int
    rows: int | None


def split(whole: EntryRange, parts: int, queue: Queue[Any] | None = None) -> list[EntryRange]:
    """Splits a range into parts of about the same width, at least one position each.

    Arguments:
        whole: its rows, if given, are those of all parts together.
        parts: at most so many.
        queue: where they lie: asked how many rows each part has if there are gaps.
    Raises DataLost if there are fewer rows than there should be.
    """
    width = whole.end - whole.begin
    if width <= 0 or whole.rows == 0:
        return []
    parts = max(1, min(parts, width))
    bounds = [whole.begin + width * n // parts for n in range(parts + 1)]
    ranges = [
        EntryRange(whole.queue, whole.held_by, whole.id, begin, end, None if whole.rows is None else end - begin)
        for begin, end in pairwise(bounds)
    ]
    if whole.rows is None or whole.rows == width or queue is None:
        return ranges
    counts = [sum(1 for _ in entries_between(queue, one.begin, one.end)) for one in ranges]
    if sum(counts) != whole.rows:
        raise lost(whole, sum(counts))
    return [
        EntryRange(one.queue, one.held_by, one.id, one.begin, one.end, count)
        for one, count in zip(ranges, counts, strict=True)
        if count
    ]


def lost(wanted: EntryRange, found: int) -> DataLost:
    return DataLost(
        f"entries of queue {wanted.queue!r} are gone, which Spark has planned to read",
        figures=f"{found} of {wanted.rows}, at positions {wanted.begin} to {wanted.end - 1} of {wanted.held_by!r}",
        remedy="they were purged, moved or consumed, or acknowledged by a later checkpoint than this one; "
        "failOnDataLoss=false goes on with the entries that are there",
    )


def queue_of(broker: Broker, wanted: EntryRange, fail_on_data_loss: bool = True) -> Queue[Any] | None:
    """Returns the queue that holds a range; None, or DataLost, if it is gone or another queue has its name."""
    try:
        queue = broker.queue(wanted.held_by, create=False)
        if not wanted.id or identity_of(queue) == wanted.id:
            return queue
    except NotFound:
        pass
    if fail_on_data_loss:
        raise lost(wanted, 0) from None
    return None


def entries_of(broker: Broker, wanted: EntryRange, fail_on_data_loss: bool = True) -> Iterator[Browsed]:
    """Yields the entries in order. Raises DataLost at the end if some are missing, or the queue is gone or another."""
    queue = queue_of(broker, wanted, fail_on_data_loss)
    if queue is None:
        return
    found = 0
    for entry in entries_between(queue, wanted.begin, wanted.end):
        found += 1
        yield entry
    check_found(wanted, found, fail_on_data_loss)


def check_found(wanted: EntryRange, found: int, fail_on_data_loss: bool) -> None:
    """Raises DataLost if a range had another number of entries than was planned."""
    if fail_on_data_loss and wanted.rows is not None and found != wanted.rows:
        raise lost(wanted, found)
