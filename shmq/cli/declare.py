"""init and declare: brokers and queues come to be."""

from __future__ import annotations

import os
from typing import Any

import click

from shmq.cli.session import Refused, Session, pass_session, say, usage
from shmq.errors import NotFound
from shmq.options import QueueOptions
from shmq.options.queue_table import QUEUE_TABLE
from shmq.quantity import quantity

__all__ = ["declare", "init"]

_YES = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_OPTIONS = {option.name: option for option in QUEUE_TABLE}


def _octal(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    try:
        return int(value.removeprefix("0o"), 8)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a mode; write 0700 for yourself, 0770 for a group") from None


@click.command("init")
@click.option(
    "--memory", metavar="SIZE", help="Budget of the segment, such as 512MiB; default half of /dev/shm, at most 4GiB."
)
@click.option("--mode", metavar="MODE", callback=_octal, help="Of the directory: 0700 (default), or 0770 for a group.")
@click.option(
    "--disk",
    metavar="SIZE",
    help="Budget on disk, such as 20GiB; 0: nothing; default: a tenth of the file system stays free.",
)
@click.option("--durability", metavar="LEVEL", help="none, os or sync; of a later stage.")
@pass_session
def init(session: Session, memory: str | None, mode: int | None, disk: str | None, durability: str | None) -> None:
    """Make a broker in the directory, and the directory.

    If there is one already it stays, and the options that are given must be its own.

    \b
    Example:
      shmq -d /var/lib/shop init --memory 512MiB
    """
    from shmq.runtime import open
    from shmq.statistics import as_json

    place = session.place()
    with usage():
        not_built: Any = {"durability": durability}  # refused, and the text says so
        broker = open(
            place,
            memory=_size(memory),
            mode=mode,
            disk=_size(disk),
            encryption_key=session.key_file,
            **not_built,
        )
    with broker:
        session.result(as_json(broker.statistics()) if session.json else {})
        others = {*os.listdir(path := broker.path or "")} - {"segment", "lock", "disk"}
        if others:
            say(f"{path} has {quantity(len(others), 'other file')}; the broker's lie beside")


def _size(text: str | None) -> int | str | None:
    """Bytes as a number alone are bytes."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else text


def _seconds(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Refused(f"{name}={text!r} is not a number of seconds") from None


def _alerts(text: str) -> object:
    from shmq.alerts import Alerts
    from shmq.options.value import parse_size

    values: dict[str, Any] = {}
    for part in text.split(","):
        field, sign, value = part.partition(":")
        if not sign or field not in Alerts.__dataclass_fields__:
            known = ", ".join(Alerts.__dataclass_fields__)
            raise Refused(f"alerts={text!r}: write NAME:NUMBER, with commas between several; names are {known}")
        if field in ("age", "repeat"):
            values[field] = _seconds(f"alerts: {field}", value)
        else:
            with usage():
                values[field] = parse_size(_size(value) or 0, f"alerts: {field}")
    return Alerts(**values)


def _option(given: str) -> tuple[str, object]:
    name, sign, text = given.partition("=")
    if not sign or not name:
        raise Refused(f"{given!r} is not an option; write NAME=VALUE, such as maxsize=1000")
    option = _OPTIONS.get(name)
    if option is None:
        return name, text  # refused with all others that there is not
    if option.may_be_none and text.lower() == "none":
        return name, None
    match option.kind:
        case "switch":
            if text.lower() not in _YES:
                raise Refused(f"{name}={text!r} is neither true nor false")
            return name, _YES[text.lower()]
        case "count":
            try:
                return name, int(text.replace(",", "").replace("_", ""))
            except ValueError:
                of = "; it is a number of messages, max_bytes takes a size" if name == "maxsize" else ""
                raise Refused(f"{name}={text!r} is not a whole number{of}") from None
        case "seconds":
            return name, _seconds(name, text)
        case "delays":
            return name, tuple(_seconds(name, step) for step in text.split(","))
        case "alerts":
            return name, _alerts(text)
        case "size":
            return name, _size(text)
        case "choice" | "name":
            return name, text


def _options_help() -> str:
    """The lines of QueueOptions on each option: what help(QueueOptions) says."""
    _, _, text = (QueueOptions.__doc__ or "").partition("\n    maxsize:")
    lines = f"    maxsize:{text.partition('    One that shmq')[0]}".rstrip().splitlines()
    return "\n".join(line.removeprefix("  ") for line in lines)


_HELP = f"""Make a queue, or alter its options.

Times are seconds, "none" takes a limit away; retry_delay takes several with commas between them,
alerts NAME:NUMBER, such as alerts=messages:100000,age:60. Options that are not
given stay as they are; another value of one that is fixed when a queue is made has the exit code 2.

\b
Example:
  shmq declare orders maxsize=1000 max_attempts=5 dead_letter=failed-orders

\b
Options of a queue:
{_options_help()}
"""


@click.command("declare", help=_HELP)
@click.argument("queue")
@click.argument("options", nargs=-1, metavar="[OPTION=VALUE]...")
@pass_session
def declare(session: Session, queue: str, options: tuple[str, ...]) -> None:
    given: dict[str, Any] = dict(_option(option) for option in options)
    if given.get("temporary"):
        raise Refused(
            "a temporary queue goes with the process that made it, and this command ends now; leave temporary out"
        )
    with session.open() as broker, usage():
        try:
            found = broker.queue(queue, create=False)
            found.alter(**given)
        except NotFound:
            found = broker.queue(queue, **given)
        session.result({"name": found.name, "options": dict(found.options)})
