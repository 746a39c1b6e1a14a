"""pipeline archive, replay and init: out of queues into Parquet, and back; a project that does it."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shmq.cli.interruption import Interruption
from shmq.cli.look import complete_queue
from shmq.cli.session import Seconds, Session, pass_session, say, usage
from shmq.cli.waiting import waiting
from shmq.quantity import quantity

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["archive", "init", "replay"]

_LOOK = 0.2  # seconds between two looks at the query


@click.command("archive")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.argument("queues", metavar="QUEUE...", nargs=-1, required=True, shell_complete=complete_queue)
@click.option("--once", is_flag=True, help="End when all that is there now is archived; else go on until Ctrl-C.")
@click.option(
    "--every", type=Seconds(min=0.1), default=10.0, show_default=True, metavar="S", help="From batch to batch."
)
@click.option("--subscription", default="archive", show_default=True, help="Name under which it keeps its progress.")
@pass_session
def archive(
    session: Session, folder: str, queues: tuple[str, ...], once: bool, every: float, subscription: str
) -> None:
    """Take the messages out of queues and keep them in DIR, as Parquet by day and queue, each once.

    Archive dead letters, results, or copies (shmq move --copy): no consumer gets an archived message. It may be killed
    at any time: the next run goes on. The first Ctrl-C finishes a batch, the second one gives it up.

    \b
    Example:
      shmq pipeline archive /var/lib/archive orders.dead --once
      shmq pipeline archive /var/lib/archive orders.done returns.done
    """
    from shmq.spark.pipelines.archive import Place, start_archive
    from shmq.spark.pipelines.session import command_session

    with session.open() as broker:
        path = broker.path or ""
        opened = [session.queue(broker, queue) for queue in dict.fromkeys(queues)]
        place = Place(folder, opened[0], subscription)
        names = [queue.name for queue in opened]
    with waiting("Spark starts") as show, command_session("shmq pipeline archive") as spark, usage():
        # From here on shmq handles Ctrl-C: Spark's own handler would give the jobs up.
        with Interruption() as interruption:
            query = start_archive(spark, path, names, place, subscription, None if once else every)
            if not once:
                say(f"archiving {', '.join(map(repr, names))}; Ctrl-C ends")
            rows = _watched(query, interruption, show)
            _settled(place.checkpoint, path, subscription)
            session.result({"archived": rows, "directory": str(place.folder)}, f"{quantity(rows, 'message')} archived")


def _watched(query: Any, interruption: Interruption, show: Callable[[str], None]) -> int:
    """Until it ends, or Ctrl-C; how many rows. Raises what has ended it."""
    rows: dict[int, int] = {}

    def look() -> None:
        rows.update({batch["batchId"]: batch["numInputRows"] for batch in query.recentProgress})
        show(f"{quantity(sum(rows.values()), 'message')} archived")

    try:
        while query.isActive:
            look()
            with interruption.allowed():
                time.sleep(_LOOK)
    except KeyboardInterrupt:
        _finished(query)
    query.stop()
    look()
    if (error := query.exception()) is not None:
        raise error
    return sum(rows.values())


def _finished(query: Any) -> None:
    """Lets the batch in hand come to its end, unless Ctrl-C comes again."""
    try:
        while query.isActive and query.status["isTriggerActive"]:
            time.sleep(_LOOK)
    except KeyboardInterrupt:
        pass


def _settled(checkpoint: Path, path: str, subscription: str) -> None:
    """Acknowledges the last batch, which Spark does not."""
    from shmq.spark.settle import settle

    if (checkpoint / "offsets").is_dir():
        settle(str(checkpoint), path, subscription)


def _day(context: click.Context, parameter: click.Parameter, values: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(f"{value:%Y-%m-%d}" for value in values)


@click.command("replay")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.argument("queue", shell_complete=complete_queue)
@click.option("--from", "sources", multiple=True, metavar="QUEUE", help="Only messages of this queue. May come again.")
@click.option(
    "--day",
    "days",
    multiple=True,
    callback=_day,
    type=click.DateTime(["%Y-%m-%d"]),
    help="Only messages that were put on this day, in UTC. May come again.",
)
@click.option("--where", default="", metavar="SQL", help="Only rows for which it is true: \"headers['kind'] = 'png'\".")
@click.option("--dry-run", is_flag=True, help="Only say how many there are.")
@pass_session
def replay(
    session: Session,
    folder: str,
    queue: str,
    sources: tuple[str, ...],
    days: tuple[str, ...],
    where: str,
    dry_run: bool,
) -> None:
    """Put the messages of the archive DIR into QUEUE, in the order in which they were put before.

    The archive remembers it: a replay that is repeated, with other days, too, puts only new ones. Another --where is
    another replay. Body, content type, headers (as text), group and priority are kept; id, times and attempts are not.

    \b
    Example:
      shmq pipeline replay /var/lib/archive orders --from orders.dead --day 2026-03-01
      shmq pipeline replay /var/lib/archive orders --where "death.reason = 'max_deaths'" --dry-run
    """
    from shmq.engine.claims.claim import identity_of
    from shmq.spark.pipelines.archive import folders_of
    from shmq.spark.pipelines.replay import Choice
    from shmq.spark.pipelines.replay import replay as replayed
    from shmq.spark.pipelines.replay_ledger import Ledger
    from shmq.spark.pipelines.session import command_session

    with session.open() as broker:
        target = session.queue(broker, queue)
        path, identity = broker.path or "", identity_of(target)
        priorities = target.options["priorities"] > 1
    folders_of(folder)
    ledger = Ledger(folder, identity, where)
    with ledger.turn(), waiting("Spark starts"), command_session("shmq pipeline replay") as spark, usage():
        rows = replayed(
            spark,
            folder,
            Choice(days, sources, where),
            ledger,
            path,
            queue,
            priorities=priorities,
            dry_run=dry_run,
        )
    would = "would be " if dry_run else ""
    session.result({"replayed": rows, "dry_run": dry_run}, f"{quantity(rows, 'message')} {would}put into {queue!r}")


@click.command("init")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.argument("queues", metavar="QUEUE...", nargs=-1, required=True, shell_complete=complete_queue)
@click.option("--subscription", default="pipeline", show_default=True, help="Name under which it keeps its progress.")
@pass_session
def init(session: Session, folder: str, queues: tuple[str, ...], subscription: str) -> None:
    """Write a project for Spark's Declarative Pipelines into DIR: messages of queues as a table and views.

    DIR must not be there, or be empty. Neither Spark nor Java is needed for it; to run it, pip install
    'shmq[spark-jvm]' 'pyspark[pipelines]'.

    \b
    Example:
      shmq pipeline init etl orders.done orders.dead
      cd etl && SPARK_CONF_DIR=conf spark-pipelines run
    """
    from shmq.spark.pipelines.project import write_project

    with session.open() as broker:
        path = broker.path or ""
        names = [session.queue(broker, queue).name for queue in dict.fromkeys(queues)]
    files = write_project(folder, path, names, subscription)
    session.result({"files": [str(file) for file in files]}, "\n".join(map(str, files)))
    say(f"cd {shlex.quote(folder)} && SPARK_CONF_DIR=conf spark-pipelines run")
