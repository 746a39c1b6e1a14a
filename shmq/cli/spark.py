"""spark settle, spark publish: what a run of Spark has left to be done."""

from __future__ import annotations

import click

from shmq.cli.session import Session, pass_session, usage
from shmq.errors import NotFound

__all__ = ["spark"]


@click.group("spark")
def spark() -> None:
    """Finish what a run of Spark has left to be done. Neither Spark nor Java is needed for it.

    \b
    Example:
      shmq -d /var/lib/shop spark settle /var/lib/etl/checkpoint etl
      shmq -d /var/lib/shop spark publish results
    """


@spark.command("settle")
@click.argument("checkpoint")
@click.argument("subscription")
@pass_session
def settle(session: Session, checkpoint: str, subscription: str) -> None:
    """Acknowledge the messages that a CHECKPOINT of an ended query proves to be done.

    Spark acknowledges a batch when it plans the next one. So the last batch of a run stays in the queue of the
    SUBSCRIPTION's claims until the next run. Its entries are never handed out twice by that; they take memory.

    \b
    Example:
      shmq -d /var/lib/shop spark settle /var/lib/etl/checkpoint etl
    """
    from shmq.spark.settle import settle as settled

    with session.open() as broker, usage():
        batch = settled(checkpoint, broker.path or "", subscription)
    text = f"batch {batch} and those before it are acknowledged" if batch >= 0 else "no batch is done yet"
    session.result({"batch": batch if batch >= 0 else None}, text)


@spark.command("publish")
@click.argument("queue")
@click.option("--drop-stages", is_flag=True, help="Delete rows that were written and not decided.")
@pass_session
def publish(session: Session, queue: str, drop_stages: bool) -> None:
    """Finish the batches into QUEUE that were decided, and whose driver died before all rows were moved.

    The next batch of any query into that queue does the same.

    Rows whose driver died before it decided lie in staging queues. They expire after stageTtl; --drop-stages deletes
    them at once. Nothing is lost by it: a batch that is being written meanwhile fails, and Spark runs it again.

    \b
    Example:
      shmq -d /var/lib/shop spark publish results
      shmq -d /var/lib/shop spark publish results --drop-stages
    """
    from shmq.spark.notes import published_name
    from shmq.spark.publication import Publication, undecided

    with session.open() as broker:
        target = session.queue(broker, queue)
        try:
            broker.queue(published_name(queue), create=False)
        except NotFound:  # nothing has ever been published into it
            finished = 0
        else:
            finished = Publication(target, 0.0).finish()
        found = len(undecided(target))
        dropped = Publication(target, 0.0).drop_undecided() if drop_stages and found else 0
    text = f"{finished:,} {'batch' if finished == 1 else 'batches'} finished"
    if drop_stages:
        text += f"; {dropped:,} {_stages(dropped)} deleted"
    elif found:
        text += f"; {found:,} {_stages(found)} not decided: they expire, or --drop-stages deletes them"
    session.result({"batches": finished, "undecided": found - dropped, "dropped": dropped}, text)


def _stages(count: int) -> str:
    return "staging queue" if count == 1 else "staging queues"
