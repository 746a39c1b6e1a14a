"""Notes: what is decided about batches that are written into a queue, and what is done, in a queue beside it.

`orders.published` holds them, as JSON. A note belongs to one queue `orders`, by its identity. Notes of another one of
that name, which was deleted since, say nothing of it, and are thrown away. One note of each query is kept, and one of
each key of batch writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from shmq.core.handles import browse_columns
from shmq.engine.claims.claim import bounds_of, discard_at, identity_of
from shmq.errors import NotFound
from shmq.spark.stage import Stage
from shmq.wait_time import OTHERS_FLOW

if TYPE_CHECKING:
    from shmq.engine.queue.queue import Queue

__all__ = ["Note", "Notes", "notes_of", "published_name"]

_NO_STAGES: Final[tuple[Stage, ...]] = ()
_ROWS: Final = 16_384
_BYTES: Final = 16 << 20
_UNDONE: Final = b'"done": false'  # as Note.text() writes it; a name in which it stands has its quotes escaped


def published_name(queue: str) -> str:
    return f"{queue}.published"


@dataclass(frozen=True)
class Note:
    """A batch that is decided, or done.

    Arguments:
        query: who publishes: a query's id, or the key of a batch write.
        batch: its number, or the version of a batch write; later ones are larger.
        done: all of it is in the queue.
        rows: how many it has, on all hosts: by them a repetition is told from another batch.
        into: identity of the queue.
        stages: in the order of the partitions; of what is done none.
        kept: when it is done, a note says so from then on. Not of a batch write that nobody can repeat.
        purge: what was ready in the queue goes first (mode "overwrite").
        prepared: another host decides; until it has, these stages are kept.
        elsewhere: the stages of other hosts, by their URIs, for which this note decides, too.
    """

    query: str
    batch: int
    done: bool
    rows: int
    into: str
    stages: tuple[Stage, ...] = _NO_STAGES
    kept: bool = True
    purge: bool = False
    prepared: bool = False
    elsewhere: Mapping[str, tuple[Stage, ...]] = field(default_factory=dict)

    def text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def parse(cls, text: str | bytes) -> Note:
        found = json.loads(text)
        found["stages"] = tuple(Stage(**stage) for stage in found["stages"])
        others = found.get("elsewhere", {}).items()
        found["elsewhere"] = {uri: tuple(Stage(**stage) for stage in stages) for uri, stages in others}
        return cls(**found)


class Notes:
    """The notes of one queue, as they were when they were read; who writes has the turn (see publication.py).

    Of ten thousand notes only those are parsed that are asked for.

    Arguments:
        target: the queue that they are about.
        queue: in which they are.
    """

    def __init__(self, target: Queue[Any], queue: Queue[Any]) -> None:
        self.queue = queue
        self.into = identity_of(target)
        self._texts: dict[int, bytes] = {}  # by their positions

    def read(self) -> Notes:
        """Reads all notes anew."""
        self._texts = dict(_texts_of(self.queue))
        return self

    def strange(self) -> list[tuple[int, Note]]:
        """Returns notes of another queue that had the name before."""
        own = json.dumps(self.into).encode()
        found = [(position, Note.parse(text)) for position, text in self._texts.items() if own not in text]
        return [(position, note) for position, note in found if note.into != self.into]

    def undone(self) -> list[tuple[int, Note]]:
        """Notes of batches that are decided and not moved, or prepared."""
        return [(position, note) for position, note in self._with(_UNDONE) if not note.done]

    def of(self, query: str) -> list[tuple[int, Note]]:
        return [
            (position, note)
            for position, note in self._with(b'"query": ' + json.dumps(query).encode())
            if note.query == query
        ]

    def _with(self, part: bytes) -> list[tuple[int, Note]]:
        found = [(position, Note.parse(text)) for position, text in self._texts.items() if part in text]
        return [(position, note) for position, note in found if note.into == self.into]

    def put(self, note: Note) -> int:
        """Puts a note and returns its position. Raises Full, OutOfSpace: undecided stages keep their memory."""
        text = note.text()
        self.queue.put(text, timeout=OTHERS_FLOW)
        position = bounds_of(self.queue)[1] - 1
        self._texts[position] = text.encode()
        return position

    def drop(self, position: int) -> None:
        discard_at(self.queue, position)
        self._texts.pop(position, None)

    def replace(self, note: Note) -> int:
        """Puts a query's new note, then drops its older ones: their batches are done, so they need no note."""
        old = self.of(note.query)
        position = self.put(note)
        for each, _ in old:
            self.drop(each)
        return position


def notes_of(target: Queue[Any]) -> Notes | None:
    """Returns the notes for a caller that only looks; None: no batch was ever published into the queue."""
    try:
        return Notes(target, target.broker.queue(published_name(target.name), create=False)).read()
    except NotFound:
        return None


def _texts_of(queue: Queue[Any]) -> Iterator[tuple[int, bytes]]:
    place, end = bounds_of(queue)
    ended = place >= end
    while not ended:
        place, ended, rows, columns = browse_columns(queue, place, end, _ROWS, _BYTES)
        if rows:
            positions = np.frombuffer(columns[0], np.int64, rows).tolist()
            ends = np.frombuffer(columns[8], np.int32, rows + 1).tolist()
            bodies = columns[9]
            yield from zip(positions, (bodies[begin:stop] for begin, stop in pairwise(ends)), strict=True)
