"""peek and tail: messages are shown, and stay where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from shmq.cli.get import NothingThere
from shmq.cli.interruption import Interruption
from shmq.cli.look import complete_queue
from shmq.cli.message import printer
from shmq.cli.selecting import nothing_selected, selector_option, warn_of_text
from shmq.cli.session import Count, Session, pass_session, say

if TYPE_CHECKING:
    from shmq.engine.message.message import Message

__all__ = ["peek", "tail"]


@click.command("peek")
@click.argument("queue", shell_complete=complete_queue)
@click.option("-n", "count", type=Count(min=1), metavar="N", help="How many at most; default: all.")
@click.option("--headers", is_flag=True, help="Print position and headers in front of each body.")
@click.option("--raw", is_flag=True, help="Write bodies unchanged, and nothing between them.")
@selector_option
@pass_session
def peek(session: Session, queue: str, count: int | None, headers: bool, raw: bool, selector: str | None) -> None:
    """Print messages from the first one on, without taking any. The exit code is 4 if there is none.

    \b
    Example:
      shmq peek orders --headers -n 10
      shmq peek orders.dead --json | jq .death
      shmq peek images --selector "kind LIKE 'p%' AND width BETWEEN 100 AND 2000"

    \b
    A selector is a condition on headers, as in SQL:
      'text', 42, 2.5, TRUE, FALSE; a-name with such characters is "a-name"
      = <> < <= > >=, + - * /, NOT, AND, OR, ( )
      x BETWEEN 1 AND 9, x IN ('a', 'b'), x LIKE 'a_b%' ESCAPE '\\', x IS NULL
      of the message: JMSPriority, JMSXGroupID, JMSMessageID, JMSTimestamp,
        JMSRedelivered, JMSXDeliveryCount
    A header that is missing is NULL, and a comparison with NULL selects nothing.
    -H width=1500 is text, which equals no number; -H width:=1500 is a number.
    """
    if raw and (session.json or headers):
        raise click.UsageError("--raw excludes --json and --headers")
    with session.open() as broker:
        there = session.queue(broker, queue)
        found = islice(there.browse(selector=selector), count)
        if not _show_all(found, printer(session, raw=raw, headers=headers)):
            raise NothingThere(
                f"empty: nothing is in {queue!r}" if selector is None else nothing_selected(there, selector)
            )


@click.command("tail")
@click.argument("queue", shell_complete=complete_queue)
@click.option("--headers", is_flag=True, help="Print position and headers in front of each body.")
@selector_option
@pass_session
def tail(session: Session, queue: str, headers: bool, selector: str | None) -> None:
    """Print messages that come from now on, without taking them, until the queue is shut down, or Ctrl-C.

    A message that is taken before tail has seen it is not shown.

    \b
    Example:
      shmq tail orders --headers
      shmq tail orders --json | jq -c .body
    """
    with session.open() as broker:
        show = printer(session, headers=headers)
        watched = session.queue(broker, queue)
        newcomers = watched.browse(start="next", follow=True, selector=selector)
        say(f"watching {queue!r}; Ctrl-C ends")
        warn_of_text(watched, selector)
        _show_all(newcomers, show)


def _show_all(messages: Iterator[Message[Any]], show: Callable[[Message[Any]], None]) -> int:
    """How many there were."""
    shown = 0
    with Interruption() as interruption:
        while True:
            with interruption.allowed():
                message = next(messages, None)
            if message is None:
                return shown
            with interruption.allowed():
                show(message)
            del message  # here, and not in the next wait
            shown += 1
