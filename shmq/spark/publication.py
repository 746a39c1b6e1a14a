"""Publishes staged rows: one put decides for a whole batch, and the next process that comes finishes what was decided.

A note (see notes.py) says: this query publishes this batch, from these stages, in this order. When all is moved it is
replaced by one that says: this query has published this batch. Of those one a query is kept. A process that decides or
moves holds the exclusive consumer of the notes, which is lost in the moment the process dies.

A batch is decided or not, whichever process is killed when. The next commit moves a decided batch to the end, as do a
read of the queue through Spark, `shmq spark publish` and finish(). A move that is repeated moves only the rest.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from shmq.core import clock
from shmq.engine.claims.claim import Claimer, identity_of, settle_the_dead
from shmq.engine.claims.staging import put_count
from shmq.errors import ConsumerRefused, Full, NotFound
from shmq.spark.data_lost import DataLost
from shmq.spark.notes import Note, Notes, notes_of, published_name
from shmq.spark.stage import Stage, drop, is_stage_of

if TYPE_CHECKING:
    from shmq.engine.broker.broker import Broker
    from shmq.engine.queue.queue import Queue

__all__ = ["DecidingTurn", "Publication", "finish_decided", "rows_of", "undecided"]

_ALL: Final = 1 << 62
_POLL: Final = 0.02  # seconds; how often a mover looks for room, and a publisher for its turn


def undecided(target: Queue[Any]) -> list[Queue[Any]]:
    """Staging queues that no note names: of tasks that run, of batches whose commit is still to come, and of those that
    were killed. Changes nothing."""
    broker = target.broker
    # The stages first: one whose note is put meanwhile is named by it.
    stages = [queue for queue in broker.queues() if is_stage_of(queue.name, target.name)]
    notes = notes_of(target)
    if notes is None:
        return stages
    named = {stage.queue for _, note in notes.undone() for stage in note.stages}
    return [queue for queue in stages if queue.name not in named]


def finish_decided(target: Queue[Any]) -> None:
    """Finishes batches for a process that is about to read the queue: moves rows that a driver decided before it
    died, as far as there is room. Where another process publishes at this moment nothing is done."""
    notes = notes_of(target)
    if notes is not None and any(not note.prepared for _, note in notes.undone()):
        with contextlib.suppress(Full, ConsumerRefused):
            Publication(target, 0.0).finish()


def rows_of(stages: Iterable[Stage]) -> int:
    return sum(stage.count for stage in stages)


class Publication:
    """Batches on their way into one queue.

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
        self._notes = Notes(target, self._broker.queue(published_name(target.name), max_attempts=0, max_deaths=0))

    def publish(
        self, query: str, batch: int, stages: Sequence[Stage], *, kept: bool = True, purge: bool = False
    ) -> bool:
        """Decides for this batch, and moves its rows. False: it was published before; its stages are dropped.

        Raises DataLost if a stage is not as it was written. Raises it, too, if a later batch of the query, or this one
        with other rows, was published before. Nothing is decided then. Full after the timeout: the batch is decided,
        and the next who comes goes on.
        """
        with self._turn() as deadline:
            self._finish(deadline)
            rows = rows_of(stages)
            if self._decided(query, batch, rows) is not None:
                drop(self._broker, stages)
                return False
            self._decide(self._note(query, batch, rows, stages, kept=kept, purge=purge), deadline)
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
        """Keeps stages of this host until another one has decided. Stages that were prepared before for this query
        were not decided, and are dropped.

        Raises DataLost if a stage is not as it was written.
        """
        with self._turn():
            self._check(stages)
            self._keep(stages)
            old = [(position, note) for position, note in self._notes.of(query) if note.prepared]
            self._notes.put(replace(self._note(query, batch, rows_of(stages), stages), prepared=True))
            for position, note in old:
                drop(self._broker, [stage for stage in note.stages if stage not in stages])
                self._notes.drop(position)

    def publish_prepared(self, query: str, batch: int, stages: Sequence[Stage], purge: bool = False) -> bool:
        """Moves the stages of a batch that another host has decided; False: done before. Raises DataLost, Full."""
        with self._turn() as deadline:
            self._finish(deadline)
            last = self._last(query)
            if last is not None and last.batch >= batch:
                return False
            self._decide(self._note(query, batch, rows_of(stages), stages, purge=purge), deadline)
            return True

    def forget(self, query: str) -> None:
        """Drops the note of a batch write that no query can repeat."""
        with self._turn():
            for position, note in self._notes.of(query):
                if note.done:
                    self._notes.drop(position)

    @contextlib.contextmanager
    def turn(self) -> Iterator[DecidingTurn]:
        """Gives the deciding host its turn: other publishers wait until the block is left, or its process dies."""
        with self._turn() as deadline:
            self._finish(deadline)
            yield DecidingTurn(self, deadline)

    # ---- with the turn -----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _turn(self) -> Iterator[float | None]:
        """Allows one publisher at a time; yields until when it may wait."""
        deadline = None if self._timeout is None else clock.monotonic() + self._timeout
        while True:
            try:
                owner = self._notes.queue.consumer(exclusive=True)
                break
            except ConsumerRefused:
                if deadline is not None and clock.monotonic() >= deadline:
                    raise
                time.sleep(_POLL)
        with owner:
            settle_the_dead(self._notes.queue)  # a mover that was killed: its entry is in the stage, or in the queue
            for position, note in self._notes.read().strange():
                for stage in note.stages if not note.prepared else ():
                    if stage.into:
                        self._move(stage, deadline)
                drop(self._broker, note.stages)  # what was decided for the queue went with it
                self._notes.drop(position)
            yield deadline

    def _note(
        self, query: str, batch: int, rows: int, stages: Sequence[Stage], *, kept: bool = True, purge: bool = False
    ) -> Note:
        return Note(query, batch, False, rows, self._notes.into, tuple(stages), kept, purge)

    def _abort(self, stages: Sequence[Stage]) -> None:
        named = {stage for _, note in self._notes.undone() for stage in note.stages}
        drop(self._broker, [stage for stage in stages if stage not in named])

    def _last(self, query: str) -> Note | None:
        """Returns the note of the last decided batch of a query."""
        found = [note for _, note in self._notes.of(query) if not note.prepared]
        return max(found, key=lambda note: note.batch, default=None)

    def _decided(self, query: str, batch: int, rows: int) -> Note | None:
        """The note which says that this batch is published; None: it is not. Raises DataLost if it is another batch
        under an old number: Spark takes rows for written whose sink is silent."""
        last = self._last(query)
        if last is None or last.batch < batch:
            return None
        if (last.batch, last.rows) == (batch, rows):
            return last
        raise DataLost(
            f"these rows come under an old number of {query!r}, and are not those that were published under it into "
            f"queue {self._target.name!r}",
            figures=f"published is batch {last.batch:,} with {last.rows:,} rows, this is batch {batch:,} with {rows:,}",
            remedy="nothing of this batch is published. The checkpoint of the query is older than the published batch: "
            "it is a copy or a backup, or its last batches were removed; begin a new checkpoint. For a batch write "
            "give another idempotencyKey, or a higher idempotencyVersion",
        )

    def _decide(self, note: Note, deadline: float | None) -> None:
        self._check(note.stages)
        self._keep(note.stages)
        self._notes.put(note)
        self._finish(deadline)

    def _check(self, stages: Sequence[Stage]) -> None:
        for stage in stages:
            if self._target_of(stage) is None:
                raise self._lost(stage, f"queue {stage.into!r}, into which its rows go, was deleted")
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
        """A decided stage must not expire. A stage without an end that no note names was left by a publisher that died
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
        for position, note in self._notes.undone():
            if note.prepared:
                continue
            if note.purge:
                self._target.purge()
                note = replace(note, purge=False)
                position = self._notes.replace(note)  # a purge that is repeated would take what was moved since
            for stage in note.stages:
                self._move(stage, deadline)
            if not note.elsewhere:
                self._end(position, note)
                finished += 1
        return finished

    def _end(self, position: int, note: Note) -> None:
        if note.kept:
            self._notes.replace(Note(note.query, note.batch, True, note.rows, note.into))
        else:
            self._notes.drop(position)

    def _move(self, stage: Stage, deadline: float | None) -> None:
        try:
            queue = self._broker.queue(stage.queue, create=False)
        except NotFound:
            return  # moved by who was here before
        if identity_of(queue) != stage.id:
            return
        target = self._target_of(stage)
        if target is None:  # what was decided for a queue goes with it
            queue.delete()
            return
        # A claim moves many at once; it leaves times to the first queue, and knows no other start of a max_ttl.
        plain = not stage.timed and target.options.get("max_ttl") is None
        claimer = Claimer(queue, target) if plain else None
        while True:
            try:
                if claimer is None or claimer.claim(_ALL, _ALL).full or queue.qsize():
                    queue.move(target)  # which says what there is no room for, or what cannot be read
                break
            except Full:
                if deadline is not None and clock.monotonic() >= deadline:
                    raise
                time.sleep(_POLL)
        queue.delete()

    def _target_of(self, stage: Stage) -> Queue[Any] | None:
        """Into which its rows go; None: it is gone, or another one has its name."""
        if not stage.into:
            return self._target
        try:
            found = self._broker.queue(stage.into, create=False)
        except NotFound:
            return None
        return found if identity_of(found) == stage.into_id else None


class DecidingTurn:
    """The answers of the deciding host to a write into several hosts. Publication.turn() makes it."""

    def __init__(self, publication: Publication, deadline: float | None) -> None:
        self._of = publication
        self._deadline = deadline

    def decided(self, query: str, batch: int, rows: int) -> Note | None:
        """Returns the note of this batch; None: it is not decided. Raises DataLost as Publication.publish()."""
        return self._of._decided(query, batch, rows)

    def decide(
        self,
        query: str,
        batch: int,
        rows: int,
        stages: Sequence[Stage],
        elsewhere: Mapping[str, tuple[Stage, ...]],
        *,
        kept: bool,
        purge: bool,
    ) -> None:
        """Decides for all hosts, and moves the rows of this one. Raises DataLost: nothing is decided then."""
        note = self._of._note(query, batch, rows, stages, kept=kept, purge=purge)
        self._of._decide(replace(note, elsewhere=elsewhere), self._deadline)

    def abort(self, stages: Sequence[Stage]) -> None:
        """Drops stages of this host that no note names."""
        self._of._abort(stages)

    def complete(self, query: str, batch: int) -> None:
        """Notes that the other hosts have moved their stages."""
        for position, note in self._of._notes.of(query):
            if note.batch == batch and not note.done and not note.prepared:
                self._of._end(position, note)
