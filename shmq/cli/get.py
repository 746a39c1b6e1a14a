"""get: takes messages, and lets go of each one only after it is printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import click

from shmq.cli.interruption import Interruption
from shmq.cli.look import complete_queue
from shmq.cli.message import printer
from shmq.cli.selecting import nothing_selected, selector_option, warn_of_text
from shmq.cli.session import Count, Seconds, Session, pass_session, say
from shmq.cli.text import duration
from shmq.errors import CorruptionError, Empty, ShutDown

if TYPE_CHECKING:
    from shmq.engine.consumer.consumer import Consumer
    from shmq.engine.message.message import Message

__all__ = ["get"]


class NothingThere(click.ClickException):
    """Nothing was printed."""

    exit_code = 4

    def show(self, file: IO[Any] | None = None) -> None:
        say(self.message)


@click.command("get")
@click.argument("queue", shell_complete=complete_queue)
@click.option("-n", "count", type=Count(min=1), metavar="N", help="How many at most; default 1.")
@click.option("--follow", is_flag=True, help="Go on until the queue is shut down, or Ctrl-C.")
@click.option("--timeout", type=Seconds(min=0), metavar="S", help="Seconds to wait for each; default: for ever.")
@click.option("--headers", is_flag=True, help="Print position and headers in front of each body.")
@click.option("--raw", is_flag=True, help="Write bodies unchanged, and nothing between them.")
@selector_option
@pass_session
def get(
    session: Session,
    queue: str,
    count: int | None,
    follow: bool,
    timeout: float | None,
    headers: bool,
    raw: bool,
    selector: str | None,
) -> None:
    """Take messages and print them, each before it is taken for good: one that could not be printed goes back.

    After the timeout it ends; the exit code is 4 if nothing came at all. With --follow into a pipe whose reader ends
    early (head), messages may be taken that no reader has seen: use -n. A selector: see shmq peek --help.

    \b
    Example:
      shmq get orders --timeout 1
      shmq get orders -n 100 --timeout 0
      shmq get orders --selector "customer = 'ann'" --headers --timeout 0
      shmq get orders --follow --json | jq -c .body
    """
    if follow and count is not None:
        raise click.UsageError("-n and --follow exclude each other")
    if raw and (session.json or headers):
        raise click.UsageError("--raw excludes --json and --headers")
    with session.open() as broker:
        source = session.queue(broker, queue)
        show = printer(session, raw=raw, headers=headers)
        if timeout is None:
            warn_of_text(source, selector)
        with Interruption() as interruption, source.consumer(selector=selector) as consumer:
            taken = _take(consumer, None if follow else count or 1, timeout, show, interruption)
        if taken:
            return
        if selector is not None:
            raise NothingThere(nothing_selected(source, selector))
        within = f"nothing came to {queue!r} within {duration(timeout)}" if timeout else f"nothing is in {queue!r}"
        raise NothingThere(f"empty: {within}")


def _take(
    consumer: Consumer[Any],
    limit: int | None,
    timeout: float | None,
    show: Callable[[Message[Any]], None],
    interruption: Interruption,
) -> bool:
    """Takes up to `limit` messages; None: all, until the queue is shut down. False: none came within the timeout."""
    taken = 0
    while limit is None or taken < limit:
        try:
            with interruption.allowed():
                message = consumer.receive(timeout=timeout)
        except Empty:
            break
        except ShutDown:
            if taken or limit is None:
                return True
            raise
        _deliver(message, show, interruption)
        del message  # here, and not in the next wait
        taken += 1
    return taken > 0


def _deliver(message: Message[Any], show: Callable[[Message[Any]], None], interruption: Interruption) -> None:
    try:
        with interruption.allowed():
            show(message)
    except CorruptionError as error:
        message.retry(error)  # counted, so that a damaged message ends among the dead
        raise
    except BaseException:
        message.release()  # a closed pipe, Ctrl-C: not the message's fault
        raise
    message.ack()
