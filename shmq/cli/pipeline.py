"""pipeline, and pipeline stats: what a Spark of this command finds in queues."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shmq.cli.get import NothingThere
from shmq.cli.look import complete_queue
from shmq.cli.pipeline_archive import archive, init, replay
from shmq.cli.session import Count, Session, pass_session, usage, write
from shmq.cli.text import age, size, table
from shmq.cli.waiting import waiting

if TYPE_CHECKING:
    from shmq.engine.broker.broker import Broker
    from shmq.spark.pipelines.statistics import Row, Statistics

__all__ = ["pipeline"]

_CLUE = 60  # characters


@click.group("pipeline")
def pipeline() -> None:
    """Count, archive and replay the entries of queues by Spark: pip install 'shmq[spark-jvm]'.

    Each command starts a Spark of its own, which takes some seconds, and ends it.

    \b
    Example:
      shmq pipeline stats orders
      shmq pipeline archive /var/lib/archive orders.dead --once
      shmq pipeline replay /var/lib/archive orders --day 2026-03-01
    """


pipeline.add_command(archive)
pipeline.add_command(replay)
pipeline.add_command(init)


@pipeline.command("stats")
@click.argument("queues", nargs=-1, metavar="[QUEUE]...", shell_complete=complete_queue)
@click.option(
    "--every", type=click.Choice(["minute", "hour", "day"]), help="Length of a step; default: as fits the time."
)
@click.option("--least", type=Count(min=1), default=2, show_default=True, help="Deaths of a poison candidate.")
@click.option("--archive", "folder", metavar="DIR", help="Count also messages that were archived there.")
@click.option("--html", "page", metavar="FILE", type=click.Path(dir_okay=False), help="Write a page with plots.")
@click.option("--minutes", is_flag=True, help="Show also each queue and minute (or hour, or day).")
@pass_session
def stats(
    session: Session,
    queues: tuple[str, ...],
    every: str | None,
    least: int,
    folder: str | None,
    page: str | None,
    minutes: bool,
) -> None:
    """Count the messages of queues, their waiting times, and those that came back; find common traits of dead letters.

    It takes nothing. QUEUE: with its queue for the dead; without a name all of them. Times are quantiles of how long
    entries have been there; of archived ones, how long they had been there. With --json also the counts and quantiles
    of each minute. Exit code 4: nothing is there.

    --html FILE writes a page with plots, for a browser, in place of the tables.

    \b
    Example:
      shmq pipeline stats
      shmq pipeline stats --html queues.html
      shmq pipeline stats orders --minutes --archive /var/lib/archive
      shmq pipeline stats --json | jq '.poison[] | {by, value, dead}'
    """
    from shmq.spark.pipelines.report import report

    with session.open() as broker:
        path = broker.path or ""
        names = _with_their_dead(session, broker, queues)
    if not names and folder is None:
        raise NothingThere("empty: there is no queue")
    found = _counted(path, names, folder, bool(queues), every, least)
    if not found.queues:
        raise NothingThere("empty: nothing is in " + (", ".join(map(repr, names)) if queues else "any queue"))
    if page is not None:
        Path(page).write_text(report(found, path), encoding="utf-8", errors="backslashreplace")
    if session.json:
        session.line(found.plain())
    elif page is None:
        write("\n\n".join(_tables(found, minutes)) + "\n")


def _counted(
    path: str, names: Sequence[str], folder: str | None, named: bool, every: str | None, least: int
) -> Statistics:
    from shmq.spark.pipelines.archive import folders_of
    from shmq.spark.pipelines.session import command_session
    from shmq.spark.pipelines.statistics import archived_entries, collected, entries_of

    if folder is not None:
        folders_of(folder)  # or it is said that there is none, before Spark has started
    with waiting("Spark starts") as show, command_session("shmq pipeline stats") as spark, usage():
        show("Spark counts")
        frames = [entries_of(spark, path, names)] if names else []
        if folder is not None:
            frames.append(archived_entries(spark, folder, names if named else ()))
        entries = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1], allowMissingColumns=True)
        return collected(entries, every, least)


def _with_their_dead(session: Session, broker: Broker, queues: Sequence[str]) -> list[str]:
    """The queues and those for their dead; without a name all but those in which Spark keeps what it is at."""
    there = {queue.name for queue in broker.queues()}
    names = list(queues) or sorted(name for name in there if not _is_of_spark(name, there))
    found = dict.fromkeys(names)
    for name in names:
        dead = str(session.queue(broker, name).options["dead_letter"])
        if dead in there:
            found[dead] = None
    return list(found)


def _is_of_spark(name: str, there: set[str]) -> bool:
    """Staging queues, notes of publications and claims, as in docs/spark.md."""
    return any(name.partition(infix)[0] in there and infix in name for infix in (".stage.", ".published", ".spark."))


def _tables(found: Statistics, minutes: bool) -> list[str]:
    head = ["queue", "waiting", "archived", "dead", "redelivered", "bytes", "p50", "p90", "p99", "longest"]
    tables = [table(head, [_queue(row) for row in found.queues])]
    if minutes:
        head = ["queue", found.every, "put", "archived", "bytes", "redelivered", "depth"]
        tables.append(table(head, [_minute(row) for row in found.minutes], left=2))
    if found.redelivered:
        rows = [[row["queue"], f"{row['delivery_count']:,}", f"{row['entries']:,}"] for row in found.redelivered]
        tables.append(table(["redelivered in", "deliveries", "entries"], rows))
    if found.poison:
        head = ["poison in", "by", "what", "error", "dead", "others"]
        tables.append(table(head, [_candidate(row) for row in found.poison], left=4))
    return tables


def _queue(row: Row) -> list[str]:
    waits = [age(row[name]) for name in ("p50", "p90", "p99", "longest")]
    return [
        row["queue"],
        f"{row['waiting']:,}",
        f"{row['left']:,}",
        f"{row['dead']:,}",
        f"{row['redelivered']:,}",
        size(row["bytes"] or 0),
        *waits,
    ]


def _minute(row: Row) -> list[str]:
    import datetime

    at = datetime.datetime.fromtimestamp(row["minute"], datetime.UTC)
    counts = [f"{row[name]:,}" for name in ("put", "left", "redelivered", "depth")]
    return [row["queue"], f"{at:%Y-%m-%d %H:%M}", *counts[:2], size(row["bytes"]), *counts[2:]]


def _candidate(row: Row) -> list[str]:
    what = row["preview"] or row["value"]
    texts = [text if len(text) <= _CLUE else f"{text[: _CLUE - 4]} ..." for text in (what, row["error"] or "-")]
    return [row["queue"], row["by"], *texts, f"{row['dead']:,}", f"{row['others']:,}"]
