"""ls, stat and ps: what there is, how much of it, and who uses it."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shmq.cli.session import Session, pass_session
from shmq.cli.text import age, size, table
from shmq.core import clock
from shmq.engine.broker.broker import live_membership
from shmq.engine.queue.queue_management import given_options
from shmq.options import as_written
from shmq.statistics import BrokerStatistics, QueueStatistics, as_json

if TYPE_CHECKING:
    from shmq.engine.broker.broker import Broker
    from shmq.statistics import ProcessInfo

__all__ = ["complete_queue", "ls", "ps", "stat"]

_NAME = 40  # characters of a process's name and arguments
_SIZES = (
    "bytes",
    "memory_bytes",
    "reserved_bytes",
    "disk_bytes",
    "memory",
    "memory_reserved",
    "memory_used",
    "disk_used",
    "log_bytes",
)


def complete_queue(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names for the shell's completion; none if there is no broker to ask."""
    from shmq.runtime import open_to_look

    place = context.find_root().ensure_object(Session).directory or os.environ.get("SHMQ_DIR")
    try:
        with open_to_look(place or "") as broker:
            return [queue.name for queue in broker.queues() if queue.name.startswith(incomplete)]
    except Exception:  # a half-typed command line is no place for errors
        return []


def _statistics(broker: Broker) -> BrokerStatistics:
    """Of the broker without this process, which is a member only to look."""
    seen = broker.statistics()
    return replace(seen, processes=tuple(process for process in seen.processes if process.pid != os.getpid()))


@click.command("ls")
@pass_session
def ls(session: Session) -> None:
    """List the queues: messages ready, delayed and with consumers, bytes, age of the oldest, consumers.

    \b
    Example:
      shmq ls
      shmq ls --json | jq '.queues[].ready'
    """
    with session.open(rows=False) as broker:
        queues = _statistics(broker).queues
        rows = [
            [
                queue.name + (" (shut down)" if queue.shut_down else ""),
                f"{queue.ready:,}",
                f"{queue.delayed:,}",
                f"{queue.unsettled:,}",
                size(queue.bytes),
                age(queue.oldest_age),
                f"{queue.consumers:,}",
            ]
            for queue in queues.values()
        ]
        text = table(["queue", "ready", "delayed", "unsettled", "bytes", "oldest", "consumers"], rows)
        session.result({"queues": {name: as_json(queue) for name, queue in queues.items()}}, text)


@click.command("stat")
@click.argument("queue", required=False, shell_complete=complete_queue)
@click.option("--options", is_flag=True, help="Show the options that the queue was given, as declare takes them.")
@pass_session
def stat(session: Session, queue: str | None, options: bool) -> None:
    """Show all counts of a queue; without a name those of the broker.

    \b
    Example:
      shmq stat orders
      shmq --json stat orders | jq .acked
      shmq declare parcels $(shmq stat orders --options)

    --options leaves out options that were not given and have their default (see shmq declare --help). With --json
    `in_force` has all of them.
    """
    if options and queue is None:
        raise click.UsageError("--options are those of a queue; name one")
    with session.open(rows=False) as broker:
        if queue is not None and options:
            found = session.queue(broker, queue)
            given = given_options(found)
            known = {"name": queue, "options": dict(given), "in_force": dict(found.options)}
            session.result(known, "\n".join(as_written(given)) or None)
            return
        counts: QueueStatistics | BrokerStatistics
        counts = _statistics(broker) if queue is None else session.queue(broker, queue).statistics()
        more = _health(broker) if queue is None else {}
        session.result(as_json(counts) | more, _counts(counts, more))


def _health(broker: Broker) -> dict[str, int]:
    """Since the broker was made: damaged places met, sleeps that only their time limit ended, processes that died."""
    used = live_membership(broker).live().usage()
    return {"damage": used["damage"], "rescues": used["rescues"], "deaths": used["deaths"]}


def _counts(found: QueueStatistics | BrokerStatistics, more: dict[str, int]) -> str:
    rows = [(field.name, _shown(field.name, getattr(found, field.name))) for field in fields(found)]
    rows += [(name, _shown(name, value)) for name, value in more.items()]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def _shown(name: str, value: Any) -> str:
    if name == "oldest_age":
        return age(value)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" + (f" ({size(value)})" if name in _SIZES and value >= 1024 else "")
    return str(value) if isinstance(value, str) else f"{len(value):,}"


def _shown_name(process: ProcessInfo) -> str:
    """With the arguments of its program, where they say more: of an interpreter, and unless it has another name."""
    folder = Path("/proc", str(process.pid))
    try:
        words = (folder / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return process.name
    for place, word in enumerate(words[:2]):  # a script has its name behind that of its interpreter
        program = os.path.basename(word)
        if program[:15] == process.name and process.state != "dead":  # else another one has the pid, here or by now
            text = "".join(c if c.isprintable() else " " for c in " ".join([program, *words[place + 1 :]]))
            return text if len(text) <= _NAME else f"{text[: _NAME - 3]}..."
    return process.name


@click.command("ps")
@pass_session
def ps(session: Session) -> None:
    """List the processes that use the broker: state, messages they hold, bytes they pin by views and loans.

    A process that moves messages to disk or back holds one meanwhile.

    \b
    Example:
      shmq ps
      shmq ps --json | jq '.processes[] | select(.state == "stopped") | .pid'
    """
    with session.open(rows=False) as broker:
        found = _statistics(broker).processes
        now = clock.wall()
        rows = [
            [
                _shown_name(process),
                process.state,
                str(process.pid),
                age(max(0.0, now - process.started_at)),
                f"{process.unsettled:,}",
                size(process.pinned_bytes),
            ]
            for process in found
        ]
        text = table(["process", "state", "pid", "age", "unsettled", "pinned"], rows, left=2)
        session.result({"processes": [as_json(process) for process in found]}, text)
