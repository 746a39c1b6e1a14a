"""Options that the commands share: which broker, which form of output."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import click

from shmq.errors import NotFound, ShmqError

if TYPE_CHECKING:
    from shmq.engine.broker.broker import Broker
    from shmq.engine.queue.queue import Queue

__all__ = ["Count", "Refused", "Seconds", "Session", "confirm", "pass_session", "say", "to_stdout", "usage", "write"]


class Refused(click.ClickException):
    """The command line is well formed, but asks for what cannot be: exit code 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        say(f"refused: {self.message}")


class Count(click.IntRange):
    """A whole number: another word is refused as no such one, not as no "integer range"."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number", parameter, context)
        return int(super().convert(number, parameter, context))


class Seconds(click.FloatRange):
    """A number of seconds: not nan, which click finds in every range; another word is refused in words of time."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            self.fail(f"{value!r} is not a number of seconds", parameter, context)
        return float(super().convert(number, parameter, context))


@dataclass
class Session:
    """One call of the command.

    Attributes:
        directory: of the broker, as -d or $SHMQ_DIR gave it; None: nobody did.
        json: output for programs.
        key_file: of what the broker has on disk, as --encryption-key-file or $SHMQ_ENCRYPTION_KEY_FILE gave it.
    """

    directory: str | None = None
    json: bool = False
    key_file: str | None = None

    def place(self) -> str:
        """The broker's directory, for those commands that need one."""
        if not self.directory:
            raise Refused(
                "no broker is named; give its directory before the command (shmq -d DIR ...), or set SHMQ_DIR"
            )
        return self.directory

    def open(self, *, rows: bool = True) -> Broker:
        """The broker. Raises BrokerNotFound: only `init` makes one.

        rows: the command needs messages, which may lie on disk. False: it does without the key of what lies there.
        """
        from shmq.errors import BrokerNotFound, OptionsMismatch
        from shmq.runtime import open, open_to_look

        place = self.place()
        with usage():
            try:
                return open(place, create=False, encryption_key=self.key_file) if rows else open_to_look(place)
            except OptionsMismatch as error:
                if self.key_file is not None:
                    raise
                raise OptionsMismatch(
                    error.what, figures="no key is given here", remedy="give the file with it by --encryption-key-file"
                ) from None
            except BrokerNotFound as error:
                raise BrokerNotFound(
                    error.what, figures=error.figures, remedy="check the path, or make one by shmq init"
                ) from None

    def queue(
        self, broker: Broker, name: str, codec: Any = None, *, create: bool = False, needs: str = ""
    ) -> Queue[Any]:
        """A queue; only put and declare make one. needs: the options it has to have, for the remedy."""
        with usage():
            try:
                return broker.queue(name, codec=codec, create=create)
            except NotFound:
                raise NotFound(
                    f"there is no queue {name!r}",
                    remedy=f"shmq ls shows all queues, shmq declare {name}{needs} makes it",
                ) from None

    def result(self, value: Mapping[str, Any], text: str | None = None) -> None:
        """The command's data: one JSON object, or a text; None: in text there is nothing to say."""
        if self.json:
            self.line(value)
        elif text is not None:
            write(text + "\n")

    def line(self, value: Mapping[str, Any]) -> None:
        """One JSON object on a line of its own."""
        from shmq.cli.text import escaped

        write(escaped(json.dumps(value, ensure_ascii=False, default=_plain), json=True) + "\n")


def _plain(value: Any) -> Any:
    """Alerts among the options of a queue."""
    from dataclasses import asdict

    return asdict(value)


pass_session = click.make_pass_decorator(Session, ensure=True)


def write(text: str) -> None:
    """To stdout, at once: a reader that has gone is noticed here and not at the end."""
    with to_stdout():
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.buffer.flush()


@contextmanager
def to_stdout() -> Iterator[None]:
    """An error in the `with` block is one of stdout, and says so."""
    try:
        yield
    except OSError as error:
        error.filename = "stdout"
        raise


def say(text: str) -> None:
    """Words go to stderr."""
    from shmq.cli.text import escaped

    click.echo(escaped(text), err=True)


@contextmanager
def usage() -> Iterator[None]:
    """An argument that the library refuses is a fault in the command line: exit code 2 with its text."""
    try:
        yield
    except ShmqError:
        raise
    except (ValueError, TypeError) as error:
        raise Refused(str(error)) from error


def confirm(question: str, *, yes: bool) -> None:
    """Goes on with --yes or after a yes on the terminal; without a terminal --yes is needed."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused("this cannot be undone, and there is no terminal to confirm it; give --yes")
    from shmq.cli.text import escaped

    if not click.confirm(escaped(question), err=True):
        raise click.ClickException("nothing was done")
