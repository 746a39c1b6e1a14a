"""get: takes messages, and lets go of each one only after it is printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import click

from shmq.cli.interruption import Interruption
from shmq.cli.look import complete_queue
from shmq.cli.message import printer
from shmq.cli.session import Seconds, Session, pass_session, say
from shmq.cli.text import duration
from shmq.errors import CorruptionError, Empty, ShutDown

if TYPE_CHECKING:
    from shmq.engine.message import Message

__all__ = ["get"]


class NothingThere(click.ClickException):
    """Nothing was printed."""

    exit_code = 4

    def show(self, file: IO[Any] | None = None) -> None:
        say(self.message)


@click.command("get")
@click.argument("queue", shell_complete=complete_queue)
@click.option("-n", "count", type=click.IntRange(min=1), metavar="N", help="How many at most; default 1.")
@click.option("--follow", is_flag=True, help="Go on until the queue is shut down, or Ctrl-C.")
@click.option("--timeout", type=Seconds(min=0), metavar="S", help="Seconds to wait for each; default: for ever.")
@click.option("--raw", is_flag=True, help="Write bodies unchanged, and nothing between them.")
@pass_session
def get(session: Session, queue: str, count: int | None, follow: bool, timeout: float | None, raw: bool) -> None:
    """Take messages and print them, each before it is taken for good: what could not be printed goes back.

    After the timeout it ends; the exit code is 4 if nothing came at all.

    \b
    Example:
      shmq get orders --timeout 1
      shmq get orders -n 100 --timeout 0
      shmq get orders --follow --json | jq -c .body
    """
    if follow and count is not None:
        raise click.UsageError("-n and --follow exclude each other")
    if raw and session.json:
        raise click.UsageError("--raw and --json exclude each other")
    limit = None if follow else count or 1
    with session.open() as broker, Interruption() as interruption, session.queue(broker, queue).consumer() as consumer:
        show = printer(session, raw=raw)
        taken = 0
        while limit is None or taken < limit:
            try:
                with interruption.allowed():
                    message = consumer.receive(timeout=timeout)
            except Empty:
                break
            except ShutDown:
                if taken or follow:
                    return
                raise
            _deliver(message, show, interruption)
            del message  # here, and not in the next wait
            taken += 1
        if not taken:
            raise NothingThere(
                f"empty: nothing came to {queue!r} within {duration(timeout)}"
                if timeout
                else f"empty: nothing is in {queue!r}"
            )


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
