"""dead: what could not be handled, and why."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from shmq.cli.get import NothingThere
from shmq.cli.look import complete_queue
from shmq.cli.message import record
from shmq.cli.session import Count, Session, pass_session, write
from shmq.cli.text import age, table
from shmq.core import clock
from shmq.errors import NotFound

if TYPE_CHECKING:
    from shmq.engine.broker.broker import Broker
    from shmq.engine.message.message import Message

__all__ = ["dead"]

_WIDTH = 100  # characters of an error


@click.command("dead")
@click.argument("queue", required=False, shell_complete=complete_queue)
@click.option("-n", "count", type=Count(min=1), metavar="N", help="How many at most; default: all.")
@pass_session
def dead(session: Session, queue: str | None, count: int | None) -> None:
    """List dead letters, without taking any: where each died, why, when, and where it lies. Exit code 4: there is none.

    QUEUE: only letters that died there, or lie there. With --json each is printed as by peek, with its whole error.

    \b
    Example:
      shmq dead
      shmq dead orders --json | jq -r .death.error
      shmq move orders.dead orders
    """
    with session.open() as broker:
        if queue is not None:
            session.queue(broker, queue)  # or it is said that there is none
        found = islice(_dead_letters(broker, queue), count)
        rows = []
        for message in found:
            rows.append(_row(message, clock.wall()))
            if session.json:
                session.line(record(message))
        if rows and not session.json:
            write(table(["died in", "reason", "error", "lies in", "id", "pids", "age"], rows, left=4) + "\n")
        if not rows:
            raise NothingThere("empty: nothing is dead" if queue is None else f"empty: nothing of {queue!r} is dead")


def _dead_letters(broker: Broker, queue: str | None) -> Iterator[Message[Any]]:
    there = {each.name: each for each in broker.queues()}
    places = set()
    for each in there.values():
        try:
            places.add(str(each.options["dead_letter"]))
        except NotFound:  # deleted meanwhile
            continue
    for name in sorted(places & there.keys()):
        for message in there[name].browse():
            if message.death is not None and queue in (None, name, message.death.queue):
                yield message


def _row(message: Message[Any], now: float) -> list[str]:
    death = message.death
    assert death is not None
    lines = (death.error or "-").strip().splitlines() or ["-"]
    error = lines[-1]  # of a traceback what was raised
    return [
        death.queue,
        death.reason,
        error if len(error) <= _WIDTH else f"{error[: _WIDTH - 4]} ...",
        message.queue.name,
        str(message.id),
        " ".join(map(str, death.pids)) or "-",
        age(max(0.0, now - death.at)),
    ]
