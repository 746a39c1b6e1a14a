"""The last batch of a query that has ended: what its checkpoint proves to be done is acknowledged.

Spark acknowledges a batch while it plans the next one, so never the last one of a run. A batch is done when its number
is in the checkpoint's `commits/`; the offset behind it is in `offsets/` of the same number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from shmq.errors import ShmqError
from shmq.spark.named_queue import named_broker
from shmq.spark.offset import Offset
from shmq.spark.subscription import Subscription

__all__ = ["done_of", "settle"]

_NO_OFFSET = "-"  # a source that had none in this batch


def _local(checkpoint: str) -> Path:
    """Returns the directory of a checkpoint. Raises ValueError for one that is on no file system of this host."""
    if checkpoint.startswith("file:"):
        checkpoint = "/" + checkpoint.removeprefix("file:").lstrip("/")
    elif "://" in checkpoint:
        raise ValueError(f"the checkpoint {checkpoint} is on another file system; copy its offsets/ and commits/ here")
    found = Path(checkpoint)
    if not (found / "offsets").is_dir():
        raise ValueError(f"{checkpoint} is not a checkpoint of a streaming query: it has no folder offsets/")
    return found


def _numbers(folder: Path) -> set[int]:
    return {int(file.name) for file in folder.iterdir() if file.name.isdecimal()} if folder.is_dir() else set()


def _offsets_of(file: Path) -> Iterator[Offset]:
    """Returns the offsets of shmq's sources: a line each behind the version and the batch's own line."""
    for line in file.read_text().splitlines()[2:]:
        if line == _NO_OFFSET:
            continue
        try:
            yield Offset.parse(line)
        except ValueError:
            continue  # of a source that is not shmq's


def done_of(checkpoint: str) -> tuple[int, list[Offset]] | None:
    """Returns the last batch that is done, and the offsets behind it; None: no batch is done.

    Arguments:
        checkpoint: the directory, or its URL with "file:".
    Raises ValueError if it is none.
    """
    folder = _local(checkpoint)
    both = _numbers(folder / "offsets") & _numbers(folder / "commits")
    if not both:
        return None
    return max(both), list(_offsets_of(folder / "offsets" / str(max(both))))


def settle(checkpoint: str, path: str, subscription: str) -> int:
    """Acknowledges what a checkpoint proves to be done; for a query that has ended. Idempotent.

    Arguments:
        checkpoint: of the query: a directory, or its URL with "file:".
        path: of the broker.
        subscription: of the query.

    Returns the last batch that is done, -1 if there is none. Raises ValueError for what is not a checkpoint of this
    subscription's queues, ConsumerRefused while a query reads it, NotFound, BrokerNotFound.

    Example:
        >>> settle("/var/lib/etl", "/var/lib/shop", "etl")
        41
    """
    done = done_of(checkpoint)
    if done is None:
        return -1
    batch, offsets = done
    with named_broker(path) as broker:
        settled = 0
        for offset in offsets:
            for queue, reached in offset.queues.items():
                one = Subscription(broker, queue, subscription, create=False)
                try:
                    settled += one.is_of(reached)
                    one.acknowledge(reached)
                finally:
                    one.close()
    if not settled:
        raise ShmqError(
            f"the checkpoint {checkpoint} is not of subscription {subscription!r} as it is now",
            figures=", ".join(json.dumps(offset.plain()) for offset in offsets) or "no offset of shmq in it",
            remedy="look for the right checkpoint, broker and subscription; nothing was acknowledged",
        )
    return batch
