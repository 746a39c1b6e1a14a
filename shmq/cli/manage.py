"""purge, rm, move, shutdown and reopen."""

from __future__ import annotations

import click

from shmq.cli.look import complete_queue
from shmq.cli.selecting import nothing_selected, selector_option
from shmq.cli.session import Count, Session, confirm, pass_session, say, usage
from shmq.statistics import as_json

__all__ = ["move", "purge", "reopen", "rm", "shutdown"]


@click.command("purge")
@click.argument("queue", shell_complete=complete_queue)
@click.option("--yes", is_flag=True, help="Do not ask.")
@selector_option
@pass_session
def purge(session: Session, queue: str, yes: bool, selector: str | None) -> None:
    """Throw away all messages that are ready or delayed, and print how many. Consumers keep the messages they hold.

    \b
    Example:
      shmq purge orders --yes
      shmq purge orders --selector "customer = 'test'" --yes
    """
    with session.open(rows=selector is not None) as broker:
        found = session.queue(broker, queue)
        if selector is None:
            counted = found.statistics()
            count = counted.ready + counted.delayed
            confirm(f"Throw away the ready and delayed messages of {queue!r} ({count:,})?", yes=yes)
        else:
            count = sum(1 for _ in found.browse(selector=selector))
            if count == 0:
                say(nothing_selected(found, selector))
            confirm(f"Throw away the selected messages of {queue!r} ({count:,})?", yes=yes)
        purged = found.purge(selector=selector)
        session.result({"purged": purged}, str(purged))


@click.command("rm")
@click.argument("queue", shell_complete=complete_queue)
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_session
def rm(session: Session, queue: str, yes: bool) -> None:
    """Delete a queue. Its users get NotFound; its messages go to its dead_letter if one was named, else with it.

    \b
    Example:
      shmq rm orders --yes
    """
    with session.open() as broker:
        found = session.queue(broker, queue)
        confirm(f"Delete {queue!r} with its messages ({found.qsize():,})?", yes=yes)
        last = as_json(found.statistics())
        found.delete()
        session.result({"deleted": last})


@click.command("move")
@click.argument("source", metavar="FROM", shell_complete=complete_queue)
@click.argument("to", shell_complete=complete_queue)
@click.option("-n", "limit", type=Count(min=1), metavar="N", help="At most so many.")
@selector_option
@click.option("--copy", is_flag=True, help="Leave the messages in FROM, and put copies into TO.")
@pass_session
def move(session: Session, source: str, to: str, limit: int | None, selector: str | None, copy: bool) -> None:
    """Move ready and delayed messages from one queue to another, in order, and print how many. Sends dead letters back.

    \b
    Example:
      shmq move orders.dead orders
      shmq move numbers archive -n 500
    """
    with session.open() as broker:
        here, there = session.queue(broker, source), session.queue(broker, to)
        with usage():
            moved = here.move(there, selector=selector, limit=limit, copy=copy)
        if selector is not None and moved == 0:
            say(nothing_selected(here, selector))
        session.result({"moved": moved}, str(moved))


@click.command("shutdown")
@click.argument("queue", shell_complete=complete_queue)
@click.option("--immediate", is_flag=True, help="Takers end at once; messages stay.")
@pass_session
def shutdown(session: Session, queue: str, immediate: bool) -> None:
    """End a queue for everybody: nothing more can be put, takers drain it and end.

    \b
    Example:
      shmq shutdown orders
    """
    with session.open(rows=False) as broker:
        found = session.queue(broker, queue)
        found.shutdown(immediate=immediate)
        session.result(as_json(found.statistics()) if session.json else {})


@click.command("reopen")
@click.argument("queue", shell_complete=complete_queue)
@pass_session
def reopen(session: Session, queue: str) -> None:
    """Take a queue that was shut down back into service.

    \b
    Example:
      shmq reopen orders
    """
    with session.open(rows=False) as broker:
        found = session.queue(broker, queue)
        found.reopen()
        session.result(as_json(found.statistics()) if session.json else {})
