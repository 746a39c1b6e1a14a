"""work: a function handles the messages of a queue, in as many processes as one likes."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click

from shmq.cli.interruption import loading
from shmq.cli.look import complete_queue
from shmq.cli.selecting import selector_option, warn_of_text
from shmq.cli.session import Count, Refused, Session, pass_session, say, usage
from shmq.quantity import quantity
from shmq.statistics import as_json

if TYPE_CHECKING:
    from shmq.engine.message.message import Message

__all__ = ["work"]


class Faulty(click.ClickException):
    """The module raised something while it was imported: its own frames are shown, not the way to it."""

    def __init__(self, module_name: str, error: BaseException) -> None:
        super().__init__(f"failed: module {module_name!r} cannot be imported")
        frames = error.__traceback__
        while frames is not None and (
            frames.tb_frame.f_code.co_filename in (__file__, importlib.__file__)
            or frames.tb_frame.f_code.co_filename.startswith("<frozen importlib")
        ):
            frames = frames.tb_next
        self.trace = "".join(traceback.format_exception(type(error), error, frames))

    def show(self, file: IO[Any] | None = None) -> None:
        say(f"{self.trace}{self.message}")


def _function(spec: str) -> Callable[[Message[Any]], Any]:
    """The function that MODULE:FUNCTION names, the module looked for where the command was typed, too."""
    module_name, sign, attributes = spec.partition(":")
    if not sign or not module_name or not attributes:
        raise Refused(f"{spec!r} is not a function; write MODULE:FUNCTION, such as shop.invoices:handle")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            raise Refused(f"there is no module {error.name!r} in {here} or on the path of Python") from None
        raise Faulty(module_name, error) from error  # the module is there, and misses another one, or has a fault
    for name in attributes.split("."):
        if not hasattr(found, name):
            raise Refused(f"{module_name!r} has no {attributes!r}")
        found = getattr(found, name)
    if not callable(found):
        raise Refused(f"{spec!r} is not a function but {type(found).__name__}")
    return found  # type: ignore[no-any-return]


@contextmanager
def _noticed() -> Iterator[list[int]]:
    """Yields a list that has, at the end of the block, the signals that came; who handles them goes on doing so."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    came: list[int] = []
    try:
        yield came
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)
        came += os.read(reader, 1024)  # b"" when none came: nobody has the other end any more
        os.close(reader)


@click.command("work")
@click.argument("queue", shell_complete=complete_queue)
@click.argument("function", metavar="MODULE:FUNCTION")
@click.option(
    "-n",
    "processes",
    type=Count(min=0),
    metavar="N",
    help="Processes; default: one for each CPU. 0: this one.",
)
@click.option("--results", metavar="QUEUE", help="Gets the results of the function.")
@click.option("--until-empty", is_flag=True, help="End when nothing is ready, delayed or unsettled any more.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="For one call; a worker that is over it is killed.")
@selector_option
@pass_session
def work(
    session: Session,
    queue: str,
    function: str,
    processes: int | None,
    results: str | None,
    until_empty: bool,
    time_limit: float | None,
    selector: str | None,
) -> None:
    """Call FUNCTION with each message of a queue, until it is shut down and drained.

    The function gets a Message. When it returns, the message is done; when it raises, the message is tried again. The
    first Ctrl-C or SIGTERM finishes the messages in hand, the second one gives them back.

    With --until-empty it ends by itself when all is done. It waits for messages that are delayed or tried again, and
    for those that other consumers have in hand. The exit code is 1 then if messages have died.

    A call that takes longer than --time-limit is killed with its process; the message goes back, counted as a death.

    With --json the counts of the queue, and of this run: handled, retried, dead by reason.

    \b
    Example:
      shmq work orders shop.invoices:handle -n 4 --until-empty
      shmq work orders shop.invoices:handle --selector "total > 1000"
    """
    with loading():
        from shmq.pool.worker_pool import WorkerPool
    handler = _function(function)
    with session.open() as broker:
        source = session.queue(broker, queue)
        target = None if results is None else session.queue(broker, results, create=True)
        with usage():
            pool = WorkerPool(
                source,
                handler,
                processes=processes,
                results=target,
                selector=selector,
                time_limit=time_limit,
                progress=sys.stderr.isatty(),
            )
        warn_of_text(source, selector)
        with _noticed() as came:
            try:
                counts = pool.run(until_empty=until_empty)
            except TypeError as error:  # a lambda, or what else cannot be sent to a worker
                raise Refused(str(error)) from error
        if signal.SIGINT in came:
            raise KeyboardInterrupt  # the pool ended in order, for it was told so: the exit code says who told it
        session.result({**as_json(source.statistics()), **as_json(counts)} if session.json else {})
    if until_empty and counts.died:
        causes = ", ".join(f"{count:,} {reason}" for reason, count in counts.dead.items())
        say(f"failed: {quantity(counts.died, 'message')} of queue {queue!r} died ({causes})")
        raise click.exceptions.Exit(1)
