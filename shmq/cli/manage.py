"""purge, rm, shutdown and reopen."""

from __future__ import annotations

import click

from shmq.cli.browse import selector_option
from shmq.cli.look import complete_queue
from shmq.cli.session import Session, confirm, pass_session
from shmq.statistics import as_json

__all__ = ["purge", "reopen", "rm", "shutdown"]


@click.command("purge")
@click.argument("queue", shell_complete=complete_queue)
@click.option("--yes", is_flag=True, help="Do not ask.")
@selector_option
@pass_session
def purge(session: Session, queue: str, yes: bool, selector: str | None) -> None:
    """Throw away all messages that are ready, and print how many. What consumers hold stays theirs.

    \b
    Example:
      shmq purge orders --yes
      shmq purge orders --selector "customer = 'test'" --yes
    """
    with session.open() as broker:
        found = session.queue(broker, queue)
        if selector is None:
            confirm(f"Throw away what is ready in {queue!r} (messages: {found.qsize():,})?", yes=yes)
        else:
            count = sum(1 for _ in found.browse(selector=selector))
            confirm(f"Throw away what is selected in {queue!r} (messages: {count:,})?", yes=yes)
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
        confirm(f"Delete {queue!r} and what is in it (messages: {found.qsize():,})?", yes=yes)
        last = as_json(found.statistics())
        found.delete()
        session.result({"deleted": last})


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
    with session.open() as broker:
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
    with session.open() as broker:
        found = session.queue(broker, queue)
        found.reopen()
        session.result(as_json(found.statistics()) if session.json else {})
