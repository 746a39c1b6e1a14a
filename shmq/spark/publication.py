"""Publishing staged rows: one put decides for a whole batch, and whoever comes next finishes what was decided.

The queue `orders.published` holds notes, as JSON. One says: this query publishes this batch, from these stages, in this
order. When all is moved it is replaced by one that says: this query has published this batch. Of those one a query is
kept. Whoever decides or moves holds the queue's exclusive consumer, which is lost in the moment its process dies.

A batch is decided or not, whoever is killed when; what is decided is moved to the end by the next commit, by whoever
reads the queue through Spark, by `shmq spark publish`, or by who asks (finish()). A move that is repeated moves only
what is left.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from shmq.engine.claims.claim import Claimer, discard_at, identity_of, settle_the_dead
from shmq.engine.claims.staging import put_count
from shmq.errors import ConsumerRefused, Full, NotFound
from shmq.spark.data_lost import DataLost
from shmq.spark.stage import Stage, drop, is_stage_of

if TYPE_CHECKING:
    from shmq.engine.broker.broker import Broker
    from shmq.engine.message.message import Message
    from shmq.engine.queue.queue import Queue

__all__ = ["DecidingTurn", "Note", "Publication", "finish_decided", "published_name", "undecided"]

_ALL: Final = 1 << 62
_POLL: Final = 0.02  # seconds; how often a mover looks for room, and a publisher for its turn
_NO_STAGES: Final[tuple[Stage, ...]] = ()


def published_name(queue: str) -> str:
    return f"{queue}.published"


@dataclass(frozen=True)
class Note:
    """What is decided, or done.

    Arguments:
        query: who publishes: a query's id, or the key of a batch write.
        batch: its number; later ones are larger.
        done: all of it is in the queue.
        stages: in the order of the partitions; of what is done none.
        kept: when it is done, a note says so from then on. Not of a batch write that nobody can repeat.
        purge: what was ready in the queue goes first (mode "overwrite").
        prepared: another host decides; until it has, these stages are kept.
        elsewhere: the stages of other hosts, by their URIs, for which this note decides, too.
    """

    query: str
    batch: int
    done: bool
    stages: tuple[Stage, ...] = _NO_STAGES
    kept: bool = True
    purge: bool = False
    prepared: bool = False
    elsewhere: Mapping[str, tuple[Stage, ...]] = field(default_factory=dict)

    def text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> Note:
        found = json.loads(text)
        found["stages"] = tuple(Stage(**stage) for stage in found["stages"])
        others = found.get("elsewhere", {}).items()
        found["elsewhere"] = {uri: tuple(Stage(**stage) for stage in stages) for uri, stages in others}
        return cls(**found)


def _notes_in(notes: Queue[Any]) -> list[tuple[Message[Any], Note]]:
    return [(message, Note.parse(message.body)) for message in notes.browse()]


def undecided(target: Queue[Any]) -> list[Queue[Any]]:
    """Staging queues that no note names: of tasks that run, of batches whose commit is still to come, and of those that
    were killed. Changes nothing."""
    broker = target.broker
    # The stages first: one whose note is put meanwhile is named by it.
    stages = [queue for queue in broker.queues() if is_stage_of(queue.name, target.name)]
    try:
        notes = _notes_in(broker.queue(published_name(target.name), create=False))
    except NotFound:  # nothing has ever been published into it
        return stages
    named = {stage.queue for _, note in notes for stage in note.stages}
    return [queue for queue in stages if queue.name not in named]


def finish_decided(target: Queue[Any]) -> None:
    """For whoever is about to read the queue: what a driver has decided and not moved before it died is moved now, as
    far as there is room. Where another process publishes at this moment nothing is done."""
    try:
        notes = _notes_in(target.broker.queue(published_name(target.name), create=False))
    except NotFound:
        return
    if any(not note.done and not note.prepared for _, note in notes):
        with contextlib.suppress(Full, ConsumerRefused):
            Publication(target, 0.0).finish()


class Publication:
    """The notes of one queue.

    Arguments:
        target: into which rows are published.
        timeout: seconds to wait for another publisher, and for room in the queue; None: for ever.

    Example:
        >>> Publication(orders, 10.0).publish("query 1", 7, stages)
        True
    """

    def __init__(self, target: Queue[Any], timeout: float | None = None) -> None:
        self._target = target
        self._broker: Broker = target.broker
        self._timeout = timeout
        self._notes = self._broker.queue(published_name(target.name), max_deliveries=0, max_deaths=0)

    def publish(
        self, query: str, batch: int, stages: Sequence[Stage], *, kept: bool = True, purge: bool = False
    ) -> bool:
        """Decides for this batch, and moves its rows. False: it, or a later one of this query, was published before;
        its stages are dropped.

        Raises DataLost if a stage is not as it was written: nothing is decided then. Full after the timeout: the batch
        is decided, and the next who comes goes on.
        """
        with self._turn() as deadline:
            self._finish(deadline)
            if self._decided(query, batch) is not None:
                drop(self._broker, stages)
                return False
            self._decide(Note(query, batch, False, tuple(stages), kept, purge), deadline)
            return True

    def finish(self) -> int:
        """Moves what is decided and not moved yet; how many batches."""
        with self._turn() as deadline:
            return self._finish(deadline)

    def abort(self, stages: Sequence[Stage]) -> None:
        """Drops stages that no note names: what was decided stays, whatever Spark thinks of it."""
        with self._turn():
            self._abort(stages)

    def drop_undecided(self) -> int:
        """Deletes all staging queues that no note names; how many. A commit that comes for one of them raises DataLost,
        and Spark runs its batch again."""
        with self._turn() as deadline:
            self._finish(deadline)
            dropped = 0
            for queue in undecided(self._target):
                with contextlib.suppress(NotFound):
                    queue.delete()
                    dropped += 1
            return dropped

    # ---- of several hosts, one decides for all ---------------------------------------------------------------------

    def prepare(self, query: str, batch: int, stages: Sequence[Stage]) -> None:
        """Keeps stages of this host until another one has decided. What was prepared before for this query was not
        decided, and is dropped.

        Raises DataLost if a stage is not as it was written.
        """
        with self._turn():
            self._check(stages)
            self._keep(stages)
            old = [(message, note) for message, note in self._read() if note.query == query and note.prepared]
            self._notes.put(Note(query, batch, False, tuple(stages), prepared=True).text())
            for message, note in old:
                drop(self._broker, [stage for stage in note.stages if stage not in stages])
                self._drop(message)

    def publish_prepared(self, query: str, batch: int, stages: Sequence[Stage], purge: bool = False) -> bool:
        """Moves what another host has decided; False: it was done before. Raises DataLost, Full."""
        with self._turn() as deadline:
            self._finish(deadline)
            if self._decided(query, batch) is not None:
                return False
            self._decide(Note(query, batch, False, tuple(stages), True, purge), deadline)
            return True

    def forget(self, query: str) -> None:
        """Drops the note that a batch write left which nobody can repeat."""
        with self._turn():
            for message, note in self._read():
                if note.query == query and note.done:
                    self._drop(message)

    @contextlib.contextmanager
    def turn(self) -> Iterator[DecidingTurn]:
        """Of the host that decides: others wait until the `with` block is left, or its process dies."""
        with self._turn() as deadline:
            self._finish(deadline)
            yield DecidingTurn(self, deadline)

    # ---- with the turn -----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _turn(self) -> Iterator[float | None]:
        """One publisher at a time; yields until when it may wait."""
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        while True:
            try:
                owner = self._notes.consumer(exclusive=True)
                break
            except ConsumerRefused:
                if deadline is not None and time.monotonic() >= deadline:
                    raise
                time.sleep(_POLL)
        with owner:
            settle_the_dead(self._notes)  # a mover that was killed: its entry is in the stage, or in the queue
            yield deadline

    def _read(self) -> list[tuple[Message[Any], Note]]:
        return _notes_in(self._notes)

    def _abort(self, stages: Sequence[Stage]) -> None:
        named = {stage for _, note in self._read() for stage in note.stages}
        drop(self._broker, [stage for stage in stages if stage not in named])

    def _decided(self, query: str, batch: int) -> Note | None:
        """The note which says that this batch of a query, or a later one, is published."""
        found = [note for _, note in self._read() if note.query == query and not note.prepared and note.batch >= batch]
        return max(found, key=lambda note: note.batch, default=None)

    def _decide(self, note: Note, deadline: float | None) -> None:
        self._check(note.stages)
        self._keep(note.stages)
        self._notes.put(note.text())
        self._finish(deadline)

    def _check(self, stages: Sequence[Stage]) -> None:
        for stage in stages:
            try:
                found = self._broker.queue(stage.queue, create=False)
            except NotFound:
                raise self._lost(stage, "it is gone") from None
            if identity_of(found) != stage.id:
                raise self._lost(stage, "it was made anew")
            count = put_count(found)
            if count != stage.count:
                raise self._lost(stage, f"{stage.count:,} rows were written, it has had {count:,}")

    def _lost(self, stage: Stage, why: str) -> DataLost:
        return DataLost(
            f"the staging queue {stage.queue!r} of queue {self._target.name!r} is not as it was written",
            figures=why,
            remedy="nothing of this batch is published; the host may have been restarted, or the stage expired "
            "(stageTtl): run the batch again",
        )

    def _keep(self, stages: Sequence[Stage]) -> None:
        """What is decided must not expire. A stage without an end that no note names was left by a publisher that died
        before its decision: its end has come now."""
        kept = {stage.queue for stage in stages}
        for queue in undecided(self._target):
            with contextlib.suppress(NotFound):
                if queue.name not in kept and queue.options.get("expires") is None:
                    queue.delete()
        for stage in stages:
            self._broker.queue(stage.queue, create=False).alter(expires=None)

    def _finish(self, deadline: float | None) -> int:
        finished = 0
        for message, note in self._read():
            if note.done or note.prepared:
                continue
            if note.purge:
                self._target.purge()
                note = replace(note, purge=False)
                message = self._replace(message, note)  # a purge that is repeated would take what was moved since
            for stage in note.stages:
                self._move(stage, deadline)
            if not note.elsewhere:
                self._end(message, note)
                finished += 1
        return finished

    def _end(self, message: Message[Any], note: Note) -> None:
        if note.kept:
            self._replace(message, Note(note.query, note.batch, True))
        else:
            self._drop(message)

    def _move(self, stage: Stage, deadline: float | None) -> None:
        try:
            queue = self._broker.queue(stage.queue, create=False)
        except NotFound:
            return  # moved by who was here before
        if identity_of(queue) != stage.id:
            return
        # A claim moves many at once; it leaves times to the first queue, and knows no other start of a max_ttl.
        plain = not stage.timed and self._target.options.get("max_ttl") is None
        claimer = Claimer(queue, self._target) if plain else None
        while True:
            try:
                if claimer is None or claimer.claim(_ALL, _ALL).full or queue.qsize():
                    queue.move(self._target)  # which says what there is no room for, or what cannot be read
                break
            except Full:
                if deadline is not None and time.monotonic() >= deadline:
                    raise
                time.sleep(_POLL)
        queue.delete()

    def _replace(self, message: Message[Any], note: Note) -> Message[Any]:
        """The new note first. Of one query there is one then; the batches before are done, so they need none."""
        old = [each for each, other in self._read() if other.query == note.query]
        self._notes.put(note.text())
        for each in old:
            self._drop(each)
        return next(each for each, other in self._read() if other == note)

    def _drop(self, message: Message[Any]) -> None:
        discard_at(self._notes, message.position)


class DecidingTurn:
    """What a write into several hosts asks the one that decides. Publication.turn() makes it."""

    def __init__(self, publication: Publication, deadline: float | None) -> None:
        self._of = publication
        self._deadline = deadline

    def decided(self, query: str, batch: int) -> Note | None:
        """The note of this batch, or a later one, of the query; None: it is not decided."""
        return self._of._decided(query, batch)

    def decide(self, note: Note) -> None:
        """Decides for all hosts, and moves the rows of this one. Raises DataLost: nothing is decided then."""
        self._of._decide(note, self._deadline)

    def abort(self, stages: Sequence[Stage]) -> None:
        """Drops stages of this host that no note names."""
        self._of._abort(stages)

    def complete(self, query: str, batch: int) -> None:
        """The other hosts have moved theirs."""
        for message, note in self._of._read():
            if note.query == query and note.batch == batch and not note.done and not note.prepared:
                self._of._end(message, note)
