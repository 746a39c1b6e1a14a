"""How a benchmark is run from a shell: what it says meanwhile, Ctrl-C, its table or JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from shmq.cli.interruption import Interruption, loading

__all__ = ["json_option", "measuring", "print_rows", "wants_json"]

_KEY = "shmq.cli.measuring.json"
_HELP = "One JSON object instead of a table."
json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help=_HELP,
    callback=lambda c, o, given: c.meta.setdefault(_KEY, given),
    expose_value=False,
)


@contextmanager
def measuring() -> Iterator[Callable[[str], None]]:
    """How to say what is being measured: one line on a terminal, lines otherwise.

    Ctrl-C ends it at once, or with the next word, if it came where Python drops it: while an object of a round goes.
    """
    with Interruption() as interruption, ExitStack() as stack:
        say: Callable[[str], None] = partial(click.echo, err=True)
        if sys.stderr.isatty():
            with loading():
                from rich.console import Console

            say = stack.enter_context(Console(stderr=True).status("measuring")).update

        def tell(text: str) -> None:
            interruption.check()
            say(text)

        try:
            with interruption.allowed():
                yield tell
        except Exception:
            interruption.check()  # it may be what became of the interrupt
            raise


def wants_json() -> bool:
    context = click.get_current_context()
    parent: Any = context.find_root().params
    return bool(context.meta.get(_KEY) or parent.get("as_json") or parent.get("json"))


def print_rows(title: str, rows: Sequence[Any], columns: dict[str, str], **settings: object) -> None:
    """settings: of the measurement, beside what the command was given and in place of it."""
    if wants_json():
        context = click.get_current_context()
        found = {"bench": context.command.name, **context.params, **settings, "cpus": os.cpu_count()}
        click.echo(json.dumps({**found, "rows": [asdict(row) for row in rows]}))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for number, heading in enumerate(columns.values()):
        table.add_column(heading, justify="left" if number == 0 else "right")
    for row in rows:
        cells = []
        for field in columns:
            value = getattr(row, field)
            if value is None:
                cells.append("")
            else:
                cells.append(value if isinstance(value, str) else f"{value:,.0f}" if value >= 1000 else f"{value:,.2f}")
        table.add_row(*cells)
    Console(width=None if sys.stdout.isatty() else 120).print(table)
