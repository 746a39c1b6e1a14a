"""The group of all commands. A command's module is imported when the command is used."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from shmq.cli.interruption import loading
from shmq.cli.session import Refused, Session
from shmq.version import __version__

__all__ = ["root"]


class Entry(NamedTuple):
    """Where a command is, and what it does, so that the list of all needs none of them."""

    module: str
    attribute: str
    summary: str
    in_broker: bool = True  # False: makes brokers of its own, and -d would mean nothing


_ENTRIES = {
    "init": Entry("shmq.cli.declare", "init", "Make a broker in a directory."),
    "ls": Entry("shmq.cli.look", "ls", "List the queues."),
    "stat": Entry("shmq.cli.look", "stat", "Show all counts of a queue, or of the broker."),
    "ps": Entry("shmq.cli.look", "ps", "List the processes that use the broker."),
    "declare": Entry("shmq.cli.declare", "declare", "Make a queue with options."),
    "put": Entry("shmq.cli.put", "put", "Put a message, or one for each line."),
    "get": Entry("shmq.cli.get", "get", "Take messages and print them."),
    "peek": Entry("shmq.cli.browse", "peek", "Print messages without taking them."),
    "tail": Entry("shmq.cli.browse", "tail", "Print newcomers without taking them, until Ctrl-C."),
    "dead": Entry("shmq.cli.dead", "dead", "List dead letters: where they died, why, when."),
    "move": Entry("shmq.cli.manage", "move", "Move messages to another queue: sends dead letters back."),
    "purge": Entry("shmq.cli.manage", "purge", "Throw away all messages that are ready or delayed."),
    "rm": Entry("shmq.cli.manage", "rm", "Delete a queue with its messages."),
    "shutdown": Entry("shmq.cli.manage", "shutdown", "End a queue for all who use it."),
    "reopen": Entry("shmq.cli.manage", "reopen", "Take a queue that was shut down back into service."),
    "work": Entry("shmq.cli.work", "work", "Handle the messages of a queue by a function, in processes."),
    "destroy": Entry("shmq.cli.destroy", "destroy", "Delete the broker with its memory and its directory."),
    "check": Entry("shmq.cli.check", "check", "Look for damage in a broker that may be in use."),
    "gc": Entry("shmq.cli.gc", "gc", "Remove segments that no process uses."),
    "spark": Entry("shmq.cli.spark", "spark", "Settle or publish messages that a run of Spark has left."),
    "pipeline": Entry("shmq.cli.pipeline", "pipeline", "Count, archive and replay entries by Spark."),
    "gateway": Entry("shmq.cli.gateway", "gateway", "Serve the queues to Spark on other hosts."),
    "doctor": Entry("shmq.cli.doctor", "doctor", "Look whether this machine is fit for shmq."),
    "bench": Entry("shmq.cli.bench", "bench", "Measure throughput and latency on this machine.", False),
    "demo": Entry("shmq.cli.demo", "demo", "Kill a worker in the midst of a real job; nothing is missing.", False),
}


def _set_directory(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value == "":
        raise Refused("-d '': the directory is empty; check that the shell variable in its place is set")
    if value is not None:
        context.ensure_object(Session).directory = value


def _refuse_directory(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise _no_directory(context.command_path)


def _no_directory(command: str) -> Refused:
    return Refused(f"{command} makes brokers of its own, without a directory, and removes them; leave out -d")


def _set_json(context: click.Context, parameter: click.Parameter, value: bool) -> bool:
    if value:
        context.ensure_object(Session).json = True
    return value


def _set_key_file(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value:
        context.ensure_object(Session).key_file = value


def _key_option(variable: str | None) -> click.Option:
    return click.Option(
        ["--encryption-key-file"],
        metavar="FILE",
        envvar=variable,
        expose_value=False,
        callback=_set_key_file,
        help="File with the key of the broker's messages on disk; default $SHMQ_ENCRYPTION_KEY_FILE.",
    )


def _directory_option(variable: str | None, *, in_broker: bool = True) -> click.Option:
    if not in_broker:  # taken only to say why not
        return click.Option(["-d", "--directory"], expose_value=False, callback=_refuse_directory, hidden=True)
    return click.Option(
        ["-d", "--directory"],
        metavar="DIR",
        envvar=variable,
        expose_value=False,
        callback=_set_directory,
        help="The broker: a directory or shmq:// URL; default $SHMQ_DIR.",
    )


def _json_option(*, expose: bool) -> click.Option:
    return click.Option(
        ["--json"],
        is_flag=True,
        expose_value=expose,
        callback=_set_json,
        help="Print one JSON object, or one for each line.",
    )


def _names(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


def _with_global_options(command: click.Command, *, in_broker: bool = True) -> click.Command:
    """They may stand before the command or behind it."""
    if isinstance(command, click.Group):
        for member in command.commands.values():
            _with_global_options(member, in_broker=in_broker)
        return command
    names = _names(command)
    if "--json" not in names:
        command.params.append(_json_option(expose=False))
    if not names & {"-d", "--directory"}:
        command.params.append(_directory_option(None, in_broker=in_broker))
    if in_broker:
        command.params.append(_key_option(None))
    return command


class LazyGroup(click.Group):
    """Knows its commands by name and summary, and loads the one that is asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [name for name, entry in _ENTRIES.items() if find_spec(entry.module) is not None]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        entry = _ENTRIES.get(name)
        if entry is None or find_spec(entry.module) is None:
            return None
        if name not in self.commands:
            with loading():
                command: Any = getattr(import_module(entry.module), entry.attribute)
            self.commands[name] = _with_global_options(command, in_broker=entry.in_broker)
        return self.commands[name]

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], self.list_commands(context), 1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", error.ctx) from None

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _ENTRIES[name].summary) for name in self.list_commands(context)])


@click.group(
    cls=LazyGroup,
    params=[_directory_option("SHMQ_DIR"), _key_option("SHMQ_ENCRYPTION_KEY_FILE"), _json_option(expose=True)],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="shmq", message="%(prog)s %(version)s")
@click.pass_context
def root(context: click.Context, json: bool) -> None:
    """Message queues for the processes of one host, in a directory, without a server.

    Data goes to stdout, words to stderr. Exit codes: 0 done, 1 failed, 2 usage or option mismatch, 3 no such broker or
    queue, 4 empty or timed out, 130 Ctrl-C, 143 SIGTERM.

    \b
    Example:
      export SHMQ_DIR=/var/lib/shop
      shmq init --memory 512MiB
      shmq put orders '{"id": 7}' --as json
      shmq get orders --timeout 1
    """
    context.ensure_object(Session)
    named = context.get_parameter_source("directory") is ParameterSource.COMMANDLINE
    if named and context.invoked_subcommand and not _ENTRIES[context.invoked_subcommand].in_broker:
        raise _no_directory(f"shmq {context.invoked_subcommand}")
